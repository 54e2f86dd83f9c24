"""What a judge's mode does when a candidate is run: a class for each, found by the mode's name.

The name, and what a task may ask for with it, is in domain/tier.py. Everybody else asks the class, and never which of
them it is; Jobs brings it along, since what is beneath this module cannot import it.
"""

import math
from collections.abc import Awaitable, Mapping
from contextlib import closing

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.records import Spent
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.door import Door
from orchestrator.judge.data import SOURCE, Judgement, chosen_outputs, contract_variables, judge_files, read_result
from orchestrator.judge.helpers import COMBINATION_HELPERS, HELPERS_FOLDER, JUDGE_HELPERS, helpers, imported_by
from orchestrator.loop.backstop import Walls
from orchestrator.loop.calling import CALLS
from orchestrator.loop.heldout import HeldOutScore, score_calls, score_outputs
from orchestrator.loop.jobs import Jobs, bundle_of, together
from orchestrator.loop.live_log import LiveLog
from orchestrator.loop.profiling import Profiled, profile_calls, profile_outputs
from orchestrator.loop.pruning import Hearing
from orchestrator.loop.rehearsal import NODE, Rehearsal, judged, rehearse_calls, rehearse_outputs
from orchestrator.loop.relaying import candidate_bundle, run_relay
from orchestrator.loop.trial import run_alone
from orchestrator.loop.workbench import Parts, Workbench
from orchestrator.offload import offload
from orchestrator.task import MemberTerms, Task
from sandbox import Bundle, Capabilities, Job, Limits
from sandbox import Mode as JobMode

# What nobody's turn is: frames on their way, chambers that start, an event loop that is late.
_BETWEEN_S = 30.0
_LONGEST_S = 86_400.0 * 7
# In front of a candidate's answer, the judge is told what it was and how long it took.
_STAMP_BYTES = 64
# Frames that the judge does not ask for: loading, and empty calls.
_OURS = 64


class JudgeMode:
    """The usual way: a candidate leaves outputs, and a judge scores them in a chamber of its own. Others override what
    they do in another way.
    """

    job_mode = JobMode.BATCH
    judge_helpers: tuple[str, ...] = ()

    def misfit(self, can: Capabilities, name: str, *, away: bool) -> str:
        """Why it cannot be run on a backend of this name, after `judge.mode is …,`; empty where it can. `away`:
        candidates are sent to others, and judges stay.
        """
        del can, name, away
        return ""

    def limits(self, task: Task, mode: Mode) -> tuple[Limits, Limits]:
        """Of the candidate's chamber, and of the judge's, as they are opened."""
        return task.target(mode).limits, task.judge.limits

    def side_by_side(self, task: Task) -> Limits:
        """What one attempt holds of the machine at a time, as the limits of a single chamber."""
        return task.limits

    def limits_of_judging(self, task: Task) -> Limits:
        """The same of one judging."""
        return task.judge.limits

    def walls_of_run(self, task: Task, mode: Mode) -> list[Walls]:
        """The chambers of a trial and its judging."""
        own, judge = self.limits(task, mode)
        return [Walls(own, bool(task.trial.build), away=True), Walls(judge)]

    def walls_of_doubt(self, task: Task, mode: Mode) -> list[Walls]:
        """Those of a judging of the baseline, where a judge broke; none where it is not asked about that."""
        return [Walls(self.limits(task, mode)[1])]

    def files(self, code: Tree, gold: Tree) -> Tree:
        """What the judge finds in its chamber, besides outputs."""
        return judge_files(code, gold, helpers(self.judge_helpers or imported_by(code)))

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        """The variables of a candidate, from those that its task gives it."""
        return dict(env)

    def trial_job(self, jobs: Jobs, mode: Mode, node: str = NODE) -> Job:
        """What really runs as a trial."""
        del node
        return jobs.trial(mode)

    def job_of(self, parts: Parts, node: str, mode: Mode, tree: Tree) -> tuple[Job, Bundle]:
        """The same, and the files with it."""
        return self.trial_job(parts.jobs, mode, node), bundle_of(tree)

    def commands(self, parts: Parts) -> list[tuple[str, Job, Door]]:
        """What runs for a candidate, as a reviewer is told of it; each with the door that it goes through."""
        jobs = parts.jobs
        return [("trial", jobs.trial(Mode.SUBMIT), parts.door), ("judge", jobs.judge(Mode.SUBMIT), parts.home)]

    def for_judge(self, task: Task, outputs: Mapping[str, bytes]) -> dict[str, bytes]:
        """What of the harvest the judge is given."""
        return chosen_outputs(outputs, task.trial.outputs)

    def run_trial(self, bench: Workbench, intent: e.TrialIntended, tree: Tree) -> Awaitable[None]:
        """Record the intent, then how it ended. Raises Free when the ending is not the candidate's to pay."""
        return run_alone(bench, intent, tree)

    def judge(self, parts: Parts, outputs: Mapping[str, bytes], mode: Mode, node: str) -> Awaitable[Judgement]:
        """Score what a trial left. Raises NotStarted when there was no chamber for it, BrokeOff when the provider
        failed.
        """
        return parts.judge.judge(outputs, mode, node)

    async def score_heldout(self, bench: Workbench, node: str) -> HeldOutScore:
        """Run and judge on the held-out split, and record nothing. Raises Free when a chamber could not be had."""
        return await score_outputs(bench, node)

    async def rehearse(self, parts: Parts, mode: Mode, tree: Tree, node: str) -> Rehearsal:
        """Run and judge for somebody who looks on, and record nothing. Raises Unavailable when the engine fails."""
        return await rehearse_outputs(parts, mode, tree, node)

    async def profile(self, parts: Parts, tree: Tree, wall_s: float = math.inf) -> Profiled:
        """Run it as a trial is run, with our own module that looks on, for no longer than `wall_s`. Nobody judges what
        it leaves. Raises what the door does.
        """
        return await profile_outputs(parts, *self.job_of(parts, NODE, Mode.SUBMIT, tree), tree, wall_s)

    async def judge_again(self, parts: Parts, outputs: Mapping[str, bytes]) -> None:
        """Let the judge work once more on the baseline, which left these outputs."""
        await judged(parts, outputs)


class DataMode(JudgeMode):
    """As every mode is unless it says otherwise."""


class CallingMode(JudgeMode):
    """A combination that may call its members. It leaves outputs like any other candidate, and is judged by them; its
    chamber and theirs are there at once, and each side pays for its own turns.
    """

    def misfit(self, can: Capabilities, name: str, *, away: bool) -> str:
        del name, away
        if can.relay:
            return ""
        return f'and combine.members is "code", but this backend ({can.boundary}) has no relay; use another backend'

    def limits(self, task: Task, mode: Mode) -> tuple[Limits, Limits]:
        own, judge = super().limits(task, mode)
        wall = min(own.wall + self._together(task), _LONGEST_S)
        return own.model_copy(update={"wall": wall}), judge

    def side_by_side(self, task: Task) -> Limits:
        own, terms = task.limits, _terms(task)
        cpus, memory = terms.count * terms.limits.cpus, terms.count * terms.limits.memory
        return own.model_copy(update={"cpus": own.cpus + cpus, "memory": own.memory + memory})

    def walls_of_run(self, task: Task, mode: Mode) -> list[Walls]:
        terms = _terms(task)
        member = Walls(self.member_limits(task, mode), bool(terms.trial.build), away=True)
        return [*super().walls_of_run(task, mode), *[member] * terms.count]

    def member_limits(self, task: Task, mode: Mode) -> Limits:
        """A member's chamber outlasts the turns of all others; whose turns took too long is held apart from this."""
        own = task.target(mode).limits.wall
        return _terms(task).limits.model_copy(update={"wall": min(own + self._together(task), _LONGEST_S)})

    def _together(self, task: Task) -> float:
        terms = _terms(task)
        opened = task.stall.provision + (terms.limits.build if terms.trial.build else 0.0)
        return _BETWEEN_S + terms.count * (terms.limits.wall + opened)

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        return {**with_helpers(env), CALLS: "1"}

    def job_of(self, parts: Parts, node: str, mode: Mode, tree: Tree) -> tuple[Job, Bundle]:
        own = together(bundle_of(tree), bundle_of(helpers(COMBINATION_HELPERS), HELPERS_FOLDER))
        return self.trial_job(parts.jobs, mode, node), own


def _terms(task: Task) -> MemberTerms:
    if task.members is None:
        raise AssertionError("only a combination stage has members")
    return task.members


class RelayMode(JudgeMode):
    """The judge calls the candidate. Both chambers are there at once, and each side pays for its own turns."""

    job_mode = JobMode.RELAY
    judge_helpers = JUDGE_HELPERS

    def misfit(self, can: Capabilities, name: str, *, away: bool) -> str:
        del name, away
        if can.relay:
            return ""
        return f'but this backend ({can.boundary}) has no relay; use another backend, or judge.mode = "data"'

    def limits(self, task: Task, mode: Mode) -> tuple[Limits, Limits]:
        """Both live while either works. Whose turns took too long is held apart from these walls."""
        own, judge = super().limits(task, mode)
        both = own.wall + judge.wall + _BETWEEN_S
        # The judge's chamber is there first, and waits until the candidate's is opened and built.
        waits = task.stall.provision + (own.build if task.trial.build else 0.0)
        frame = max(judge.frame_bytes, own.frame_bytes + _STAMP_BYTES)
        return (
            # How many calls there are is the judge's to say: a candidate must not pay for a cap that its judge reached.
            own.model_copy(update={"wall": min(both, _LONGEST_S), "frames": max(own.frames, judge.frames) + _OURS}),
            judge.model_copy(update={"wall": min(both + waits, _LONGEST_S), "frame_bytes": frame}),
        )

    def side_by_side(self, task: Task) -> Limits:
        own, judge = task.limits, task.judge.limits
        return own.model_copy(update={"cpus": own.cpus + judge.cpus, "memory": own.memory + judge.memory})

    def limits_of_judging(self, task: Task) -> Limits:
        return self.side_by_side(task)

    def walls_of_doubt(self, task: Task, mode: Mode) -> list[Walls]:
        """This needs the baseline itself, not what it left."""
        return self.walls_of_run(task, mode)

    def env(self, env: Mapping[str, str]) -> dict[str, str]:
        return with_helpers(env)

    def job_of(self, parts: Parts, node: str, mode: Mode, tree: Tree) -> tuple[Job, Bundle]:
        return self.trial_job(parts.jobs, mode, node), candidate_bundle(tree)

    async def run_trial(self, bench: Workbench, intent: e.TrialIntended, tree: Tree) -> None:
        with closing(LiveLog(bench.live / f"{intent.trial}.log")) as live:
            await run_relay(bench, intent, tree, Hearing(live.line, lambda _: None))

    async def score_heldout(self, bench: Workbench, node: str) -> HeldOutScore:
        return await score_calls(bench, node)

    async def rehearse(self, parts: Parts, mode: Mode, tree: Tree, node: str) -> Rehearsal:
        return await rehearse_calls(parts, mode, tree, node)

    async def profile(self, parts: Parts, tree: Tree, wall_s: float = math.inf) -> Profiled:
        return await profile_calls(parts, NODE, tree, wall_s)

    async def judge_again(self, parts: Parts, outputs: Mapping[str, bytes]) -> None:
        del outputs
        await self.rehearse(parts, Mode.SUBMIT, parts.jobs.snapshot.tree, NODE)


class SharedMode(JudgeMode):
    """For legacy evaluators: the judge's command runs as the trial, in one chamber with the candidate."""

    def misfit(self, can: Capabilities, name: str, *, away: bool) -> str:
        del can
        if not away:
            return ""
        where = f"so judge and gold would be sent to {name} beside the candidate"
        return f'{where}; use judge.mode = "data", or --backend docker'

    def walls_of_run(self, task: Task, mode: Mode) -> list[Walls]:
        """What runs as the trial is the judge's command, which builds nothing; its result is read here."""
        return [Walls(self.limits(task, mode)[1], away=True)]

    def walls_of_doubt(self, task: Task, mode: Mode) -> list[Walls]:
        """A judge beside a candidate may have been broken by it, so the baseline would prove nothing."""
        del task, mode
        return []

    def trial_job(self, jobs: Jobs, mode: Mode, node: str = NODE) -> Job:
        judge = jobs.judge(mode)
        told = {**contract_variables(mode, node), "BLASTDOOR_CANDIDATE": "/work/src/candidate"}
        given = {"image": jobs.image.of_jobs, "env": {**judge.env, **told}, "realm": jobs.trial(mode).realm}
        return judge.model_copy(update=given)

    def job_of(self, parts: Parts, node: str, mode: Mode, tree: Tree) -> tuple[Job, Bundle]:
        files = together(bundle_of(tree, "candidate"), bundle_of(parts.judge.files))
        return self.trial_job(parts.jobs, mode, node), files

    def commands(self, parts: Parts) -> list[tuple[str, Job, Door]]:
        return [("trial and judge in one chamber", self.trial_job(parts.jobs, Mode.SUBMIT), parts.door)]

    def for_judge(self, task: Task, outputs: Mapping[str, bytes]) -> dict[str, bytes]:
        """It is the judge that wrote them, result and all."""
        del task
        return dict(outputs)

    async def profile(self, parts: Parts, tree: Tree, wall_s: float = math.inf) -> Profiled:
        """Its files are in a folder of their own."""
        return await profile_outputs(parts, *self.job_of(parts, NODE, Mode.SUBMIT, tree), tree, wall_s, "candidate")

    async def judge(self, parts: Parts, outputs: Mapping[str, bytes], mode: Mode, node: str) -> Judgement:
        """The result is among them."""
        del parts, mode, node
        return await offload(read_result, outputs, Spent())


JUDGE_MODES: Mapping[Tier, JudgeMode] = {
    Tier.DATA: DataMode(),
    Tier.SHARED: SharedMode(),
    Tier.RELAY: RelayMode(),
}


def with_helpers(env: Mapping[str, str]) -> dict[str, str]:
    """With a path to our modules beside a candidate's files."""
    path = [f"{SOURCE}/{HELPERS_FOLDER}", *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": ":".join(path)}


_CALLING = CallingMode()


def judge_mode_of(task: Task) -> JudgeMode:
    return _CALLING if task.members else JUDGE_MODES[task.judge.mode]
