"""What was under way when the orchestrator stopped or died: ended in the books, refunded, and queued again."""

from datetime import datetime

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, Tokens
from orchestrator.domain.node import order_of
from orchestrator.domain.records import POOL, PROFILE, STANDING, Node, Phase, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.door import Door
from orchestrator.loop.money import refund_all, unbooked, usage
from orchestrator.loop.workbench import Workbench
from sandbox import Job, Limits

WHY = "the orchestrator was stopped"


def interrupt(
    bench: Workbench,
    name: str,
    *,
    killed: bool = False,
    why: str = WHY,
    lost: bool = False,
    moved: bool = False,
    slept_s: float = 0.0,
) -> None:
    """End what a node has under way. Its chambers are gone: their contexts were left, or they died with their owner.

    What they cost is bounded from above by the time since the intent was written. `killed` says that we ended them
    ourselves: then it is confirmed first, and only then refunded. `lost`: somebody else is to blame for what was spent.
    `moved`: they were rented where the campaign is no longer. `slept_s`: a standstill was it,
    which may happen again and again while nobody looks, so what it cost counts.
    """
    ends = loose_ends(bench, bench.state.nodes[name], why)
    if moved:
        ends = _at_all_that_was_held(bench, bench.state.nodes[name], ends)
    if killed:
        ends.append(e.KillConfirmed(node=name))
    if ends:
        bench.book.record(*ends)
    node = bench.state.nodes[name]
    refunds = refund_all(bench, node, lost=lost)
    told = {"slept_s": slept_s, "lost": sum(it.spent.get("usd", 0) for it in refunds)} if slept_s else {}
    again = e.AttemptRequeued(node=name, ending=Ending.INTERRUPTED, why=why, not_before="", **told)
    if events := [*refunds, *([again] if node.phase is Phase.OPEN else ())]:
        bench.book.record(*events)


def reconcile(bench: Workbench, *, moved: bool = False) -> list[str]:
    """After a crash: what the ledger has under way is over, since its owner is. Says which nodes were touched."""
    state = bench.state
    end_member(bench, moved=moved)
    end_profile(bench, moved=moved)
    _settle_calls(bench)
    holders = {hold.split("#", 1)[0] for hold in bench.book.accounts.holds} & state.nodes.keys()
    running = {state.trials[name].node for name in state.trials_at_work}
    running |= state.asking
    opened = {name for name in state.unfinished if state.nodes[name].phase is Phase.OPEN}
    touched = sorted(holders | running | opened, key=order_of)
    for name in touched:
        interrupt(bench, name, moved=moved)
    return touched


def end_member(bench: Workbench, spent: Spent | None = None, *, moved: bool = False) -> None:
    """End what is under way for the pool, if anything is; without `spent`, it cost at most what the clock tells. It
    takes no slot, and is run again.
    """
    run = bench.state.run
    if (member := run.member) is None:
        return
    hold = f"{POOL}#{member.node}-{member.split}"
    jobs = bench.pooling.jobs if bench.pooling else bench.jobs
    spent = spent or _at_most(bench, bench.door, jobs.trial(Mode.SUBMIT), member.since)
    if moved:
        held = bench.book.accounts.holds[hold][Account.USD]
        spent = spent.model_copy(update={"microdollars": max(held, spent.microdollars)})
    told = {"run": run.number, "node": member.node, "split": member.split, "spent": spent, "interrupted": True}
    bench.book.record(e.MemberEnded(**told), e.Settled(hold=hold, node="", spent=usage(spent).as_row()))


def end_profile(bench: Workbench, *, moved: bool = False) -> None:
    """End a run for a profile that is under way, if one is: it cost at most what the clock tells."""
    run = bench.state.run
    if not run.profiling:
        return
    hold, mode = f"{PROFILE}#{run.number}", Mode.SUBMIT
    spent = _at_most(bench, bench.door, bench.judge_mode.trial_job(bench.jobs, mode), run.profiling)
    spent += _at_most(bench, bench.home, bench.jobs.judge(mode), run.profiling)
    if moved:
        held = bench.book.accounts.holds[hold][Account.USD]
        spent = spent.model_copy(update={"microdollars": max(held, spent.microdollars)})
    settled = e.Settled(hold=hold, node="", spent=usage(spent).as_row())
    bench.book.record(e.ProfileTaken(run=run.number, spent=spent, interrupted=True), settled)


def _settle_calls(bench: Workbench) -> None:
    """Calls to models that nobody heard the end of may have cost their worst case. Holds of no attempt end too."""
    events: list[e.Event] = [
        e.ModelCallEnded(
            node=call.node,
            call=name,
            role=call.role,
            model=call.model,
            ending=CallEnding.INTERRUPTED,
            tokens=Tokens(),
            spent=call.worst,
        )
        for name, call in bench.state.open_calls.items()
    ]
    if events:
        bench.book.record(*events)
    nobodys = [hold for hold in bench.book.accounts.holds if hold.split("#", 1)[0] not in bench.state.nodes]
    for hold in [hold for hold in nobodys if not hold.startswith(STANDING)]:
        spent = usage(bench.state.campaign.unbooked).as_row()
        bench.book.record(e.Settled(hold=hold, node="", spent=spent))


def loose_ends(bench: Workbench, node: Node, why: str) -> list[e.Event]:
    """The ends of all that a node has open in the books. Its chambers are gone."""
    ends: list[e.Event] = []
    for trial in bench.state.trials_of(node.id):
        mode = trial.purpose.mode
        if not trial.ended:
            job = bench.judge_mode.trial_job(bench.jobs, mode)
            spent = _at_most(bench, bench.door, job, trial.started_at, attempt="" if bench.task.members else node.id)
            if members := bench.task.members:  # as many chambers as there may be of them, each for as long
                limits, builds = members.limits, bool(members.trial.build)
                one = _at_most_within(bench, bench.door, limits, trial.started_at, builds=builds)
                spent = sum([one] * members.count, spent)
            ends.append(e.TrialEnded(trial=trial.id, ending=Ending.INTERRUPTED, reason=why, spent=spent))
        if trial.judging:  # in relay mode, at the same time
            spent = _at_most(bench, bench.home, bench.jobs.judge(mode), trial.judging_since)
            ends.append(e.JudgingEnded(trial=trial.id, judging=trial.judging, spent=spent, interrupted=True))
    if node.agent is not None:
        spent = _at_most_within(bench, bench.home, bench.task.agent.limits, node.agent_since)
        ends.append(e.AgentEnded(node=node.id, ending="interrupted", why=WHY, spent=spent, interrupted=True))
    if node.guarding:
        guard = next(guard for guard in bench.state.guards_of(node.id) if guard.name == node.guarding)
        door = bench.home if guard.place == "judge" else bench.door
        spent = _at_most(bench, door, bench.jobs.guard(guard), node.guarding_since, attempt=node.id)
        ends.append(e.GuardEnded(node=node.id, guard=guard.name, passed=False, spent=spent, interrupted=True))
    if node.asking is not None:
        mode, since = Mode.HELDOUT, node.asking_since
        spent = _at_most(bench, bench.door, bench.jobs.trial(mode), since, attempt=node.id)
        spent += _at_most(bench, bench.home, bench.jobs.judge(mode), since)
        ends.append(e.HeldOutAsked(node=node.id, query=node.asking, spent=spent, interrupted=True))
    return ends


def _at_all_that_was_held(bench: Workbench, node: Node, ends: list[e.Event]) -> list[e.Event]:
    """Nobody ends chambers at a place that the campaign left, and its prices are not known here: so what was under way
    there is booked at all that was still set aside for the node, an upper bound.
    """
    mine = [amounts for hold, amounts in bench.book.accounts.holds.items() if hold.split("#", 1)[0] == node.id]
    held = sum(amounts[Account.USD] for amounts in mine) - unbooked(node)[Account.USD]
    for place, end in enumerate(ends):
        if isinstance(end, e.TrialEnded | e.GuardEnded | e.HeldOutAsked):
            worst = Spent(microdollars=max(held, end.spent.microdollars), milliseconds=end.spent.milliseconds)
            return [*ends[:place], end.model_copy(update={"spent": worst}), *ends[place + 1 :]]
    return ends


def _at_most(bench: Workbench, door: Door, job: Job, since: str, *, attempt: str = "") -> Spent:
    return _at_most_within(bench, door, job.limits, since, builds=bool(job.build), attempt=attempt)


def _at_most_within(
    bench: Workbench, door: Door, limits: Limits, since: str, *, builds: bool = False, attempt: str = ""
) -> Spent:
    passed = (bench.book.now() - datetime.fromisoformat(since)).total_seconds()
    return door.at_most(limits, passed, builds=builds, attempt=attempt)
