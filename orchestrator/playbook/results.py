"""What an attempt brought, as far as the playbook can have a part in it: how much better it is than what it was built
on. All that is no improvement counts alike, a crash like a score that is a little worse: neither got anybody further.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.domain.certify import Standing
from orchestrator.domain.metric import Ranking, Rule
from orchestrator.domain.records import Node, Phase, Purpose, Role
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict

# Below every gain, however small.
NO_GAIN: Standing = ()


def is_over(node: Node) -> bool:
    """Whether there is nothing more to be waited for; one in quarantine may come back, if a person says so."""
    return node.phase in (Phase.ENDED, Phase.QUARANTINED)


def result_of(state: State, node: Node, ranking: Ranking) -> Standing | None:
    """None for an attempt that says nothing: it is not over, ended free, or cannot be compared with its parent.

    What the verifier holds or flags, and what did not stand when it was run again, brought nothing.
    """
    if node.phase is Phase.QUARANTINED and node.finding == "hold":
        return NO_GAIN
    if node.phase is not Phase.ENDED or node.ending is None or not node.ending.charged or node.parent is None:
        return None
    if not node.ending.scoreable or node.finding in ("hold", "flag"):
        return NO_GAIN
    mine = node.verdict
    if mine is None or not _counts(mine, ranking):
        return NO_GAIN
    theirs = state.nodes[node.parent].verdicts.get(mine.cohort)
    if theirs is None or ranking.missing(theirs.metrics):
        return None
    gains = [_gain(verdict, theirs, ranking) for verdict in (mine, *_replays(state, node, mine.cohort))]
    return min(gains)


def _gain(mine: Verdict | None, theirs: Verdict, ranking: Ranking) -> Standing:
    if mine is None or not _counts(mine, ranking) or not ranking.better(mine.metrics, theirs.metrics):
        return NO_GAIN
    if ranking.rule is Rule.PARETO:
        return (1.0,)
    pairs = zip(ranking.standing(mine.metrics), ranking.standing(theirs.metrics), strict=True)
    return tuple(new - old for new, old in pairs)


def _replays(state: State, node: Node, cohort: str) -> Iterable[Verdict | None]:
    """None for one that came to nothing, by the candidate's own doing."""
    for trial in state.trials_of(node.id):
        if trial.purpose is not Purpose.REPLAY or not trial.ended:
            continue
        if trial.judged and trial.verdict and trial.verdict.cohort == cohort:
            yield trial.verdict
        elif trial.fault or (trial.ending and not trial.ending.retryable):
            yield None


def _counts(verdict: Verdict, ranking: Ranking) -> bool:
    return verdict.valid and not verdict.suspect and not ranking.missing(verdict.metrics)


@dataclass(frozen=True)
class Tally:
    """What attempts with one version brought in one run. `best` is the largest gain over a parent."""

    attempts: int = 0
    gained: int = 0
    kept: int = 0
    flagged: int = 0
    failed: int = 0
    best: Standing = NO_GAIN

    @property
    def words(self) -> str:
        if not self.attempts:
            return "no results yet"
        told = f"{self.gained} of {self.attempts} better than what they were built on, {self.kept} kept"
        told += f", {self.failed} without a score" if self.failed else ""
        return told + (f", {self.flagged} flagged" if self.flagged else "")


def tallies(state: State, ranking: Ranking, run: int | None = None) -> dict[int, Tally]:
    """Of every version that an attempt of a run, else of the present one, was made with."""
    root = f"{run or state.campaign.run}."
    found: dict[int, list[tuple[Node, Standing]]] = {}
    for node in state.nodes.values():
        if node.playbook is None or node.role is not Role.SEARCH or not node.id.startswith(root):
            continue
        if (result := result_of(state, node, ranking)) is not None:
            found.setdefault(node.playbook, []).append((node, result))
    return {version: _tally(results) for version, results in sorted(found.items())}


def _tally(results: list[tuple[Node, Standing]]) -> Tally:
    counts: Counter[str] = Counter()
    for node, result in results:
        counts["gained"] += result != NO_GAIN
        counts["kept"] += node.kept
        counts["flagged"] += node.finding in ("hold", "flag")
        counts["failed"] += node.ending is not None and not node.ending.scoreable
    return Tally(attempts=len(results), best=max(result for _, result in results), **counts)
