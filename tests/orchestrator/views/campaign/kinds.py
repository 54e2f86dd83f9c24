"""A campaign of each kind, told by synthetic events: some are held by files, all are looked at in a browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Combining, Minimal, PartRecord, PoolMember, Purpose, Role, SiteRecord, Spent
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.tier import Tier
from tests.orchestrator.views.campaign.builder import Story
from tests.orchestrator.views.campaign.conftest import HOSTILE


def plain_search(folder: Path | None = None) -> Story:
    """A control beside it, an attempt of every fate, one at work, words that would act if they could."""
    story = Story(folder).open(beside="grid", usd=5_000_000)
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


def noisy_scores(folder: Path | None = None) -> Story:
    """A second run, on another site, with certified scores."""
    story = Story(folder, task={"certify": {"rule": "noisy", "repeats": 5, "champion": 5}}).open()
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


def models_and_roles(folder: Path | None = None) -> Story:
    """Calls of two roles, a flag, and a hold that goes to quarantine."""
    story = Story(folder, task={"roles": {"evolver": {}, "verifier": {}}}).open(usd=5_000_000, proposer="llm")
    story.baseline(1.0)
    best = story.attempt("1", 2.0, kept=True)
    spent = Spent(microdollars=300_000, tokens=1_100)
    tokens = Tokens(input=700, output=300, cache_read=60, cache_write=40)

    def called(node: str, call: str, role: ModelRole) -> None:
        of: dict[str, Any] = {"node": node, "call": call, "role": role, "model": f"a-model `{call[:2]}`"}
        story.tell(e.ModelCallIntended(**of, worst=spent))
        story.tell(e.ModelCallEnded(**of, ending=CallEnding.COMPLETE, tokens=tokens, spent=spent))

    called(best, "c1", ModelRole.USER)
    called(best, "c2", ModelRole.VERIFIER)
    story.tell(e.Reviewed(node=best, draft=1, finding="flag", reasons=HOSTILE))
    story.tell(e.OffersCounted(node=best, offered=3, distinct=1, refused=1))
    held = story.opened("1")
    story.tell(e.Proposed(node=held, draft=1, operator="llm", description="reads the gold"))
    called(held, "c1 again", ModelRole.USER)
    story.tell(e.Reviewed(node=held, draft=1, finding="hold", reasons="it opens the answers"))
    why = f"the verifier holds it: it opens the answers; blastdoor release {held} lets it go on"
    return story.tell(e.AttemptQuarantined(node=held, ending=Ending.HELD, why=why))


def pruned_and_held_out(folder: Path | None = None) -> Story:
    """A rule that ended one trial, and a held-out split that development runs away from."""
    story = Story(folder, task={"pruning": {"rule": "median"}}).open(beside="random")
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


def judged_in_one_chamber(folder: Path | None = None) -> Story:
    """A score that can be forged, and a round that is over."""
    story = Story(folder, task={"judge": {"command": ["python3", "judge.py"], "mode": "shared"}}).open()
    story.baseline(1.0)
    story.tell(e.RoundStarted(run=1, number=1, size=1))
    story.attempt("1", 2.0, kept=True, verdict={"tier": Tier.SHARED}, description="quick")
    return story


def just_begun(folder: Path | None = None) -> Story:
    """Every part has something to say, or nothing, before the first score."""
    return Story(folder).open(beside="grid")


def islands(folder: Path | None = None) -> Story:
    """Two populations, one node copied from one to the other."""
    story = Story(folder).open(begun={"islands": 2, "migrate": 3})
    story.baseline(1.0)
    for number in range(6):
        story.attempt(
            "1", 1.0 + number / 10, kept=number == 5, island=1 + number % 2, description=f"of island {number % 2}"
        )
    return story.tell(e.Migrated(run=1, after=6, moves=(("1.5", 2),)))


def combination(folder: Path | None = None) -> Story:
    """A stage that combines what an earlier run found."""
    story = Story(folder).open()
    story.baseline(1.0)
    members = [story.attempt("1", 1.0 + number, kept=number == 1) for number in range(3)]
    story.open(2, begun={"combine": Combining(base=1, pool=2, diversity=0.5)})
    pool = tuple(PoolMember(node=name, commit="b" * 40, outputs={"dev": "e" * 64}) for name in members[:2])
    story.tell(e.PoolFrozen(run=2, members=pool))
    story.baseline(1.0, run=2)
    story.attempt("2", 4.0, kept=True, description="the mean of both", operator="combine")
    return story


def minimised(folder: Path | None = None) -> Story:
    """A winner and what was left of it, with what each part is worth."""
    story = Story(folder).open(minimisation=10)
    story.baseline(1.0)
    winner = story.attempt("1", 7.0, kept=True, description="two parts")
    less = story.attempt(winner, 7.0, role=Role.MINIMISED, description="without ballast")
    part = PartRecord(where="params.json: value", before="1", after="7", worth={"score": 0.0})
    ballast = PartRecord(where="params.json: ballast", before="0", after="2", worth={"score": 7.0})
    found = Minimal(kept=(part,), dropped=(ballast,), complete=True)
    return story.tell(e.Minimised(node=less, minimal=found))


KINDS: list[Callable[..., Story]] = [
    plain_search,
    noisy_scores,
    models_and_roles,
    pruned_and_held_out,
    judged_in_one_chamber,
    just_begun,
]
# Looked at in the browser alone: what is said of them has tests of its own.
OTHERS: list[Callable[..., Story]] = [islands, combination, minimised]
