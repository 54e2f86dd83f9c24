"""What an attempt does next: a pure function of the campaign's state, so that a resume goes on where a crash ended."""

from dataclasses import dataclass
from enum import Enum

from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Draft, Node, Purpose, Role, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import better
from orchestrator.loop.keeping import End, Question, Rules, may_be_kept


class Reviews(Enum):
    """Which changes of an attempt a verifier looks at."""

    NONE = "none"
    FIRST = "first"
    ALL = "all"


@dataclass(frozen=True)
class Propose:
    pass


@dataclass(frozen=True)
class Review:
    """Have a verifier look at what was proposed, before anything is paid for that runs it."""

    drafts: tuple[int, ...]


@dataclass(frozen=True)
class Hold:
    """All that was proposed is held: it waits for a person."""

    why: str


@dataclass(frozen=True)
class Tune:
    """Run a draft, 0 being the baseline itself, against the cheaper target."""

    draft: int


@dataclass(frozen=True)
class Promote:
    draft: int
    why: str


@dataclass(frozen=True)
class Minimise:
    """Find the fewest parts of the parent's change that keep its score, and promote them."""


@dataclass(frozen=True)
class Submit:
    pass


@dataclass(frozen=True)
class Judge:
    trial: str


Step = Propose | Review | Hold | Tune | Promote | Minimise | Submit | Judge | Question | End


def next_step(state: State, name: str, rules: Rules, *, tunes: bool, reviews: Reviews) -> Step:
    """`tunes` says whether this attempt still may tune, `reviews` what a verifier looks at."""
    node = state.nodes[name]
    if node.promoted is None and node.role is Role.MINIMISED:
        return _towards_fewer(node)
    if node.promoted is None:
        return _towards_candidate(state, node, rules.ranking, tunes, reviews)
    trial = state.trials[node.submitted] if node.submitted else None
    if trial is None or trial.let_go or not trial.ended or (trial.ending and trial.ending.retryable):
        return Submit()
    if trial.ending is not None:
        return End(trial.ending, False, trial.reason)
    if not trial.judged:
        return Judge(trial.id)
    if trial.fault is None and node.role is Role.BASELINE and tunes and (step := _tune(state, node, 0)):
        return step
    return may_be_kept(state, node, trial, rules)


def tune_trial(state: State, node: Node, draft: int) -> Trial | None:
    """The last tune trial of a draft."""
    found = [it for it in state.trials_of(node.id) if it.purpose is Purpose.TUNE and it.draft == draft]
    return found[-1] if found else None


def _towards_candidate(state: State, node: Node, ranking: Ranking, tunes: bool, reviews: Reviews) -> Step:
    if node.role is Role.BASELINE:
        start = state.run.start
        return Promote(0, f"the baseline has the files of {start}" if start else "the workspace as it stands")
    # What an agent only tried out was never handed in: an agent that comes back after a crash is asked again.
    drafts = [draft for draft in state.drafts(node.id) if not draft.tried]
    if not drafts:
        return Propose()
    usable = [draft for draft in drafts if draft.refused is None]
    if not usable:
        return End(Ending.INVALID, False, f"the change is refused: {drafts[-1].refused}")
    if step := _verified(node, usable[:1] if reviews is Reviews.FIRST else usable, reviews):
        return step
    usable = [draft for draft in usable if draft.finding != "hold"]
    # An agent that tuned by itself has made its choice.
    if tunes and len(drafts) == node.drafts:
        for draft in usable:
            if step := _tune(state, node, draft.number):
                return step
    return best_draft(usable, ranking)


def _towards_fewer(node: Node) -> Step:
    found = node.minimal
    if found is None or (found.dropped and found.kept):
        return Minimise()
    if found.kept:
        why = (
            "no part of it can be left out"
            if found.complete
            else f"no part of it was found that does nothing: {found.why}"
        )
    else:
        why = "none of its parts does anything for the score: the baseline is as good"
    return End(Ending.SCORED, False, f"{node.parent}: {why}")


def _verified(node: Node, drafts: list[Draft], reviews: Reviews) -> Step | None:
    unseen = tuple(draft.number for draft in drafts if _is_to_be_reviewed(node, draft))
    if unseen and reviews is not Reviews.NONE:
        return Review(unseen)
    if all(draft.finding == "hold" for draft in drafts):
        return Hold(f"the verifier holds it: {drafts[0].reasons}; blastdoor release {node.id} lets it go on")
    return None


def _is_to_be_reviewed(node: Node, draft: Draft) -> bool:
    """A point of the task's own space cannot game, and what a person brings needs no second look."""
    return node.role is Role.SEARCH and draft.change is not None and draft.finding is None


def _tune(state: State, node: Node, draft: int) -> Step | None:
    trial = tune_trial(state, node, draft)
    if trial is None or not trial.ended or (trial.ending and trial.ending.retryable):
        return Tune(draft)
    # Also where only its judging is left: that is paid for as the trial was, from the tuning pool.
    return Tune(draft) if trial.ending is None and not trial.judged else None


def best_draft(usable: list[Draft], ranking: Ranking) -> Promote:
    best = _best_tuned(usable, ranking)
    if best is None:
        why = "the only draft" if len(usable) == 1 else "the first draft; none has a verdict from tuning"
        return Promote(usable[0].number, why)
    return Promote(best.number, _why_best(len(_comparable(usable)), len(usable)))


def _best_tuned(drafts: list[Draft], ranking: Ranking) -> Draft | None:
    tuned = _comparable(drafts)
    best = tuned[0] if tuned else None
    for draft in tuned[1:]:
        if best and draft.verdict and best.verdict and better(draft.verdict, best.verdict, ranking):
            best = draft
    return best


def _comparable(drafts: list[Draft]) -> list[Draft]:
    tuned = [draft for draft in drafts if draft.verdict and draft.verdict.valid and not draft.verdict.suspect]
    # A resume elsewhere may have measured the later ones on other terms; only those compare with each other.
    return [draft for draft in tuned if _alike(draft, tuned[-1])]


def best_tried(state: State, node: Node, ranking: Ranking) -> Draft | None:
    """The best of what an agent tuned and did not hand in, if it did better there than the baseline."""
    best = _best_tuned([it for it in state.drafts(node.id) if it.tried and it.refused is None], ranking)
    baseline = tune_trial(state, state.nodes[state.run.root], 0)
    mine, its = best and best.verdict, baseline and baseline.verdict
    comparable = mine and its and mine.cohort == its.cohort
    return best if comparable and mine and its and better(mine, its, ranking) else None


def _why_best(tuned: int, drafts: int) -> str:
    """Only those that tuning measured on the same terms were compared."""
    if drafts == 1:
        return "the only draft"
    of = "" if tuned == drafts else f" of {drafts}"
    return (
        f"best of {tuned}{of} drafts in tuning" if tuned > 1 else f"the only one{of} drafts with a verdict from tuning"
    )


def _alike(draft: Draft, other: Draft) -> bool:
    return bool(draft.verdict and other.verdict and draft.verdict.cohort == other.verdict.cohort)
