"""A target as an ordinary task folder: the repository as the workspace, a judge with a clock of its own, its answers as
gold, and the tests as a guard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.change import shown
from orchestrator.discovery.discover import Guard
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import CommandTarget, FunctionTarget, Target
from orchestrator.importing.base import Imported
from orchestrator.importing.called import toml_list, toml_paragraphs, toml_text

_GUARD_TIMES = 10
_LEAST_WALL_S = 60
_CALLS = "gold/calls.bin"
_RECORDED = '''"""Asks what was recorded of {function}, and takes the time: docs/discover.md says how."""

from blastdoor_recorded import judge

if __name__ == "__main__":
    judge(calls="{calls}", batches={batches}, repeat={repeat})
'''
_TIMED = '''"""Times a whole command of the candidate, in one chamber with it: tier "shared"."""

import os
import statistics
import subprocess
import time

from blastdoor_judge import BadOutput, judging, publish

COMMAND = {command}
RUNS = 5


def seconds() -> float:
    began = time.perf_counter()
    ended = subprocess.run(COMMAND, cwd=os.environ["BLASTDOOR_CANDIDATE"], check=False)
    if ended.returncode:
        raise BadOutput(f"the command ended with {{ended.returncode}}")
    return time.perf_counter() - began


with judging():
    seconds()
    publish(statistics.median(seconds() for _ in range(RUNS)))
'''


@dataclass(frozen=True)
class Made:
    """What all tasks of a repository have in common."""

    repository: Repository
    packages: Sequence[str]
    guard: Guard | None
    memory_mib: int

    def task(self, target: Target, name: str) -> Imported:
        files = {f"workspace/{path}": data for path, data in self.repository.files.items()}
        if isinstance(target, FunctionTarget):
            files["judge/judge.py"] = _RECORDED.format(
                function=target.function, calls=_CALLS, batches=target.pool.batches, repeat=target.pool.repeat
            ).encode()
            files[f"judge/{_CALLS}"] = target.pool.data
        else:
            files["judge/judge.py"] = _TIMED.format(command=repr(list(target.command))).encode()
        files["blastdoor.toml"] = self._text(target, name).encode()
        return Imported(files, findings=tuple(target.doubts))

    def _text(self, target: Target, name: str) -> str:
        calls = isinstance(target, FunctionTarget)
        lines = [
            f"# Found by blastdoor discover in {shown(self.repository.source.folder.resolve().name)}.",
            "",
            f"name = {toml_text(name)}",
            f"statement = {toml_paragraphs(self._statement(target))}",
            f"editable = {toml_list(target.editable)}",
            "",
            *(self._trial(target) if isinstance(target, FunctionTarget) else _unused_trial(target)),
            "",
            "[limits]",
            f'wall = "{self._wall(target)}s"',
            f'memory = "{self.memory_mib}MiB"',
            *self._image(),
            "",
            "[judge] # in a chamber of its own" if calls else "[judge] # in one chamber with the candidate",
            f'mode = "{target.tier}"',
            'command = ["python3", "judge.py"]',
            f'limits = {{wall = "{self._wall(target)}s", memory = "{self.memory_mib}MiB"}}',
            "",
            "[[metrics]]",
            f'name = "{target.metric if calls else "score"}"',
            'goal = "lower"',
            *(["timing = true"] if calls else []),
            'binds = ["image", "judge", "gold", "limits", "cpu", "backend"]',
            "",
            "[certify] # times are never the same twice",
            'rule = "noisy"',
            *self._guard(),
            "",
            "[search] # without a model; --proposer llm asks one",
            'proposer = "operators"',
            "width = 1",
            "",
        ]
        return "\n".join(lines)

    def _trial(self, target: FunctionTarget) -> list[str]:
        path = ":".join(f"/work/src/{root}" if root != "." else "/work/src" for root in self.repository.roots)
        words = ["python3", "-m", "blastdoor_batch", target.module, target.function]
        return [
            "[trial] # the judge calls this one function, many questions at a time",
            f"command = {toml_list(words)}",
            f'env = {{PYTHONPATH = {toml_text(path)}, PYTHONDONTWRITEBYTECODE = "1"}}',
        ]

    def _wall(self, target: Target) -> int:
        """Of the candidate's own turns: an honest one takes as long as the baseline; ten of these are enough."""
        return int(max(_LEAST_WALL_S, 10 * target.run_s * (1 if isinstance(target, FunctionTarget) else 6)))

    def _image(self) -> list[str]:
        return ["", "[image]", f"pip = {toml_list(self.packages)}"] if self.packages else []

    def _guard(self) -> list[str]:
        if self.guard is None:
            return []
        wall = int(max(_LEAST_WALL_S, _GUARD_TIMES * self.guard.seconds))
        left_out = f", without {self.guard.left_out} that fail as it is" if self.guard.left_out else ""
        return [
            "",
            f"[[guards]] # the repository's own tests{left_out}",
            'name = "tests"',
            f"command = {toml_list(self.guard.suite.command(self.repository.roots))}",
            f'limits = {{wall = "{wall}s"}}',
        ]

    def _statement(self, target: Target) -> str:
        lines = [f"Make {target.title} faster. It must do exactly what it does now."]
        if isinstance(target, FunctionTarget):
            lines += [
                "",
                f"A judge in another chamber calls {target.function} of {target.module} with {target.pool.count}"
                " questions, compares every answer with that of the code as it was (floats up to rounding), and takes"
                f" the time. What counts is seconds, the median over {target.pool.batches - 1} batches of calls; lower"
                " is better. A new process is asked each time, so answers that were kept are of no use.",
            ]
        else:
            lines += ["", "What counts is score, the seconds that the whole command takes; lower is better."]
        if target.parameters if isinstance(target, FunctionTarget) else ():
            named = ", ".join(map(str, target.parameters)) if isinstance(target, FunctionTarget) else ""
            lines += ["", f"Numbers that somebody chose in these files, and that cannot be changed here: {named}."]
        if self.guard is not None:
            lines += ["", "A candidate is kept only if the repository's tests pass."]
        return "\n".join(lines)


def _unused_trial(target: CommandTarget) -> list[str]:
    return [
        '[trial] # not run by itself: with mode = "shared" the judge runs it',
        f"command = {toml_list(target.command)}",
    ]
