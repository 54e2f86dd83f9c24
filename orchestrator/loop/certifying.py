"""What a candidate with a better score still has to show before it is kept. Pure, as steps are."""

from dataclasses import dataclass

from orchestrator.domain.certify import EACH, Block, Certify, Evidence, Stand, look, look_at_blocks, median, turns
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Certification, Node, Purpose, Role, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Aim, Decision, Verdict, better, decide, objection, tolerate

# So often it is tried again where a run landed on other hardware, or where the champion itself did not run.
_TRIES = 3
# For each measurement that screening looks at, so many attempts may pass before it is too old.
_FRESH = 4
_WORDS = {
    (Stand.PROVEN, False): "proven better than",
    (Stand.FUTILE, False): "not proven better than",
    (Stand.PROVEN, True): "proven better than",
    (Stand.WORSE, True): "proven worse than",
    (Stand.FUTILE, True): "proven neither better nor worse than",
}


@dataclass(frozen=True)
class Replay:
    """Run the candidate once more, to see whether its score stands."""


@dataclass(frozen=True)
class OpenTest:
    """Fix the level of a test before anything is measured for it. `both`: it may also prove the candidate worse."""

    champion: str
    cohort: str
    both: bool = False


@dataclass(frozen=True)
class RunBlock:
    """Run what is `left` of a block, of which it is the candidate's turn, or the champion's."""

    champion: str
    block: int
    left: int
    mine: bool


@dataclass(frozen=True)
class MeasureChampion:
    """Measure the champion once more, while too few of its measurements are fresh enough to screen by."""

    champion: str
    cohort: str


@dataclass(frozen=True)
class JudgeReplay:
    trial: str


CertifyStep = Replay | JudgeReplay | OpenTest | RunBlock | MeasureChampion


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
        return _tested(state, node, verdict, champion, ranking, certify, aim)
    return _replayed(state, node, verdict, champion, ranking, certify, aim)


def samples(state: State, node: Node, cohort: str) -> list[Verdict]:
    """A node's measurements in a cohort, from the oldest on: its repeats since its last test began, so that none of
    them had a part in an earlier one, and its runs as the reference of others.
    """
    return [trial.verdict for trial in _measurements(state, node, cohort) if trial.verdict]


def fresh(state: State, champion: Node, cohort: str, certify: Certify) -> list[Verdict]:
    """The champion's latest measurements that a first score may be held against, `certify.champion` at most.

    Those of long ago are of another machine, as it were: one that got slower would have every first score fall behind
    them, and no test would ever be opened that measures the champion again.
    """
    least = state.attempts - _FRESH * certify.champion
    found = [it.verdict for it in _measurements(state, champion, cohort) if it.verdict and it.attempts >= least]
    return found[-certify.champion :]


def evidence(state: State, node: Node, ranking: Ranking) -> Evidence | None:
    """How the node's last test stands; None where there was none."""
    test = node.certification
    if test is None:
        return None
    if test.blocks:
        return look_at_blocks(blocks_of(state, node, ranking), test.level, test.blocks, both=test.both)
    theirs, mine = ([ranking.standing(it.metrics) for it in side] for side in sides(state, node))
    looks = (look(theirs, mine[:count], test.level, len(mine)) for count in range(1, len(mine) + 1))
    # One that was kept was measured again as champion; its own test saw no more than proved it.
    return next((it for it in looks if it.stand is Stand.PROVEN), look(theirs, mine, test.level, len(mine)))


def sides(state: State, node: Node) -> tuple[list[Verdict], list[Verdict]]:
    """What the node's last test compares: the champion's measurements, and its own."""
    test = node.certification
    if test is None:
        return [], []
    if not test.blocks:
        return _of_old_test(state, state.nodes[test.champion], test.cohort), _of_old_test(state, node, test.cohort)
    told = [trial for trial in _in_test(state, node) if _counts(trial, node)]
    theirs = [it.verdict for it in told if it.purpose is Purpose.REFERENCE and it.verdict]
    return theirs, [it.verdict for it in told if it.purpose is Purpose.REPEAT and it.verdict]


def blocks_of(state: State, node: Node, ranking: Ranking) -> list[Block]:
    """What was measured in the node's last test, in the order of its turns; the last block may be incomplete."""
    told = [(trial.purpose is Purpose.REPEAT, trial.verdict) for trial in _in_test(state, node) if _counts(trial, node)]
    found = []
    for at in range(0, len(told), 2 * EACH):
        of_block = told[at : at + 2 * EACH]
        sides = [
            tuple(ranking.standing(it.metrics) for mine, it in of_block if it and mine is side)
            for side in (False, True)
        ]
        found.append(Block(*sides))
    return found


def bar_of(state: State, champion: Node, cohort: str, ranking: Ranking) -> Verdict:
    """What is to be beaten: the worse of the champion's first score and its replayed one.

    Where that holds times that may be less, the first run that the champion was measured with since and that has none.
    """
    bar = champion.verdicts[cohort]
    for trial in state.trials_of(champion.id):
        again = trial.verdict if trial.purpose is Purpose.REPLAY else None
        if again and again.valid and again.cohort == cohort and better(bar, again, ranking):
            bar = again
    if not bar.at_most:
        return bar
    measured = (trial.verdict for trial in _measurements(state, champion, cohort))
    return next((verdict for verdict in measured if verdict and not verdict.at_most), bar)


def is_measured(state: State, champion: Node, cohort: str, ranking: Ranking, certify: Certify) -> bool:
    """Whether enough is known of a champion to hold a first score against it."""
    if certify.noisy:
        return len(fresh(state, champion, cohort, certify)) >= certify.champion
    return not bar_of(state, champion, cohort, ranking).at_most


def _replayed(
    state: State, node: Node, verdict: Verdict, champion: Node, ranking: Ranking, certify: Certify, aim: Aim
) -> CertifyStep | Decision:
    bar = bar_of(state, champion, verdict.cohort, ranking)
    smaller = node.is_smaller_change_than(champion)

    def against_bar(new: Verdict) -> Decision:
        if aim is Aim.NOT_WORSE:
            return tolerate(new, bar, ranking, lower_tier=state.run.lower_tier)
        return decide(new, bar, ranking, lower_tier=state.run.lower_tier, smaller=smaller)

    decision = against_bar(verdict)
    if not decision.kept:
        return decision
    if bar.at_most:
        # What is less than a bound is not better than what lies below that bound.
        missed = _champion_fails(state, node, champion, verdict.cohort, 0) or _stays_a_bound(state, node, champion, bar)
        return Decision(False, missed, undecided=True) if missed else MeasureChampion(champion.id, verdict.cohort)
    if not certify.replays:
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


def _stays_a_bound(state: State, node: Node, champion: Node, bar: Verdict) -> str | None:
    """Whether the champion was measured often enough, for this attempt, without a time that can be told."""
    told = [it for it in _of_purpose(state, node, Purpose.REFERENCE, 0) if it.subject == champion.id]
    if sum(bool(it.verdict and it.verdict.at_most) for it in told) < _TRIES:
        return None
    name = bar.at_most[0]
    bound = f"{name} of {champion.id} is only known to be at most {bar.metrics[name]:.6g}, also when it was run again"
    return f"{bound}, so nothing can be told from it; let the judge time more work"


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
    state: State, node: Node, verdict: Verdict, champion: Node, ranking: Ranking, certify: Certify, aim: Aim
) -> CertifyStep | Decision:
    """Only who has to be better is screened: one score says nothing of whether a candidate is worse."""
    cohort = verdict.cohort
    if refused := objection(verdict, champion.verdicts[cohort], lower_tier=state.run.lower_tier):
        return Decision(False, refused)
    test, both = node.certification, aim is Aim.NOT_WORSE
    if test and test.blocks and (test.champion, test.cohort, test.both) == (champion.id, cohort, both):
        return _looked_at(state, node, test, ranking)
    # Also where the champion changed in the middle: another one to beat is another test, measured again.
    if not both:
        theirs = [ranking.standing(it.metrics) for it in fresh(state, champion, cohort, certify)]
        if len(theirs) < certify.champion:
            missed = _champion_fails(state, node, champion, cohort, 0)
            return Decision(False, missed, undecided=True) if missed else MeasureChampion(champion.id, cohort)
        if ranking.standing(verdict.metrics) <= median(theirs):
            return Decision(False, f"no better than what {champion.id} has at the median")
    return OpenTest(champion.id, cohort, both)


def next_in_test(state: State, name: str, ranking: Ranking) -> RunBlock | None:
    """The next run of a node's test; None when it is over, or its champion is none any more."""
    node = state.nodes[name]
    test = node.certification
    rival = node.parent if node.role is Role.MINIMISED else state.run.champions.get(test.cohort) if test else None
    if test is None or rival != test.champion:
        return None
    found = _looked_at(state, node, test, ranking)
    return found if isinstance(found, RunBlock) else None


def _looked_at(state: State, node: Node, test: Certification, ranking: Ranking) -> RunBlock | Decision:
    """Where it is enough not to be worse, a candidate passes unless it is proven worse."""
    repeats = [it for it in _in_test(state, node) if it.purpose is Purpose.REPEAT and not _is_free(it)]
    for trial in repeats:
        if (trial.judged or trial.ending) and (failed := _bad(trial)):
            return Decision(False, f"it did not run again: {failed}")
    blocks = blocks_of(state, node, ranking)
    found = look_at_blocks(blocks, test.level, test.blocks, both=test.both)
    if found.stand is not Stand.OPEN:
        kept = found.stand is Stand.PROVEN or (test.both and found.stand is not Stand.WORSE)
        late = "" if found.repeats else f", more than {EACH * test.blocks} repeats can show; raise certify.repeats"
        return Decision(kept, f"{_WORDS[found.stand, test.both]} the champion: {found.words}{late}")
    if missed := _champion_fails(state, node, state.nodes[test.champion], test.cohort, test.since):
        return Decision(False, missed, undecided=True)
    done = sum(len(it.champion) + len(it.candidate) for it in blocks)
    block, at = divmod(done, 2 * EACH)
    mine = turns(f"{state.run.seed}/{test.number}", block)[at]
    return _elsewhere(repeats, test.cohort) or RunBlock(test.champion, block, 2 * EACH - at, mine)


def _champion_fails(state: State, node: Node, champion: Node, cohort: str, since: int) -> str | None:
    """Its runs that came to nothing are missing data; too many in a row, for this attempt, are too many."""
    told = [it for it in _of_purpose(state, node, Purpose.REFERENCE, since) if it.subject == champion.id]
    last = [it for it in told if (it.judged or _bad(it)) and not _is_free(it)][-_TRIES:]
    if len(last) < _TRIES or any(it.verdict and it.verdict.valid and it.verdict.cohort == cohort for it in last):
        return None
    failed = _bad(last[-1]) or "it landed on other hardware"
    return f"the champion {champion.id} could not be measured again, so nothing can be proven: {failed}"


def _measurements(state: State, node: Node, cohort: str) -> list[Trial]:
    own = _of_purpose(state, node, Purpose.REPEAT, node.certification.since if node.certification else 0)
    others = (state.trials[name] for name in node.measured)
    return [
        it for it in (*own, *others) if it.judged and it.verdict and it.verdict.valid and it.verdict.cohort == cohort
    ]


def _in_test(state: State, node: Node) -> list[Trial]:
    """The runs of the node's last test, of both sides, in their order."""
    test = node.certification
    found = (trial for trial in state.trials_of(node.id) if test and _number(trial) > test.since)
    sides = {(Purpose.REPEAT, ""), (Purpose.REFERENCE, test.champion if test else "")}
    return [trial for trial in found if (trial.purpose, trial.subject) in sides]


def _counts(trial: Trial, node: Node) -> bool:
    """Whether a run is a measurement of its node's test; else its turn comes again."""
    test, verdict = node.certification, trial.verdict
    return bool(test and trial.judged and verdict and verdict.valid and verdict.cohort == test.cohort)


def _of_old_test(state: State, node: Node, cohort: str) -> list[Verdict]:
    """Measurements as they were made when a champion was measured beforehand, as repeats of its own node."""
    since = node.certification.since if node.certification else 0
    found = (trial.verdict for trial in _of_purpose(state, node, Purpose.REPEAT, since) if trial.judged)
    return [verdict for verdict in found if verdict and verdict.valid and verdict.cohort == cohort]


def _of_purpose(state: State, node: Node, purpose: Purpose, since: int) -> list[Trial]:
    """The trials of a node that were begun after so many."""
    return [it for it in state.trials_of(node.id) if it.purpose is purpose and _number(it) > since]


def _number(trial: Trial) -> int:
    return int(trial.id.rpartition("-")[2])


def _is_free(trial: Trial) -> bool:
    """Whether it told nothing: it is under way, or ended in a way that is not the candidate's doing."""
    return not trial.ended or bool(trial.ending and trial.ending.retryable)


def _bad(trial: Trial) -> str | None:
    """What was wrong with a run that told something; None for a verdict that counts."""
    if trial.ending is not None:
        return f"{trial.ending}: {trial.reason}" if trial.reason else str(trial.ending)
    if trial.fault is not None:
        return f"the judge cannot score it: {trial.fault}"
    verdict = trial.verdict
    if verdict is None:
        return None
    if not verdict.valid:
        return "the judge says that it is no solution"
    return f"too good to be believed: {', '.join(verdict.suspect)} beyond the ceiling" if verdict.suspect else None
