"""What people and programs see of a campaign of each kind, kept in files: a change shows in them.

After a change that is wanted, GOLDEN=write makes the files again; look at their difference before you commit them.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Purpose, Role, SiteRecord, Spent
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.tier import Tier
from orchestrator.loop.rounds import over
from orchestrator.views.campaign.history import History
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.campaign.sections.material import NodeMaterial
from orchestrator.views.campaign.sections.node import node_sections
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import Line, plain
from orchestrator.views.render.markdown import document
from orchestrator.views.render.terminal import Terminal
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.conftest import HOSTILE

GOLDEN = Path(__file__).parent / "golden"
# Whole records of the domain, which have tests of their own and grow with every field.
_DUMPED = {"campaign", "run", "best", "node", "drafts", "trials", "events", "guards"}


def plain_search() -> Story:
    """A control beside it, an attempt of every fate, one at work, words that would act if they could."""
    story = Story().open(beside="grid", usd=5_000_000)
    story.add_guard("1", "tests")
    story.baseline(1.0)
    story.attempt("1", 2.0, kept=True, description="more rows")
    story.attempt("1", 0.5, description=HOSTILE)
    story.attempt("1", None, ending=Ending.FAILED, description="breaks")
    story.attempt("1", 1.5, role=Role.CONTROL)
    story.attempt("1", None, ending=Ending.STALLED)
    story.tell(e.AttemptQuarantined(node="1.5", ending=Ending.STALLED, why=HOSTILE))
    story.attempt("1.1", None, description="at work")
    return story.tell(e.Steered(text="use a heap"), e.Steered(text=HOSTILE))


def noisy_scores() -> Story:
    """A second run, on another site, with certified scores."""
    story = Story(task={"certify": {"rule": "noisy", "repeats": 5, "champion": 5}}).open()
    story.baseline(1.0)
    story.attempt("1", 9.0)
    story.open(2)
    caveats = ("no seccomp",)
    site = SiteRecord(backend="modal", boundary="modal: a sandbox", judge="docker/runc", caveats=caveats)
    story.tell(e.SiteOpened(site=site))
    story.baseline(1.0, run=2)
    for value in (0.8, 1.2, 0.9):
        story.score("2", {"score": value}, purpose=Purpose.REPEAT)
    story.attempt("2", 3.0, kept=True)
    story.score("2.1", {"score": 2.5}, purpose=Purpose.REPLAY)
    return story.tell(e.CampaignStopped(reason="40 of 40 attempts are used"))


def models_and_roles() -> Story:
    """Calls of two roles, a flag and a hold."""
    story = Story(task={"roles": {"evolver": {}, "verifier": {}}}).open(usd=5_000_000, proposer="llm")
    story.baseline(1.0)
    best = story.attempt("1", 2.0, kept=True)
    spent, tokens = Spent(microdollars=300_000, tokens=1_100), Tokens(input=700, output=300, cache_read=100)
    for call, role in (("c1", ModelRole.USER), ("c2", ModelRole.VERIFIER)):
        of: dict[str, Any] = {"node": best, "call": call, "role": role, "model": f"a-model `{call}`"}
        story.tell(e.ModelCallIntended(**of, worst=spent))
        story.tell(e.ModelCallEnded(**of, ending=CallEnding.COMPLETE, tokens=tokens, spent=spent))
    story.tell(e.Reviewed(node=best, draft=1, finding="flag", reasons=HOSTILE))
    return story.tell(e.OffersCounted(node=best, offered=3, distinct=1, refused=1))


def pruned_and_held_out() -> Story:
    """A rule that ended one trial, and a held-out split that development runs away from."""
    story = Story().open(beside="random")
    story.baseline(1.0)
    story.attempt("1", 2.0, kept=True)
    node = story.opened("1")
    look = Look(step=4, value=0.2, why="step 4: 0.2 at best, below the median 0.5 of 5 peers")
    reports = Reports(points=((0, 0.1), (4, 0.2)), count=5)
    ended = e.TrialEnded(trial=f"{node}-1", ending=Ending.PRUNED, spent=Spent(milliseconds=9), reports=reports)
    story.tell(e.TrialIntended(trial=f"{node}-1", node=node, purpose=Purpose.SUBMIT, draft=0))
    story.tell(ended.model_copy(update={"pruning": look}))
    story.end(node, Ending.PRUNED)
    for query, (name, better, released) in enumerate((("1", False, 0.9), ("1.1", True, 1.2)), 1):
        story.tell(e.HeldOutIntended(node=name, query=query, queries=10))
        asked: dict[str, Any] = {"node": name, "query": query, "better": better, "released": released, "step": 0.1}
        story.tell(e.HeldOutAsked(**asked, cohort="held"))
    return story


def judged_in_one_chamber() -> Story:
    """A score that can be forged, and a round that is over."""
    story = Story(task={"judge": {"command": ["python3", "judge.py"], "mode": "shared"}}).open()
    story.baseline(1.0)
    story.tell(e.RoundStarted(run=1, number=1, size=1))
    story.attempt("1", 2.0, kept=True, verdict={"tier": Tier.SHARED}, description="quick")
    return story


def just_begun() -> Story:
    """Every part has something to say, or nothing, before the first score."""
    return Story().open(beside="grid")


KINDS: list[Callable[[], Story]] = [
    plain_search,
    noisy_scores,
    models_and_roles,
    pruned_and_held_out,
    judged_in_one_chamber,
    just_begun,
]


def _shown(title: str, lines: list[Line]) -> str:
    return "\n".join([f"=== {title}", *map(plain, lines), ""])


def _rendered(story: Story) -> dict[str, str]:
    state = story.state
    reason = over(state.campaign.round) if state.campaign.round else "why it ended"
    made = replace(material(story), diff="--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-1\n+2\n", reason=reason)
    places = {place: sections(made, place) for place in Place}
    best = state.champion() or state.nodes[state.run.root]
    node = NodeMaterial(state, best, Ranking([Metric()]), story.task, History.of(story.events, best.id))
    about = node_sections(node)
    screen = Terminal(100)
    told = {place.name or "": record(found) for place, found in places.items()} | {"SHOW": record(about)}
    return {
        "txt": _shown("status", list(screen.digest(places[Place.STATUS])))
        + _shown("the end of a run", list(Terminal(None).ending(places[Place.ENDING])))
        + _shown("show", list(screen.whole(about))),
        "md": document(places[Place.REPORT]) + document(about),
        "json": "".join(
            f"{place} {key}: {json_text(value, None)}\n"
            for place, found in told.items()
            for key, value in found.items()
            if key not in _DUMPED
        ),
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind(kind: Callable[[], Story]) -> None:
    """The screen, the document and the JSON are those that are kept."""
    for suffix, text in _rendered(kind()).items():
        kept = GOLDEN / f"{kind.__name__}.{suffix}"
        if os.environ.get("GOLDEN") == "write":
            GOLDEN.mkdir(exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        assert text.splitlines() == kept.read_text(encoding="utf-8").splitlines()
