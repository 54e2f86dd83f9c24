"""Data mode: the candidate is dead, its outputs are bytes, and the judge scores them in a chamber of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from orchestrator.change import File, Tree
from orchestrator.change.patterns import matches
from orchestrator.domain.records import Spent
from orchestrator.domain.verdict import Mode
from orchestrator.door import BrokeOff, Door, TooLarge
from orchestrator.judge.contract import METRICS, Result, ResultRefused, parse_result
from orchestrator.offload import offload
from sandbox import Bundle, Ending, Job, Outcome

HELPER = "blastdoor_judge.py"
OUT = "/work/out"
SOURCE = "/work/src"
# Of a result that is read at once: a larger one can take seconds, and everybody else must go on meanwhile.
SMALL_BYTES, SMALL_FILES = 4096, 16


@dataclass(frozen=True)
class Judgement:
    """A result, or the fixed code of what was wrong. `log` is for the judge's author; it is never recorded."""

    spent: Spent
    result: Result | None = None
    fault: str | None = None
    detail: str = ""
    log: bytes = b""
    traces: Mapping[str, bytes] | None = None


def contract_variables(mode: Mode, node: str) -> dict[str, str]:
    """What a judge is told, in our words and in those of judges written for another ecosystem."""
    result, traces = f"{OUT}/result.json", f"{OUT}/traces"
    return {
        "BLASTDOOR_RESULT_PATH": result,
        "EVO_RESULT_PATH": result,
        "BLASTDOOR_TRACES_DIR": traces,
        "EVO_TRACES_DIR": traces,
        "BLASTDOOR_METRICS_PATH": f"{OUT}/metrics.csv",
        "BLASTDOOR_OUTPUTS": f"{SOURCE}/outputs",
        "BLASTDOOR_MODE": mode.value,
        "BLASTDOOR_NODE": node,
        "EVO_EXPERIMENT_ID": node,
    }


def judge_files(code: Tree, gold: Tree, more: Tree | None = None) -> Tree:
    """The judge's folder as its chamber sees it: code, gold, and our helpers where the task has none of its own."""
    helper = Tree.of({HELPER: (Path(__file__).parent / "guest" / HELPER).read_bytes()})
    parts = (helper, more or Tree(), code, gold)
    return Tree({path: file for part in parts for path, file in _beneath("judge", part).items()})


def chosen_outputs(outputs: Mapping[str, bytes], patterns: tuple[str, ...]) -> dict[str, bytes]:
    """What of the harvest reaches the judge: all of it where the task names nothing."""
    if not patterns:
        return dict(outputs)
    return {name: data for name, data in outputs.items() if any(matches(it, name) for it in patterns)}


@dataclass(frozen=True)
class DataJudge:
    """`jobs` has the judge's job for each mode; `files` come from judge_files."""

    door: Door
    jobs: Mapping[Mode, Job]
    files: Tree

    @cached_property
    def _own(self) -> Bundle:
        """What is the same in each of its chambers."""
        executable = frozenset(path for path, file in self.files.items() if file.executable)
        return Bundle({path: file.data for path, file in self.files.items()}, executable)

    async def judge(self, outputs: Mapping[str, bytes], mode: Mode, node: str) -> Judgement:
        """Score some outputs. Raises NotStarted when there was no chamber for it, BrokeOff when the provider failed.

        A chamber that is lost while the provider is well is a fault like any other: outputs may have done it.
        """
        job = self.jobs[mode]
        job = job.model_copy(update={"env": {**job.env, **contract_variables(mode, node)}})
        files = {**self._own.files, **{f"outputs/{name}": data for name, data in outputs.items()}}
        try:
            ran = await self.door.run(job, Bundle(files, self._own.executable))
        except TooLarge as error:
            return Judgement(error.spent, fault="outputs too large", detail=str(error))
        except BrokeOff as error:
            if error.proven:
                raise
            return Judgement(error.spent, fault="judge broke off", detail=str(error))
        if is_small(ran.outcome.outputs):
            return read_judgement(ran.outcome, ran.spent)
        return await offload(read_judgement, ran.outcome, ran.spent)


def is_small(outputs: Mapping[str, bytes]) -> bool:
    return len(outputs) <= SMALL_FILES and sum(map(len, outputs.values())) < SMALL_BYTES


def read_judgement(outcome: Outcome, spent: Spent) -> Judgement:
    """What a judge's chamber gave back. An ending other than a clean exit is a fault, whatever it published."""
    log = outcome.log_tail
    if outcome.ending is not Ending.COMPLETED:
        return Judgement(spent, fault=f"judge {outcome.ending}", detail=outcome.why, log=log)
    return read_result(outcome.outputs, spent, log)


def read_result(outputs: Mapping[str, bytes], spent: Spent, log: bytes = b"") -> Judgement:
    try:
        result = parse_result(outputs)
    except ResultRefused as refused:
        return Judgement(spent, fault=refused.code.value, detail=refused.detail, log=log)
    # Kept as they came: the trace of each task, and the stream of metrics over iterations.
    traces = {name: data for name, data in outputs.items() if name.startswith("traces/") or name == METRICS}
    # Its rows are in there; as millions of values they would be let go on the event loop, all at once.
    return Judgement(spent, result=replace(result, series=None), log=log, traces=traces or None)


def _beneath(folder: str, tree: Tree) -> dict[str, File]:
    return {f"{folder}/{path}": file for path, file in tree.items()}
