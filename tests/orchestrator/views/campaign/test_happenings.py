"""Every event has a sentence of its own, and none of them can act on a terminal."""

from typing import get_args

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.views.campaign.happenings import _SENTENCES, LONGEST, line_of, node_of
from tests.orchestrator.views.campaign.builder import campaign

KINDS = get_args(get_args(e.Event)[0])


def test_every_kind_has_a_sentence() -> None:
    """An event that is added to the union gets a sentence here."""
    assert set(_SENTENCES) == set(KINDS)


def test_a_whole_campaign_can_be_told() -> None:
    """Each line is one plain line of bounded length."""
    for _, event in campaign(40).events:
        line = line_of(event)
        assert line
        assert line.isprintable()
        assert len(line) <= LONGEST


@pytest.mark.parametrize(
    "event",
    [
        e.Proposed(node="1.1", draft=1, operator="o\x1b[2J", description="a\nb\x07"),
        e.AttemptEnded(node="1.1", ending=Ending.FAILED, why="\x1b]0;title\x07"),
        e.TrialEnded(trial="1.1-1", ending=Ending.FAILED, reason="\u202e" + "x" * 1000),
        e.HeldOutAsked(node="1.1", query=2, released=0.5, step=0.1, fault="\x1b[2J"),
        e.GuardEnded(node="1.1", guard="\r", passed=False, reason="\x9b31m"),
    ],
)
def test_t57_words_of_others_are_escaped(event: e.Event) -> None:
    """No control character gets through."""
    assert line_of(event).isprintable()


def test_where_a_trial_goes() -> None:
    """Outputs go to the judge; where there are none, the judge has called it."""
    assert line_of(e.TrialEnded(trial="1.1-1", ending=None, outputs="e" * 64)).endswith("its outputs go to the judge")
    assert line_of(e.TrialEnded(trial="1.1-1", ending=None)).endswith("ended: the judge has called it")


def test_the_node_of_an_event() -> None:
    """A trial belongs to its node; money alone and the campaign belong to none."""
    assert node_of(e.TrialIntended(trial="1.2.3-4", node="1.2.3", purpose=Purpose.SUBMIT, draft=1)) == "1.2.3"
    assert node_of(e.TrialEnded(trial="1.2.3-4", ending=None)) == "1.2.3"
    assert node_of(e.PauseSet(paused=True)) is None
    assert node_of(e.Reserved(hold="1.2#1", amounts={})) is None
