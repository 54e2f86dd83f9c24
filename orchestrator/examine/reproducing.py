"""A cheat that gained, as a change that anybody can put before the judge: `blastdoor gate TASK --diff FILE`.

The change is whole: one file that the trial starts, which does what the cheat did. Where no such file may be changed,
or more than a few lines are needed, there is none: `blastdoor audit TASK --only NAME` does it again then.
"""

import base64

from orchestrator.domain.verdict import Mode
from orchestrator.examine.cheating import may_be_changed
from orchestrator.judge.adversaries import Oracle, Play
from orchestrator.judge.tape import Tape
from orchestrator.loop.workbench import Parts

_MOST_BYTES = 200_000
_FENCE = "`" * 8


def reproduction(parts: Parts, oracle: Oracle, tape: Tape | None) -> str | None:
    """The text of a change; None where there is none."""
    path = _started(parts)
    if path is None:
        return None
    code = _leaving(oracle) if oracle.play is None else _answering(parts, oracle, path, tape or Tape())
    return f"{path}\n{_FENCE}\n{code}{_FENCE}\n" if code and len(code) <= _MOST_BYTES and _FENCE not in code else None


def _started(parts: Parts) -> str | None:
    """The Python file that the trial's command names, if a change may replace it."""
    tree, folder = parts.jobs.snapshot.tree, parts.task.trial.workdir
    for word in parts.jobs.trial(Mode.SUBMIT).command:
        path = word if folder in ("", ".") else f"{folder}/{word}"
        if path in tree and path.endswith(".py"):
            whole = may_be_changed(parts, path) and path not in parts.task.policy().regions
            return path if whole else None
    return None


def _leaving(oracle: Oracle) -> str:
    files = {name: base64.b64encode(data).decode() for name, data in oracle.outputs.items()}
    return (
        f"# {oracle.name}: leaves this, and works out nothing.\n"
        "import base64, os, pathlib\n"
        f"FILES = {files!r}\n"
        "for name, data in FILES.items():\n"
        '    path = pathlib.Path(os.environ["BLASTDOOR_OUT"], name)\n'
        "    path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    path.write_bytes(base64.b64decode(data))\n"
    )


_VALUES = {
    "error": '_fail("this candidate solves nothing")',
    "question": "arguments[0]",
    "first answer": "first[0]",
    "remembered": "asked[key]",
}
_SPARED = {
    "none": "False",
    "first": "place == 0",
    "every second": "place % 2 == 0",
    "first half": "place < HALF",
    "not asked before": "key not in asked",
}
_ANSWERING = """# {name}: answers, and solves nothing.
import itertools
HALF = {half}
{honest}
places, asked, first = itertools.count(), {{}}, []
def _fail(text):
    raise RuntimeError(text)
def _cheat(name):
    def call(*arguments, **keywords):
        if name in {graders!r}:
            return True
        place, key = next(places), repr((name, arguments, keywords))
        if {spared}:
            asked[key] = honest[name](*arguments, **keywords)
            first.append(asked[key])
            return asked[key]
        return {answer}
    call.__module__ = __name__
    return call
"""


def _answering(parts: Parts, oracle: Oracle, path: str, tape: Tape) -> str:
    """For cheats that need no more than a few lines, and functions that are no class's."""
    play = oracle.play or Play()
    answer = _written(play.value) if play.answer == "value" else _VALUES.get(play.answer)
    if answer is None or play.spare not in _SPARED or play.ahead or play.loading or tape.uses_objects:
        return ""
    source = parts.jobs.snapshot.tree[path].data.decode("utf-8", "replace")
    honest = "honest = {}"
    if play.spare != "none":
        honest = f'honest = {{"__name__": "honest"}}\nexec({source!r}, honest)'
    text = _ANSWERING.format(
        name=oracle.name,
        honest=honest,
        half=max(1, len(tape.calls) // 2),
        graders=list(tape.graders) if play.graders else [],
        spared=_SPARED[play.spare],
        answer=answer,
    )
    return text + "".join(f"{name} = _cheat({name!r})\n" for name in tape.names)


def _written(value: object) -> str:
    """As Python reads it."""
    return f"float({str(value)!r})" if isinstance(value, float) else repr(value)
