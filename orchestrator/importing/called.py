"""The files of a task whose judge is another system's evaluator: the task file, and the driver that runs it."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.change import shown

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DRIVER = '''"""Runs the evaluator as it is. The program {what}."""

from {module} import judge

if __name__ == "__main__":
    judge(
{arguments}
    )
'''


_STAGES = (
    "",
    "[[metrics]] # a candidate that stopped early is not better than one that went on, whatever it scored there",
    'name = "stages"',
    "before = true",
)


class Way(StrEnum):
    """How an evaluator uses the program: it calls its functions, starts it, or reads it."""

    CALLED = "called"
    STARTED = "started"
    READ = "read"


@dataclass(frozen=True)
class CalledTask:
    """`why_noisy` is empty where the same program gets the same score; `attempts` is 0 where nobody said a number."""

    origin: str
    name: str
    statement: str
    program: str
    editable: Sequence[str]
    metric: str
    driver: str
    wall_s: float
    memory_mib: int
    program_packages: Sequence[str]
    judge_packages: Sequence[str]
    why_noisy: str
    attempts: int
    goal: str = "higher"
    guard: Sequence[str] = ()
    stages: bool = False
    way: Way = Way.CALLED
    program_apt: Sequence[str] = ()
    looks: bool = False

    def text(self) -> str:
        wall = f'"{self.wall_s:g}s"'
        lines = [
            f"# Imported from a task of {shown(self.origin)}.",
            "",
            f"name = {toml_text(self.name)}",
            f"statement = {toml_paragraphs(self.statement)}",
            f"editable = {toml_list(self.editable)}",
            "",
            *self._trial(),
            "",
            "[limits] # of the candidate's own turns",
            f"wall = {wall}",
            f'memory = "{self.memory_mib}MiB"',
            # Toolchains start processes, and leave more than scripts do.
            *(["pids = 512", 'work_bytes = "1GiB"', "work_inodes = 131072"] if self.way is Way.STARTED else []),
            *_image("image", self.program_packages, self.program_apt),
            "",
            "[judge] # the evaluator, unchanged, in a chamber of its own",
            f'mode = "{"data" if self.way is Way.READ else "relay"}"',
            f'command = ["python3", {toml_text(self.driver)}]',
            *([f"looks = {toml_list([self.program])} # its text is data there"] if self.looks else []),
            f'limits = {{wall = {wall}, memory = "{self.memory_mib}MiB"}}',
            *_image("judge.image", self.judge_packages),
            "",
            "[[metrics]]",
            f"name = {toml_text(self.metric)}",
            f'goal = "{self.goal}"',
            *_STAGES * self.stages,
            *(["", f"[certify] # {shown(self.why_noisy)}", 'rule = "noisy"'] if self.why_noisy else []),
            *self._guards(),
            *(["", "[budget]", f"attempts = {self.attempts}"] if self.attempts else []),
            "",
            "[search] # without a model; --proposer llm asks one",
            'proposer = "operators"',
            "",
        ]
        return "\n".join(lines)

    def _guards(self) -> list[str]:
        command = f"command = {toml_list(self.guard)}"
        return ["", "[[guards]] # in the candidate's chamber", 'name = "gate"', command] if self.guard else []

    def _trial(self) -> list[str]:
        program = toml_text(self.program)
        if self.way is Way.READ:
            copy = f'cp --parents {shlex.quote(self.program)} "$BLASTDOOR_OUT"'
            return ["[trial] # the judge reads this file", f"command = {toml_text(copy)}"]
        module, does = "blastdoor_candidate", "calls the functions of this file"
        if self.way is Way.STARTED:
            module, does = "blastdoor_programs", "starts this program, and what it is built with, in this chamber"
        return [f"[trial] # the judge {does}", f'command = ["python3", "-m", "{module}", {program}]']


def _image(section: str, packages: Sequence[str], apt: Sequence[str] = ()) -> list[str]:
    lines = [f"apt = {toml_list(apt)}"] if apt else []
    lines += [f"pip = {toml_list(packages)}"] if packages else []
    return ["", f"[{section}]", *lines] if lines else []


def how_it_is_used(way: Way, names: Sequence[str], program: str, metric: str, goal: str) -> str:
    """The end of every statement: what a proposer must know of the way in which its program is used."""
    counts = f"What counts is {metric}; {goal} is better."
    if way is Way.READ:
        return f"A judge in another chamber reads {program}. {counts}"
    if way is Way.STARTED:
        with_what = f" with {', '.join(names)}" if names else ""
        return (
            f"A judge in another chamber starts {program}{with_what}, without a network, and sees its output and the"
            f" files that it leaves. {counts}"
        )
    return (
        f"A judge in another chamber calls {', '.join(names)} of {program}. Only plain values cross: numbers,"
        f" texts, lists, tables, arrays. {counts}"
    )


_WHAT = {
    Way.CALLED: "whose path it gets is a stub, whose functions are calls of the candidate\nin its own chamber",
    Way.STARTED: "that it starts, and what builds it, run in the candidate's own chamber",
    Way.READ: "is a file that it reads",
}


def driver_text(module: str, way: Way, *, evaluator: str, **given: object) -> str:
    """The judge's command: one call of our module for that system, with what is given and not None."""
    said = {"evaluator": evaluator, **given}
    arguments = "\n".join(f"        {name}={it!r}," for name, it in said.items() if it is not None)
    return _DRIVER.format(module=module, arguments=arguments, what=_WHAT[way])


_RULE = re.compile(r'\n\[certify\][^\n]*\nrule = "noisy"\n')


def with_noisy_rule(task: str, why: str) -> str:
    """The text of a task with the certify rule "noisy" for this reason, whatever it said before."""
    rule = f'[certify] # {shown(why, 200)}\nrule = "noisy"\n\n'
    return _RULE.sub("", task).replace("\n[search]", f"\n{rule}[search]", 1)


def toml_text(text: str) -> str:
    """On one line."""
    return json.dumps(_whole(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_paragraphs(text: str) -> str:
    """As it is read, over several lines, where TOML lets it stand like that."""
    text = "\n".join(line.rstrip() for line in _whole(text).strip().splitlines())
    return toml_text(text) if "'''" in text or _CONTROL.search(text) else f"'''\n{text}\n'''"


def toml_list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(toml_text, words))}]"


def _whole(text: str) -> str:
    """Without halves of characters, which YAML can write."""
    return text.encode("utf-8", "replace").decode("utf-8")
