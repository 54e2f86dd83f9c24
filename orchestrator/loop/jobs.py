"""What runs: the task's commands as jobs, the trees as bundles, and the fingerprint of both."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.change import Tree
from orchestrator.domain.fingerprint import HARDWARE, Fingerprint
from orchestrator.domain.records import Guard
from orchestrator.domain.verdict import Mode
from orchestrator.task import Snapshot, Task
from orchestrator.turns import HELDOUT, HIDDEN
from sandbox import Bundle, Input, Job, Limits, Needs

if TYPE_CHECKING:
    from orchestrator.loop.judge_modes import JudgeMode


@dataclass(frozen=True)
class Image:
    """An image by name, and the engine's digest of what is in it.

    Where jobs can ask for it by that digest, a name that stands for another image meanwhile changes nothing for them.
    """

    name: str
    digest: str
    by_digest: bool = False

    @property
    def of_jobs(self) -> str:
        return self.digest if self.by_digest else self.name


@dataclass(frozen=True)
class Jobs:
    """All jobs of one run. The inputs of every mode are in the store already.

    `pool` is there for combinations: what the members left on the split of each mode, once that is frozen. It is no
    part of the inputs by which scores are compared, since it is no part of what is asked: a combination is measured
    against those that it combines. No judge gets it.
    """

    task: Task
    judge_mode: "JudgeMode"
    snapshot: Snapshot
    image: Image
    judge_image: Image
    inputs: tuple[Input, ...]
    tune_inputs: tuple[Input, ...]
    backend: str
    heldout_inputs: tuple[Input, ...] = ()
    pool: dict[Mode, Input] | None = None

    def trial(self, mode: Mode) -> Job:
        """The candidate's job; it is told whether it is tuned or counts, never that the split is held out."""
        return self._with_pool(self._trials[mode], mode)

    def _with_pool(self, job: Job, mode: Mode) -> Job:
        if not self.pool:
            return job
        return job.model_copy(update={"inputs": (*job.inputs, self.pool[mode])})

    @cached_property
    def _trials(self) -> dict[Mode, Job]:
        """Made once, like the judge's: every attempt asks for them several times."""
        return {mode: self._trial(mode) for mode in Mode}

    @cached_property
    def _judges(self) -> dict[Mode, Job]:
        return {mode: self._judge(mode) for mode in Mode}

    def _trial(self, mode: Mode) -> Job:
        task, target = self.task, self.task.target(mode)
        env = {**target.env, "BLASTDOOR_MODE": (Mode.TUNE if mode is Mode.TUNE else Mode.SUBMIT).value}
        if task.trial.steps is not None:
            env["BLASTDOOR_STEPS"] = str(task.trial.steps)
        return Job(
            command=target.command,
            build=task.trial.build,
            image=self.image.of_jobs,
            env=self.judge_mode.env(env),
            workdir=task.trial.workdir,
            mode=self.judge_mode.job_mode,
            loopback=task.trial.loopback,
            limits=self.judge_mode.limits(task, mode)[0],
            needs=Needs(live_log=True, stop=True) if self._may_be_stopped(mode) else Needs(),
            inputs=self.inputs_of(mode),
            realm=self._realm(mode),
        )

    def _realm(self, mode: Mode) -> str:
        """Whose secrets a candidate's chamber holds: agents have none, and later trials none of the held-out split."""
        if mode is Mode.HELDOUT:
            return HELDOUT
        return HIDDEN if self.task.hidden or not self.task.judge.mode.terms.hides_gold else ""

    def realms(self) -> set[tuple[str, str]]:
        """Images of candidates, with each realm that they are needed for."""
        modes = [mode for mode in Mode if mode is not Mode.HELDOUT or self.task.heldout]
        return {(self.image.of_jobs, self._realm(mode)) for mode in modes}

    def _may_be_stopped(self, mode: Mode) -> bool:
        """Nobody listens to a chamber on the held-out split."""
        if mode is Mode.HELDOUT:
            return False
        counts = self.task.trial.steps is not None and not self.task.judge.mode.terms.calls
        pruned = self.task.pruning is not None and mode is Mode.SUBMIT
        return counts or pruned or self.task.stall.heartbeat is not None

    def judge(self, mode: Mode) -> Job:
        return self._judges[mode]

    def guard(self, guard: Guard) -> Job:
        """A guard beside the candidate runs in its image, one beside the judge in the judge's."""
        beside_judge = guard.place == "judge"
        job = Job(
            command=guard.command,
            image=(self.judge_image if beside_judge else self.image).of_jobs,
            env={"BLASTDOOR_MODE": Mode.SUBMIT.value},
            workdir="judge" if beside_judge else self.task.trial.workdir,
            loopback=self.task.trial.loopback,
            limits=Limits.model_validate(guard.limits),
            inputs=self.inputs,
            realm="" if beside_judge else self._realm(Mode.SUBMIT),
        )
        return job if beside_judge else self._with_pool(job, Mode.SUBMIT)

    def inputs_of(self, mode: Mode) -> tuple[Input, ...]:
        return {Mode.TUNE: self.tune_inputs, Mode.HELDOUT: self.heldout_inputs}.get(mode, self.inputs)

    def fingerprint(self, facts: Mapping[str, str], mode: Mode) -> Fingerprint:
        """What a trial ran on and against: the chamber's own line from before delivery, then what we know."""
        pool = {"pool": self.pool[mode].digest} if self.pool else {}
        return {**{field: facts[field] for field in HARDWARE if field in facts}, **self._terms[mode], **pool}

    @cached_property
    def _terms(self) -> dict[Mode, dict[str, str]]:
        return {mode: self._terms_of(mode) for mode in Mode}

    def _terms_of(self, mode: Mode) -> dict[str, str]:
        snapshot = self.snapshot
        judge = (snapshot.digests["judge"], self.judge(mode).command, self.judge_image.digest, self.task.judge.mode)
        return {
            "backend": self.backend,
            "limits": _digest(self.task.target(mode).limits.model_dump(mode="json")),
            "steps": str(self.task.trial.steps or ""),
            "image": self.image.digest,
            "inputs": _digest([(item.name, item.digest) for item in self.inputs_of(mode)]),
            "judge": _digest(judge),
            "gold": snapshot.digests["gold"],
        }

    def _judge(self, mode: Mode) -> Job:
        target = self.task.target(mode)
        return Job(
            command=target.judge,
            image=self.judge_image.of_jobs,
            env=target.judge_env,
            workdir="judge",
            mode=self.judge_mode.job_mode,
            limits=self.judge_mode.limits(self.task, mode)[1],
            inputs=self.inputs_of(mode),
        )


def bundle_of(tree: Tree, beneath: str = "") -> Bundle:
    prefix = f"{beneath}/" if beneath else ""
    files = {f"{prefix}{path}": file.data for path, file in tree.items()}
    return Bundle(files, frozenset(f"{prefix}{path}" for path, file in tree.items() if file.executable))


def together(*bundles: Bundle) -> Bundle:
    files = {name: data for bundle in bundles for name, data in bundle.files.items()}
    return Bundle(files, frozenset().union(*(bundle.executable for bundle in bundles)))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
