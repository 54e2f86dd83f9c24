"""A judge that starts a command in the candidate's chamber, by the clock outside of it. Standard library only, Python
3.9 up.

    from blastdoor_command import judge

    judge(command=["go", "test", "./..."], output="gold/output.json")

The candidate's side is blastdoor_programs. The command must end well each time, and print what it printed before: `how`
in the file says whether to the byte ("exact"), with all numbers taken out ("numbers"), or not at all ("code").
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blastdoor_judge import BadOutput, publish
from blastdoor_programs import SLICE_S, without_numbers
from blastdoor_relay import Candidate, relay

__all__ = ["judge"]

_SOURCE = "/work/src"


def judge(*, command: Sequence[str], output: str, runs: int = 5) -> None:
    """Publish `seconds`, what one run takes: the median over all but the first, which may still build something."""
    known = json.loads(Path(output).read_text(encoding="utf-8"))
    with relay(exact=True) as candidate:
        _run(candidate, command, known)
        taken = [_run(candidate, command, known) for _ in range(runs)]
        seconds = statistics.median(taken)
        publish(seconds, metrics={"seconds": seconds})


def _run(candidate: Candidate, command: Sequence[str], known: dict[str, Any]) -> float:
    request: dict[str, Any] = {
        "program": f"{_SOURCE}/{known['file']}",
        "argv": list(command),
        "cwd": _SOURCE,
        "stdin": b"",
    }
    request |= {"roots": [], "named": [], "files": {}, "env": {}}
    started = candidate.call("start", request)
    seconds = float(started.elapsed)
    while True:
        reply = candidate.call("wait", started.value, SLICE_S)
        seconds += float(reply.elapsed)
        if reply.value is not None:
            break
    _check(reply.value, known)
    return seconds


def _check(ended: Any, known: dict[str, Any]) -> None:
    if type(ended) is not dict or ended.get("code") != 0 or type(ended.get("stdout")) is not bytes:
        raise BadOutput("the command does not end with exit code 0")
    said = ended["stdout"].decode("utf-8", "replace")
    if known["how"] == "numbers":
        said = without_numbers(said)
    if known["how"] != "code" and said != known["stdout"]:
        raise BadOutput("the command does not print what it printed before")
