"""Every event has a sentence of its own, and none of them can act on a terminal."""

import inspect

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.views.campaign.happenings import LONGEST, line_of, node_of
from tests.orchestrator.views.campaign.builder import campaign

KINDS = e.Event.__subclasses__()


def test_every_kind_has_a_sentence() -> None:
    """A class of an event says what happened, has a kind of its own, and is one that a ledger can hold."""
    assert not [kind for kind in KINDS if inspect.isabstract(kind) or kind.__subclasses__()]
    assert len({kind.model_fields["kind"].default for kind in KINDS}) == len(KINDS)
    told = e.KillConfirmed(node="1.2")
    assert e.read_event(told.model_dump_json()) == told


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
