"""What a candidate with a better score still has to show before it is kept. Pure, as steps are."""

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.domain.certify import Certify, Evidence, Stand, Standing, look, median
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Certification, Node, Purpose, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Aim, Decision, Verdict, better, decide, objection, tolerate

# So often it is tried again where a run landed on other hardware, or where the champion itself did not run.
_TRIES = 3


@dataclass(frozen=True)
class Replay:
    """Run the candidate once more, to see whether its score stands."""


@dataclass(frozen=True)
class OpenTest:
    """Fix the level of a test before anything is measured for it."""

    champion: str
    cohort: str


@dataclass(frozen=True)
class Repeat:
    """Measure the candidate once more."""


@dataclass(frozen=True)
class RepeatChampion:
    """Measure the champion once more, while it has been measured fewer than `count` times."""

    champion: str
    cohort: str
    count: int


@dataclass(frozen=True)
class JudgeReplay:
    trial: str


CertifyStep = Replay | JudgeReplay | OpenTest | Repeat | RepeatChampion


def certified(
    state: State,
    node: Node,
    verdict: Verdict,
    champion: Node,
    ranking: Ranking,
    certify: Certify,
    aim: Aim = Aim.BETTER,
) -> CertifyStep | Decision:
    """The decision, or what has to be run before there can be one."""
    if certify.noisy:
        return _tested(state, node, verdict, champion, ranking, certify)
    return _replayed(state, node, verdict, champion, ranking, certify, aim)


def samples(state: State, node: Node, cohort: str) -> list[Verdict]:
    """A node's fresh measurements in a cohort: since its last test began, so none of them had a part in an earlier one.

    As a champion it keeps those of the test that it passed. They are too high rather than too low: that they were high
    is why it passed.
    """
    since = node.certification.since if node.certification else 0
    found = (trial.verdict for trial in _repeats(state, node, since) if trial.judged)
    return [verdict for verdict in found if verdict and verdict.valid and verdict.cohort == cohort]


def evidence(state: State, node: Node, ranking: Ranking, certify: Certify) -> Evidence | None:
    """How the node's last test stands; None where there was none."""
    test = node.certification
    if test is None:
        return None
    theirs = _standings(state, state.nodes[test.champion], test.cohort, ranking)[: certify.champion]
    # A node that is champion by now was measured again as such; its own test saw no more than its repeats.
    mine = _standings(state, node, test.cohort, ranking)[: certify.repeats]
    for count in range(len(mine) + 1):
        found = look(theirs, mine[:count], test.level, certify.repeats)
        if found.stand is Stand.PROVEN:
            return found
    return found


def bar_of(state: State, champion: Node, cohort: str, ranking: Ranking) -> Verdict:
    """What is to be beaten: the worse of the champion's first score and its replayed one."""
    first = champion.verdicts[cohort]
    again = [trial.verdict for trial in state.trials_of(champion.id) if trial.purpose is Purpose.REPLAY]
    for verdict in again:
        if verdict and verdict.valid and verdict.cohort == cohort and better(first, verdict, ranking):
            return verdict
    return first


def _replayed(
    state: State, node: Node, verdict: Verdict, champion: Node, ranking: Ranking, certify: Certify, aim: Aim
) -> CertifyStep | Decision:
    bar = bar_of(state, champion, verdict.cohort, ranking)
    smaller = node.size is not None and champion.size is not None and node.size < champion.size

    def against_bar(new: Verdict) -> Decision:
        if aim is Aim.NOT_WORSE:
            return tolerate(new, bar, ranking, lower_tier=state.run.lower_tier)
        return decide(new, bar, ranking, lower_tier=state.run.lower_tier, smaller=smaller)

    decision = against_bar(verdict)
    if not decision.kept or not certify.replays:
        return decision
    replays = [trial for trial in state.trials_of(node.id) if trial.purpose is Purpose.REPLAY]
    last = replays[-1] if replays else None
    if last is None or _is_free(last):
        return Replay()
    if last.ending is None and not last.judged:
        return JudgeReplay(last.id)
    if failed := _bad(last):
        return Decision(False, f"it did not stand when it was run again: {failed}")
    again = last.verdict
    if again is None or again.cohort != verdict.cohort:
        return _elsewhere(replays, verdict.cohort) or Replay()
    if not against_bar(again).kept:
        return Decision(False, _did_not_stand(verdict, again, ranking))
    return decision


def _elsewhere(trials: list[Trial], cohort: str) -> Decision | None:
    """Whether it landed in other cohorts too often."""
    missed = sum(bool(trial.verdict and trial.verdict.cohort != cohort) for trial in trials)
    if missed < _TRIES:
        return None
    why = "run again, it landed on other hardware each time, so nothing says that its score stands"
    return Decision(False, why, undecided=True)


def _did_not_stand(first: Verdict, again: Verdict, ranking: Ranking) -> str:
    differs = next((it.name for it in ranking.metrics if first.metrics[it.name] != again.metrics[it.name]), None)
    if differs is None:
        return "no better than the champion"
    told = f"{first.metrics[differs]:.6g}, then {again.metrics[differs]:.6g}"
    name = f" ({differs})" if differs != ranking.metrics[0].name else ""
    return f"its score did not stand when it was run again: {told}{name}"


def _tested(
    state: State, node: Node, verdict: Verdict, champion: Node, ranking: Ranking, certify: Certify
) -> CertifyStep | Decision:
    cohort = verdict.cohort
    if refused := objection(verdict, champion.verdicts[cohort], lower_tier=state.run.lower_tier):
        return Decision(False, refused)
    theirs = _standings(state, champion, cohort, ranking)
    if len(theirs) < certify.champion:
        if missed := _champion_fails(state, node, champion, cohort):
            return Decision(False, missed, undecided=True)
        return RepeatChampion(champion.id, cohort, certify.champion)
    theirs = theirs[: certify.champion]
    test = node.certification
    if test is None or (test.champion, test.cohort) != (champion.id, cohort):
        # Also where the champion changed in the middle: another one to beat is another test, measured anew.
        if ranking.standing(verdict.metrics) <= median(theirs):
            return Decision(False, f"no better than what {champion.id} has at the median")
        return OpenTest(champion.id, cohort)
    return _looked_at(state, node, test, theirs, ranking, certify)


def _looked_at(
    state: State, node: Node, test: Certification, theirs: list[Standing], ranking: Ranking, certify: Certify
) -> CertifyStep | Decision:
    repeats = [trial for trial in _repeats(state, node, test.since) if not _is_free(trial)]
    for trial in repeats:
        if (trial.judged or trial.ending) and (failed := _bad(trial)):
            return Decision(False, f"it did not run again: {failed}")
    found = look(theirs, _standings(state, node, test.cohort, ranking), test.level, certify.repeats)
    if found.stand is Stand.PROVEN:
        return Decision(True, f"proven better than the champion: {found.words}")
    if found.stand is Stand.FUTILE:
        return Decision(False, f"not proven better than the champion: {found.words}")
    return _elsewhere(repeats, test.cohort) or Repeat()


def _champion_fails(state: State, node: Node, champion: Node, cohort: str) -> str | None:
    """Its repeats that came to nothing are missing data; too many in a row, on this attempt's account, are too many."""
    told = [it for it in _repeats(state, champion, 0) if it.started_at >= node.opened_at and (it.judged or _bad(it))]
    last = [trial for trial in told if not _is_free(trial)][-_TRIES:]
    if len(last) < _TRIES or any(it.verdict and it.verdict.valid and it.verdict.cohort == cohort for it in last):
        return None
    failed = _bad(last[-1]) or "it landed on other hardware"
    return f"the champion {champion.id} could not be measured again, so nothing can be proven: {failed}"


def _repeats(state: State, node: Node, since: int) -> Iterator[Trial]:
    """The repeats of a node that were begun after so many trials."""
    for number in range(since + 1, node.trials + 1):
        trial = state.trials[f"{node.id}-{number}"]
        if trial.purpose is Purpose.REPEAT:
            yield trial


def _standings(state: State, node: Node, cohort: str, ranking: Ranking) -> list[Standing]:
    return [ranking.standing(verdict.metrics) for verdict in samples(state, node, cohort)]


def _is_free(trial: Trial) -> bool:
    """Whether it told nothing: it is under way, or ended in a way that is not the candidate's doing."""
    return not trial.ended or bool(trial.ending and trial.ending.retryable)


def _bad(trial: Trial) -> str | None:
    """What was wrong with a run that told something; None for a verdict that counts."""
    if trial.ending is not None:
        return f"{trial.ending}: {trial.reason}" if trial.reason else str(trial.ending)
    if trial.fault is not None:
        return f"the judge can not score it: {trial.fault}"
    verdict = trial.verdict
    if verdict is None:
        return None
    if not verdict.valid:
        return "the judge says that it is no solution"
    return f"too good to be believed: {', '.join(verdict.suspect)} beyond the ceiling" if verdict.suspect else None
