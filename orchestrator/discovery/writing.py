"""A target as an ordinary task folder: the repository as the workspace, a judge with a clock of its own, its answers as
gold, and the tests as a guard.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.change import shown
from orchestrator.discovery.bench import Guard
from orchestrator.discovery.node import NODE_PATH
from orchestrator.discovery.parameters import PARAMETERS_FOLDER, parameter_files, parameter_lines
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import CommandTarget, FunctionTarget, Language, ParameterTarget, Target
from orchestrator.importing.base import Imported
from orchestrator.importing.called import toml_list, toml_paragraphs, toml_text
from orchestrator.judge.helpers import HELPERS_FOLDER

_GUARD_TIMES = 10
_LEAST_WALL_S = 60
_CALLS = "gold/calls.bin"
_OUTPUT = "gold/output.json"
# What the candidate's package prints must not be taken for an answer.
_NODE = 'exec node "$@" 3<&0 4>&1 </dev/null >&2'
_RECORDED = '''"""Asks what was recorded of {function}, and takes the time: docs/discover.md says how."""

from blastdoor_recorded import judge

if __name__ == "__main__":
    judge(calls="{calls}", batches={batches}, repeat={repeat})
'''
_TIMED = '''"""Starts a command in the candidate's chamber, and takes the time: docs/discover.md says how."""

from blastdoor_command import judge

if __name__ == "__main__":
    judge(command={command}, output="{output}")
'''


@dataclass(frozen=True)
class Made:
    """What all tasks of a repository have in common."""

    repository: Repository
    pip: Sequence[str]
    apt: Sequence[str]
    guards: Sequence[Guard]
    memory_mib: int
    # What a model says to those who propose; a hint, and no rule of the judge.
    hint: str = ""

    def task(self, target: Target, name: str) -> Imported:
        files = {f"workspace/{path}": data for path, data in self.repository.files.items()}
        if isinstance(target, ParameterTarget):
            files |= parameter_files(target.space)
        if asked := _asked(target):
            files["judge/judge.py"] = _RECORDED.format(
                function=asked.function, calls=_CALLS, batches=asked.pool.batches, repeat=asked.pool.repeat
            ).encode()
            files[f"judge/{_CALLS}"] = asked.pool.data
        elif isinstance(target, CommandTarget):
            files["judge/judge.py"] = _TIMED.format(command=repr(list(target.command)), output=_OUTPUT).encode()
            known = {"file": target.path, "how": target.how, "stdout": target.output}
            files[f"judge/{_OUTPUT}"] = json.dumps(known).encode()
        files["blastdoor.toml"] = self._text(target, name).encode()
        return Imported(files, findings=(*target.holes, *target.doubts))

    def _text(self, target: Target, name: str) -> str:
        lines = [
            f"# Found by blastdoor discover in {shown(self.repository.source.folder.resolve().name)}.",
            "",
            f"name = {toml_text(name)}",
            f"statement = {toml_paragraphs(self._statement(target))}",
            f"editable = {toml_list(target.editable)}",
            "",
            *self._trial(target),
            "",
            "[limits]",
            f'wall = "{self._wall(target)}s"',
            f'memory = "{self.memory_mib}MiB"',
            *self._image(),
            "",
            "[judge] # in a chamber of its own",
            f'mode = "{target.tier}"',
            'command = ["python3", "judge.py"]',
            f'limits = {{wall = "{self._wall(target)}s", memory = "{self.memory_mib}MiB"}}',
            "",
            "[[metrics]]",
            f'name = "{target.metric}"',
            'goal = "lower"',
            "timing = true",
            'binds = ["image", "judge", "gold", "limits", "cpu", "backend"]',
            "",
            "[certify] # times are never the same twice",
            'rule = "noisy"',
            *(line for guard in self.guards for line in _guard(guard, chosen=isinstance(target, ParameterTarget))),
            *(parameter_lines(target.space) if isinstance(target, ParameterTarget) else ()),
            "",
            "[search] # without a model; --proposer llm asks one",
            f'proposer = "{"tpe" if isinstance(target, ParameterTarget) else "operators"}"',
            "width = 1",
            "",
        ]
        return "\n".join(lines)

    def _trial(self, target: Target) -> list[str]:
        if isinstance(target, CommandTarget):
            return [
                "[trial] # runs what the judge asks for",
                f"command = {toml_list(['python3', '-m', 'blastdoor_programs', target.path])}",
            ]
        chosen = [PARAMETERS_FOLDER] if isinstance(target, ParameterTarget) else []
        target = target.base if isinstance(target, ParameterTarget) else target
        served = "[trial] # the judge calls this one function, many questions at a time"
        if target.language is Language.NODE:
            words = ["sh", "-c", _NODE, "node", f"{HELPERS_FOLDER}/blastdoor_batch.cjs", target.module, target.function]
            return [served, f"command = {toml_list(words)}", f"env = {{NODE_PATH = {toml_text(NODE_PATH)}}}"]
        folders = [*chosen, *self.repository.roots]
        path = ":".join(f"/work/src/{folder}" if folder != "." else "/work/src" for folder in folders)
        words = ["python3", "-m", "blastdoor_batch", target.module, target.function]
        return [
            served,
            f"command = {toml_list(words)}",
            f'env = {{PYTHONPATH = {toml_text(path)}, PYTHONDONTWRITEBYTECODE = "1"}}',
        ]

    def _wall(self, target: Target) -> int:
        """Of the candidate's own turns: an honest one takes as long as the baseline; ten of these are enough."""
        return int(max(_LEAST_WALL_S, 10 * target.run_s * (6 if isinstance(target, CommandTarget) else 1)))

    def _image(self) -> list[str]:
        lists = {"pip": self.pip, "apt": self.apt}
        lines = [f"{name} = {toml_list(it)}" for name, it in lists.items() if it]
        return ["", "[image]", *lines] if lines else []

    def _statement(self, target: Target) -> str:
        lines = [f"Make {target.title} faster. It must do exactly what it does now."]
        if isinstance(target, ParameterTarget):
            lines = [f"Find better values for {target.title}. The answers must stay what they are."]
        if self.hint:
            lines += ["", "What a model said of it, which may be wrong:", "", self.hint]
        if asked := _asked(target):
            lines += [
                "",
                f"A judge in another chamber calls {asked.function} of {asked.module} with {asked.pool.count}"
                " questions, compares every answer with that of the code as it was (floats up to rounding), and takes"
                f" the time. What counts is seconds, the median over {asked.pool.batches - 1} batches of calls; lower"
                " is better. A new process is asked each time, so answers that were kept are of no use.",
            ]
        else:
            lines += ["", "What counts is seconds, which the whole command takes, by a clock outside; lower is better."]
        if isinstance(target, FunctionTarget) and target.parameters:
            named = ", ".join(map(str, target.parameters))
            lines += ["", f"Numbers that somebody chose in these files, and that cannot be changed here: {named}."]
        if self.guards:
            lines += ["", "A candidate is kept only if the repository's tests pass."]
        return "\n".join(lines)


def _asked(target: Target) -> FunctionTarget | None:
    """The function that the judge of this target calls; none for a whole command."""
    if isinstance(target, ParameterTarget):
        return target.base
    return target if isinstance(target, FunctionTarget) else None


def _guard(guard: Guard, *, chosen: bool) -> list[str]:
    """Where numbers are chosen, the tests run with these, too."""
    wall = int(max(_LEAST_WALL_S, _GUARD_TIMES * guard.seconds))
    left_out = f", without {guard.left_out} that fail as it is" if guard.left_out else ""
    path = f"PYTHONPATH={PARAMETERS_FOLDER}:"
    command = [it.replace("PYTHONPATH=", path, 1) if chosen and at == 1 else it for at, it in enumerate(guard.command)]
    return [
        "",
        f"[[guards]] # the repository's own tests{left_out}",
        f"name = {toml_text(guard.name)}",
        f"command = {toml_list(command)}",
        f'limits = {{wall = "{wall}s"}}',
    ]
