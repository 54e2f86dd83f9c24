"""One run of the root under a profile, before the first change: where proposers may look, and proves nothing.

It is no trial. Nothing of it is scored or kept but what it tells of lines and times, read strictly; where that fails,
one line says so, and the search goes on as it would have.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.profile import Profile
from orchestrator.domain.records import PROFILE, Phase, Purpose, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.door import BrokeOff, NotStarted, TooLarge
from orchestrator.judge.data import OUT, SOURCE
from orchestrator.judge.helpers import HELPERS_FOLDER, profiler
from orchestrator.judge.profile import FOLDER, MOST_BYTES, read_profile
from orchestrator.loop.calling import CALLS
from orchestrator.loop.interruption import end_profile
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.loop.money import usage, worst_of_run
from orchestrator.loop.relaying import relayed
from orchestrator.loop.workbench import Parts, Workbench
from orchestrator.offload import offload, offload_disk
from sandbox import Bundle, Job, Refused
from sandbox import Ending as ChamberEnding

_PROCESSES = 32
# A run that is traced may take so many times as long as the baseline's trial, and so much more.
_TIMES = 4
_MORE_S = 60.0
_RENTED = "chambers are rented here, so it would cost; --hints hot or reached takes one all the same"


@dataclass(frozen=True)
class Profiled:
    """`why` says what went wrong, where the profile has nothing."""

    profile: Profile
    spent: Spent
    why: str = ""


def is_due(bench: Workbench) -> bool:
    """Before the first change of a run, or not at all: what was proposed without one must not change by it."""
    run = bench.state.run
    root = bench.state.nodes.get(run.root)
    if bench.hints is None or run.profiled or root is None or root.ending is not Ending.SCORED:
        return False
    return root.phase is Phase.ENDED and not bench.state.children.get(run.root)


async def take_profile(bench: Workbench) -> None:
    """Run it, and record what came of it. A provider's failure is no reason to wait: it is only a hint."""
    run, tree = bench.state.run, await bench.tree(bench.state.run.root)
    if why := _too_dear(bench) or await offload(_nothing_to_see, bench, tree):
        bench.book.record(e.ProfileTaken(run=run.number, why=why))
        return
    hold, amounts = f"{PROFILE}#{run.number}", worst_of_run(bench)
    if shortage := bench.book.accounts.shortage(amounts):
        bench.book.record(e.ProfileTaken(run=run.number, why=f"the caps leave no room for one: {shortage}"))
        return
    bench.book.record(e.Reserved(hold=hold, amounts=amounts.as_row()), e.ProfileIntended(run=run.number))
    try:
        found = await bench.judge_mode.profile(bench, tree, _wall_s(bench))
    except asyncio.CancelledError:
        end_profile(bench)
        raise
    except (NotStarted, BrokeOff, TooLarge) as error:
        found = Profiled(Profile(), error.spent, str(error))
    except Refused as error:
        found = Profiled(Profile(), Spent(), str(error))
    settled = e.Settled(hold=hold, node="", spent=usage(found.spent).as_row())
    with bench.shelf.storing():
        data = found.profile.model_dump_json().encode()
        kept = await offload_disk(bench.artifacts.keep, data) if found.profile.files else None
        why = "" if kept else found.why or "no Python of the workspace told anything"
        bench.book.record(e.ProfileTaken(run=run.number, profile=kept, why=why, spent=found.spent), settled)


def _too_dear(bench: Workbench) -> str:
    return _RENTED if bench.hints == "auto" and bench.door.tariff.is_rented else ""


def _wall_s(bench: Workbench) -> float:
    """A trial may be allowed an hour and take a second: a hint is not worth the hour."""
    trials = [it for it in bench.state.trials_of(bench.state.run.root) if it.purpose is Purpose.SUBMIT and it.ended]
    return _TIMES * trials[-1].spent.milliseconds / 1000 + _MORE_S if trials else math.inf


def _nothing_to_see(bench: Workbench, tree: Tree) -> str:
    """In a thread: files are read."""
    from orchestrator.proposers.operators.files import editable_texts
    from orchestrator.proposers.operators.meaning import is_python

    has = any(is_python(it.path) for it in editable_texts(tree, bench.policy))
    return "" if has else "no editable file is Python"


@dataclass(frozen=True)
class _NoLonger:
    """Has a run stopped: it hands over what it left by then, which it does not where its limit ends it."""

    seconds: float

    def opened(self, facts: Mapping[str, str]) -> None:
        del facts

    async def enough(self) -> None:
        await asyncio.sleep(self.seconds)


async def profile_outputs(
    parts: Parts, job: Job, bundle: Bundle, tree: Tree, wall_s: float, beneath: str = ""
) -> Profiled:
    """Of a job that runs by itself. It may be slower than a trial: what it left until it was stopped counts as well."""
    path = [f"{SOURCE}/{HELPERS_FOLDER}", *filter(None, [job.env.get("PYTHONPATH")])]
    told = {
        "PYTHONPATH": ":".join(path),
        "BLASTDOOR_PROFILE": f"{OUT}/{FOLDER}",
        "BLASTDOOR_PROFILE_ROOT": f"{SOURCE}/{beneath}".rstrip("/"),
    }
    stops = wall_s < job.limits.wall and parts.door.backend.capabilities.stop and CALLS not in job.env
    limits = job.limits.model_copy(
        update={
            "wall": min(job.limits.wall, wall_s + job.limits.grace if stops else wall_s),
            "output_files": job.limits.output_files + 2 * _PROCESSES,
            "output_bytes": job.limits.output_bytes + _PROCESSES * MOST_BYTES,
        }
    )
    needs = job.needs.model_copy(update={"stop": job.needs.stop or stops})
    job = job.model_copy(update={"env": {**job.env, **told}, "limits": limits, "needs": needs})
    seen = together(bundle, bundle_of(profiler(), HELPERS_FOLDER))
    ran = await parts.door.run(job, seen, overseer=_NoLonger(wall_s) if stops else None)
    left = [data for name, data in sorted(ran.outcome.outputs.items()) if name.startswith(f"{FOLDER}/")]
    ended = ran.outcome.ending is not ChamberEnding.COMPLETED
    found = await offload(read_profile, left, tree, ended=ended)
    return Profiled(found, ran.spent, f"the run with it ended as {ran.outcome.ending}" if ended else "")


async def profile_calls(parts: Parts, node: str, tree: Tree, wall_s: float) -> Profiled:
    """Of a candidate that a judge calls, with that judge."""
    met = await relayed(parts, node, Mode.SUBMIT, tree, profiled_s=wall_s)
    for error in (met.judge.error, met.candidate.error):
        if isinstance(error, NotStarted | BrokeOff | TooLarge):
            raise error
    found = await offload(read_profile, [met.profile], tree)
    why = met.unloaded or met.broken or (f"the {met.late} took too long with it" if met.late else "")
    return Profiled(found, met.candidate.spent + met.judge.spent, why)
