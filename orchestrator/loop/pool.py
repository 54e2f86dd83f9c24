"""The pool of a combination stage: chosen, completed by runs of members where outputs are missing, frozen, delivered.

What members left is bytes of earlier candidates, and hostile. It goes from the store into a chamber as it was
harvested, under names that are checked once more. A list of the members goes with it, the same on every split; their
scores do not, for with their answers those would tell the gold.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.budget import Account, Amounts
from orchestrator.domain import events as e
from orchestrator.domain import pool as choosing
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import POOL, MemberOutputs, Node, PoolMember, Run, Spent
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode
from orchestrator.door import BrokeOff, NotStarted, Ran, TooLarge
from orchestrator.ledger import Artifacts
from orchestrator.loop.backstop import Walls, worst_of_walls
from orchestrator.loop.endings import ENDINGS
from orchestrator.loop.interruption import end_member
from orchestrator.loop.jobs import Jobs, bundle_of
from orchestrator.loop.money import usage
from orchestrator.loop.workbench import PoolFailed, Workbench
from orchestrator.offload import offload_disk
from orchestrator.task import POOL_INPUT
from sandbox import Input, Unavailable, write_outputs
from sandbox.scratch import scratch

LEAST = 2
LIST = "members.json"
# Under which digest a run has the data of a split.
_DATA = {Mode.SUBMIT.value: "inputs", Mode.TUNE.value: "tune_inputs", Mode.HELDOUT.value: "heldout_inputs"}


@dataclass(frozen=True)
class Pooling:
    """What a pool is filled with. `jobs` are those of the base stage, on the inputs of this one; `delivered` is what
    those of this one get, once it is frozen.
    """

    jobs: Jobs
    add_input: Callable[[str, Path], Input]
    folder: Path
    delivered: dict[Mode, Input] = field(default_factory=dict)


def candidates(state: State, base: Run, ranking: Ranking, without: Mapping[str, MemberOutputs]) -> list[Node]:
    """The nodes that a pool is chosen from, the best first; none that failed when it was run for it."""
    failed = {name.partition("/")[0] for name, left in without.items() if left.fault}
    return [node for node in choosing.eligible(state, base, ranking) if node.id not in failed]


def refuse_too_few(state: State, base: Run, found: int) -> None:
    """Raises PoolFailed with a line that says what to do."""
    if found >= LEAST:
        return
    has = "no valid member" if not found else "one valid member"
    others = choosing.of_other_cohorts(state, base)
    also = f"; {others} more were measured in other cohorts, which cannot be compared" if others else ""
    advice = "try more changes first (resume --attempts)" + ("" if others else ", or mend the judge")
    raise PoolFailed(f"a pool needs {LEAST} members, and run {base.number} has {has}{also}; {advice}")


async def fill_pool(bench: Workbench, pooling: Pooling) -> None:
    """Freeze the pool, unless it is, and give it to every chamber of a combination from now on.

    Raises PoolFailed where there are too few members, or no room for what is missing of them, and Unavailable when the
    provider fails. What was done until then is on record.
    """
    if not bench.state.run.pool:
        bench.book.record(await _frozen(bench, pooling))
    delivered = await offload_disk(
        deliver, bench.artifacts, bench.state.run.pool, bench.jobs, pooling.folder, pooling.add_input
    )
    pooling.delivered.update(delivered)


def deliver(
    artifacts: Artifacts,
    members: tuple[PoolMember, ...],
    jobs: Jobs,
    folder: Path,
    add_input: Callable[[str, Path], Input],
) -> dict[Mode, Input]:
    """The input of each mode. A mode that the task has not gets what counts."""
    listed = json.dumps({"members": [member.node for member in members]}, indent=2).encode() + b"\n"
    made: dict[str, Input] = {}
    for split in dict.fromkeys(split_of(jobs, mode) for mode in Mode):
        files = {LIST: listed}
        for member in members:
            left = artifacts.get_files(member.outputs[split])
            files |= {f"{member.node}/{name}": data for name, data in left.items()}
        with scratch("pool", folder) as beside:
            place = beside / POOL_INPUT
            write_outputs(files, place)
            made[split] = add_input(POOL_INPUT, place)
    return {mode: made[split_of(jobs, mode)] for mode in Mode}


def split_of(jobs: Jobs, mode: Mode) -> str:
    """What the outputs of a mode are kept under: members need not be run where the data is that of a real trial."""
    has = jobs.task.tune if mode is Mode.TUNE else jobs.task.heldout if mode is Mode.HELDOUT else None
    same = has is None or jobs.inputs_of(mode) == jobs.inputs_of(Mode.SUBMIT)
    return (Mode.SUBMIT if same else mode).value


async def _frozen(bench: Workbench, pooling: Pooling) -> e.PoolFrozen:
    """Until every member has left something on every split. One that fails on any of them is replaced."""
    splits = list(dict.fromkeys(split_of(bench.jobs, mode) for mode in Mode))
    while True:
        chosen = await offload_disk(_choose, bench)
        missing = ((it.node, split) for it in chosen for split in splits if not _left(bench, it.node, split).outputs)
        if (first := next(missing, None)) is None:
            break
        await _run_member(bench, pooling, *first)
    members = []
    for it in chosen:
        left = {split: _left(bench, it.node, split) for split in splits}
        outputs = {split: found.outputs or "" for split, found in left.items()}
        size = sum(found.bytes for found in left.values())
        commit = bench.state.nodes[it.node].commit or ""
        members.append(PoolMember(node=it.node, commit=commit, outputs=outputs, bytes=size, distance=it.distance))
    return e.PoolFrozen(run=bench.state.run.number, members=tuple(members))


def _choose(bench: Workbench) -> list[choosing.Chosen]:
    """In a thread: what candidates left is read."""
    state, run = bench.state, bench.state.run
    if run.combine is None:
        raise AssertionError("only a combination stage has a pool")
    base, size = state.runs[str(run.combine.base)], run.combine.pool
    nodes = candidates(state, base, bench.ranking, run.member_outputs)
    refuse_too_few(state, base, len(nodes))
    looked_at = choosing.shortlist(nodes, base, size)
    stored = {node.id: choosing.outputs_of(state, node) for node in looked_at}
    outputs = {name: bench.artifacts.get_files(digest) for name, digest in stored.items() if digest}
    return choosing.choose(looked_at, base, outputs, size, run.combine.diversity)


def _left(bench: Workbench, node: str, split: str) -> MemberOutputs:
    """What is there of a node on a split; nothing where it has to be run."""
    state = bench.state
    if known := state.run.member_outputs.get(f"{node}/{split}"):
        return known
    if split == Mode.SUBMIT and (outputs := choosing.outputs_of(state, state.nodes[node])):
        size = state.trials[state.nodes[node].submitted or ""].outputs_bytes
        return MemberOutputs(outputs=outputs, bytes=size)
    return left_before(state, node, split)


def left_before(state: State, node: str, split: str) -> MemberOutputs:
    """What it left on the very same data for an earlier stage: that is never let go, and nobody pays for it twice."""
    run, data = state.run, _DATA[split]
    found = (
        earlier.member_outputs.get(f"{node}/{split}")
        for earlier in state.runs.values()
        if earlier.number < run.number and earlier.digests.get(data) == run.digests.get(data)
    )
    return next((left for left in found if left and left.outputs), MemberOutputs())


async def _run_member(bench: Workbench, pooling: Pooling, node: str, split: str) -> None:
    """One chamber, as when it was submitted but on this split, for one slot of the combination's account."""
    mode, number = Mode(split), bench.state.run.number
    job = pooling.jobs.trial(Mode.SUBMIT)
    given = {"inputs": pooling.jobs.inputs_of(mode), "realm": pooling.jobs.trial(mode).realm}
    job, tree = job.model_copy(update=given), await bench.tree(node)
    with _set_aside(bench, pooling, node, split) as spent:
        try:
            ran = await bench.door.run(job, bundle_of(tree))
        except NotStarted as error:
            spent.append(error.spent)
            raise Unavailable(f"no chamber to run {node} for the pool: {error}; blastdoor resume goes on") from error
        except BrokeOff as error:
            spent.append(error.spent)
            if error.proven:
                raise Unavailable(f"the provider failed while {node} ran for the pool: {error}") from error
            ended = e.MemberEnded(run=number, node=node, split=split, fault="broke off", spent=error.spent)
        except TooLarge as error:
            ended = e.MemberEnded(run=number, node=node, split=split, fault="too large", spent=error.spent)
        else:
            spent.append(ran.spent)
            ended = await _ended(bench, pooling, node, split, ran)
        slot = Amounts.exact({Account.COMBINATION: 1}) + usage(ended.spent)
        bench.book.record(ended, e.Settled(hold=_hold(node, split), node="", spent=slot.as_row()))


@contextmanager
def _set_aside(bench: Workbench, pooling: Pooling, node: str, split: str) -> Iterator[list[Spent]]:
    """Reserve the worst case, say what is about to run, and book what an interrupted run cost."""
    task, hold = pooling.jobs.task, _hold(node, split)
    walls = [Walls(task.limits, bool(task.trial.build), away=True)]
    amounts = Amounts.exact({Account.COMBINATION: 1}) + usage(worst_of_walls(bench.door.tariff, walls, away=True))
    if shortage := bench.book.accounts.shortage(amounts):
        raise PoolFailed(f"the caps leave no room to run {node} for the pool (split {split}): {shortage}")
    intent = e.MemberIntended(run=bench.state.run.number, node=node, split=split)
    bench.book.record(e.Reserved(hold=hold, amounts=amounts.as_row()), intent)
    spent: list[Spent] = []
    try:
        yield spent
    except (Unavailable, asyncio.CancelledError):
        end_member(bench, sum(spent, Spent()) if spent else None)
        raise


async def _ended(bench: Workbench, pooling: Pooling, node: str, split: str, ran: Ran) -> e.MemberEnded:
    outcome = ran.outcome
    ending = ENDINGS[outcome.ending]
    if ending and ending.retryable:
        raise Unavailable(f"the chamber of {node} was killed from outside; blastdoor resume goes on")
    outputs = bench.judge_mode.for_judge(pooling.jobs.task, outcome.outputs)
    told = {"run": bench.state.run.number, "node": node, "split": split, "spent": ran.spent}
    if ending or not outputs:
        return e.MemberEnded(fault=str(ending or "no output"), **told)
    with bench.shelf.storing():
        kept = await offload_disk(bench.artifacts.keep_files, outputs)
        return e.MemberEnded(outputs=kept.digest, bytes=kept.bytes, **told)


def _hold(node: str, split: str) -> str:
    return f"{POOL}#{node}-{split}"
