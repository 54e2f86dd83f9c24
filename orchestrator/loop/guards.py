"""Guards: commands that must pass before a candidate is kept, each in a chamber of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.records import Guard, Spent
from orchestrator.door import BrokeOff, NotStarted, TooLarge
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.loop.workbench import Free, Parts, Workbench
from orchestrator.offload import offload_disk
from orchestrator.task import GuardSpec
from sandbox import Bundle, Refused
from sandbox import Ending as ChamberEnding


@dataclass(frozen=True)
class Checked:
    passed: bool
    reason: str
    spent: Spent
    log: bytes = b""


def guard_record(spec: GuardSpec) -> Guard:
    limits = spec.limits.model_dump(mode="json")
    return Guard(name=spec.name, command=spec.command, place=spec.place, limits=limits)


async def check_guard(bench: Workbench, node: str, guard: Guard) -> Checked:
    """Run one guard and record whether it passed. Raises Free when it could not be run."""
    submitted = bench.state.nodes[node].submitted
    outputs = bench.state.trials[submitted].outputs if submitted else None
    return await check_tree(bench, e.GuardIntended(node=node, guard=guard.name), guard, await bench.tree(node), outputs)


async def check_tree(
    bench: Workbench, intent: e.GuardIntended, guard: Guard, tree: Tree, outputs: str | None
) -> Checked:
    """The same for any files, with the digest of what a trial of them left. One at a time for a node."""
    bench.book.record(intent)
    told = {"node": intent.node, "guard": intent.guard, "draft": intent.draft}
    harvested = await offload_disk(bench.artifacts.get_files, outputs) if outputs else {}
    try:
        checked = await run_guard(bench, guard, tree, harvested)
    except Free as free:
        ended = e.GuardEnded(**told, passed=False, reason=str(free), spent=free.spent, interrupted=True)
        bench.book.record(ended)
        raise
    bench.book.record(e.GuardEnded(**told, passed=checked.passed, reason=checked.reason, spent=checked.spent))
    return checked


async def run_guard(parts: Parts, guard: Guard, tree: Tree, outputs: Mapping[str, bytes]) -> Checked:
    """Run one guard, recording nothing. In the candidate's chamber, its exit code is the candidate's own word."""
    door, job = (parts.home if guard.place == "judge" else parts.door), parts.jobs.guard(guard)
    try:
        ran = await door.run(job, _bundle(parts, guard, tree, outputs))
    except NotStarted as error:
        raise Free.of(error, f"no chamber for the guard {guard.name}", error.spent) from error
    except (TooLarge, Refused) as error:
        return Checked(False, str(error), error.spent if isinstance(error, TooLarge) else door.spent_on(job, error))
    except BrokeOff as error:
        if error.proven:
            raise Free.of(error, spent=error.spent) from error
        return Checked(False, str(error), error.spent)
    passed = ran.outcome.ending is ChamberEnding.COMPLETED
    reason = "" if passed else ran.outcome.why or ran.outcome.ending.value
    return Checked(passed, reason, ran.spent, ran.outcome.log_tail)


def _bundle(parts: Parts, guard: Guard, tree: Tree, outputs: Mapping[str, bytes]) -> Bundle:
    if guard.place != "judge":
        return bundle_of(tree)
    given = Bundle({f"outputs/{name}": data for name, data in outputs.items()})
    return together(bundle_of(parts.judge.files), bundle_of(tree, "candidate"), given)
