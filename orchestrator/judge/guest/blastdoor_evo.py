"""Runs a benchmark of evo: a program whose command line names the target, and which leaves a result. Standard library
only, Python 3.9 up.

    from blastdoor_evo import judge

    judge(evaluator="benchmark.py", arguments=["--target", "{target}"], metric="score", functions=["solve"])

The result is the JSON object in the file that EVO_RESULT_PATH names, or all that the benchmark printed: `score`, and
`tasks` and a text `error` if it likes. Its traces go where those of every judge go.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blastdoor_evaluator import EvaluatorBroke, Outcome, run_evaluator

__all__ = ["judge"]

_TARGET = "{target}"


def judge(*, arguments: Sequence[str], **given: Any) -> None:
    """As run_evaluator; `{target}` in the arguments is the stub's path."""
    run_evaluator(lambda evaluator, program, found: _run(evaluator, program, found, arguments), **given)


def _run(evaluator: str, program: str, found: Outcome, arguments: Sequence[str]) -> None:
    path = Path(evaluator).resolve()
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path), *(word.replace(_TARGET, program) for word in arguments)]
    own = os.environ.get("EVO_RESULT_PATH", "")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        # Its result is not yet ours: whether anybody was called is to be seen first.
        os.environ["EVO_RESULT_PATH"] = str(Path(folder) / "result.json")
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise EvaluatorBroke(f"{path.name} ended with {end.code!r}") from None
        finally:
            os.environ["EVO_RESULT_PATH"] = own
            sys.stderr.write(printed.getvalue())
        left = Path(folder) / "result.json"
        text = left.read_text(encoding="utf-8") if left.is_file() else printed.getvalue()
    result = _parsed(text, path.name)
    numbers = result.get("metrics")
    told = {"error": result["error"]} if result.get("error") else {}
    found.take({**(numbers if isinstance(numbers, Mapping) else {}), **told, "score": result.get("score")})
    tasks = result.get("tasks")
    if isinstance(tasks, Mapping) and tasks:
        found.tasks = {str(name): it for name, it in tasks.items()}


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        result = json.loads(text)
    except ValueError:
        raise EvaluatorBroke(f"{name} left no result: neither a file nor one JSON object on stdout") from None
    if not isinstance(result, dict):
        raise EvaluatorBroke(f"the result of {name} is no table")
    return result
