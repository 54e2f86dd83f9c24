"""Whether a candidate may be kept: the one decision that a campaign, a gate and a replay make. Pure.

Each question is asked only where all before it said yes: the score and whether it stands (certifying), the guards, the
held-out split, a person. The answer is a step that has to be taken first, or the end.
"""

from dataclasses import dataclass, replace

from orchestrator.domain.certify import Certify
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Ranking
from orchestrator.domain.proposal import Drawn
from orchestrator.domain.records import HeldOut, Node, Purpose, Role, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Aim, Decision, Stage
from orchestrator.loop.certifying import CertifyStep, certified
from orchestrator.task import HeldOutSpec


@dataclass(frozen=True)
class Rules:
    """What a run decides by. `asks`: a person has the last word."""

    ranking: Ranking
    certify: Certify
    heldout: HeldOutSpec | None = None
    aim: Aim = Aim.BETTER
    asks: bool = False


@dataclass(frozen=True)
class OpenCohort:
    cohort: str
    trial: str


@dataclass(frozen=True)
class MeasureParent:
    """Run the parent, whose score is to be kept, on what its child was measured on."""

    cohort: str


@dataclass(frozen=True)
class CheckGuard:
    name: str


@dataclass(frozen=True)
class AskHeldOut:
    pass


@dataclass(frozen=True)
class AskPerson:
    """Whether it may become the champion is a person's to say; until then it waits."""


@dataclass(frozen=True)
class End:
    """`stage` had the last word; None where the judge was not asked, or did not call it a solution. `drawn` is what was
    chosen for an attempt that came to no proposal.
    """

    ending: Ending
    kept: bool
    why: str
    stage: Stage | None = None
    undecided: bool = False
    drawn: Drawn | None = None


Question = OpenCohort | MeasureParent | CertifyStep | CheckGuard | AskHeldOut | AskPerson
_NO_SOLUTION = End(Ending.INVALID, False, "the judge says that it is no solution")
_CONTROL = End(Ending.SCORED, False, "control: compared in the report, never a parent or champion")


def may_be_kept(state: State, node: Node, trial: Trial, rules: Rules) -> Question | End:
    """The end of a node whose submitted trial was judged, or what is still to be asked before there can be one."""
    if trial.fault is not None:
        return End(Ending.INVALID, False, f"the judge cannot score it: {trial.fault}")
    if trial.verdict is None or not trial.verdict.valid:
        return _NO_SOLUTION
    if node.role is Role.CONTROL:
        return _CONTROL
    if node.role is Role.BASELINE:
        return _asked_of_baseline(state, node, rules.heldout)
    holder = _to_compare_with(state, node, trial.verdict.cohort)
    if holder is None and node.role is Role.MINIMISED:
        return MeasureParent(trial.verdict.cohort)
    if holder is None:
        return OpenCohort(trial.verdict.cohort, trial.id)
    rules, stage = rules_for(node, rules), stage_of(state, node, rules.certify)
    found: Question | Decision
    found = certified(state, node, trial.verdict, holder, rules.ranking, rules.certify, rules.aim)
    if isinstance(found, Decision) and found.kept:
        stage, found = _guarded(state, node, rules.aim) or (stage, found)
    if isinstance(found, Decision) and found.kept and rules.heldout:
        stage, found = _held_out(state, node, found, rules.heldout)
    if isinstance(found, Decision) and found.kept:
        stage, found = _answered(node, found, rules.asks) or (stage, found)
    if not isinstance(found, Decision):
        return found
    why = found.why if node.role is not Role.MINIMISED else found.why.replace("the champion", holder.id)
    return End(Ending.SCORED, found.kept, why, stage, found.undecided)


def rules_for(node: Node, rules: Rules) -> Rules:
    """A smaller change must be as good as the one that it comes of. Its files ran before, so its first run is its
    replay; it replaces no champion, so nobody is asked.
    """
    if node.role is not Role.MINIMISED:
        return rules
    return replace(rules, aim=Aim.NOT_WORSE, certify=replace(rules.certify, replay=False), asks=False)


def _to_compare_with(state: State, node: Node, cohort: str) -> Node | None:
    """What the candidate has to beat, or to be as good as; None where that has no score in the cohort yet."""
    if node.role is Role.MINIMISED:
        parent = state.nodes[node.parent or ""]
        return parent if cohort in parent.verdicts else None
    champion = state.run.champions.get(cohort)
    return state.nodes[champion] if champion else None


def stage_of(state: State, node: Node, certify: Certify) -> Stage:
    """How far a comparison with the champion got: to the first score, or to the runs that came after it."""
    if certify.noisy:
        return Stage.REPEATS if node.certification else Stage.SCORE
    replayed = any(trial.purpose is Purpose.REPLAY for trial in state.trials_of(node.id))
    return Stage.REPLAY if replayed else Stage.SCORE


Finding = tuple[Stage, Question | Decision]


def _guarded(state: State, node: Node, aim: Aim) -> Finding | None:
    """Guards are run only for a candidate that would be kept: they cost as much as a trial. None where all passed."""
    for guard in state.guards_of(node.id):
        passed = node.guarded.get(guard.name)
        if passed is None:
            return Stage.GUARDS, CheckGuard(guard.name)
        if not passed:
            return Stage.GUARDS, Decision(False, f"{aim}, but the guard {guard.name} does not pass")
    return None


def _asked_of_baseline(state: State, node: Node, spec: HeldOutSpec | None) -> Question | End:
    """Its rounded score is where the ladder starts, so it must have one."""
    kept = End(Ending.SCORED, True, "baseline")
    if spec is None:
        return kept
    if not node.heldout:
        return AskHeldOut() if state.campaign.asked < spec.queries else kept
    answer = next(iter(node.heldout.values()))
    if answer.released is not None:
        return kept
    why = f"it has no score on the held-out split: {answer.fault}; correct [heldout], blastdoor check tells more"
    return End(Ending.INVALID, False, why, Stage.HELD_OUT)


def _held_out(state: State, node: Node, decision: Decision, spec: HeldOutSpec) -> Finding:
    if node.heldout:
        return Stage.HELD_OUT, _by_ladder(decision, next(iter(node.heldout.values())), spec)
    if state.campaign.asked < spec.queries:
        return Stage.HELD_OUT, AskHeldOut()
    if not spec.gate:
        return Stage.HELD_OUT, decision
    why = f"{decision.why}, but {_used_up(state)}: nothing more is promoted"
    return Stage.HELD_OUT, Decision(False, why, undecided=True)


def nothing_can_be_kept(rules: Rules, state: State) -> str | None:
    """Why no candidate of a search can be kept any more, whatever its score: to go on would only cost."""
    spec = rules.heldout
    if spec is None or not spec.gate or state.campaign.asked < spec.queries:
        return None
    return f"{_used_up(state)}, so that nothing more can be kept; go on with fresh held-out data"


def _used_up(state: State) -> str:
    return f"the held-out split was asked {state.campaign.asked} times, all that heldout.queries allows"


def _by_ladder(decision: Decision, answer: HeldOut, spec: HeldOutSpec) -> Decision:
    if answer.worse is None:
        passed, yes, no = answer.better, "better", "not better"
    else:
        passed, yes, no = not answer.worse, "not worse", "worse"
    if passed:
        return Decision(True, f"{decision.why}, and {yes} on the held-out split")
    comparable = answer.released is not None
    told = f"{no} on the held-out split" if comparable else "not comparable on the held-out split"
    if spec.gate:
        return Decision(False, f"{decision.why}, but {told}", undecided=not comparable)
    return Decision(True, f"{decision.why}, though {told}")


def _answered(node: Node, decision: Decision, asks: bool) -> Finding | None:
    """What was answered is not asked again and counts whether one still `asks` or not."""
    if node.promotion is None:
        return (Stage.PERSON, AskPerson()) if asks else None
    why = f": {node.promotion_why}" if node.promotion_why else ""
    if node.promotion:
        return Stage.PERSON, Decision(True, f"{decision.why}, and accepted by a person{why}")
    return Stage.PERSON, Decision(False, f"declined by a person{why}")
