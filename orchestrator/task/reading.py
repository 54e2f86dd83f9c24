"""Reads TASK/blastdoor.toml, strictly. Whatever is wrong is told in one line: file:line: key: what, and what to do."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator import bounded_toml
from orchestrator.task.crosschecks import check
from orchestrator.task.errors import FILE, Key, TaskError, Wrong, dotted, refuse_unnameable
from orchestrator.task.explaining import explained
from orchestrator.task.lines import key_lines, line_of
from orchestrator.task.model import Task

FILE_BYTES = 1 << 20
LARGEST = 2**63


def load_task(folder: Path, *, searches: bool = True) -> Task:
    """Read the task of a folder, and check it against what lies there.

    Args:
        folder: Where `blastdoor.toml` is.
        searches: Whether it is to be searched: then a name that no installed package brings is an error, too.

    Returns:
        The task.

    Raises:
        TaskError: With file, line and key, in one line.
    """
    file = folder / FILE
    text = _read(file)
    try:
        task = validated(_parsed(text, file))
        warnings = check(task, folder, searches=searches)
    except Wrong as wrong:
        raise TaskError(_located(wrong.key, wrong.text, key_lines(text), file)) from None
    except RecursionError:
        raise TaskError(f"{file}: is nested too deeply; write it flatter") from None
    except OSError as error:
        raise TaskError(
            f"{error.filename or file}: cannot be read ({error.strerror}); check the name and rights"
        ) from None
    lines = key_lines(text) if warnings else {}
    return task.with_warnings(tuple(_located(key, noticed, lines, file) for key, noticed in warnings))


def _read(file: Path) -> str:
    refuse_unnameable(file.parent)
    if not file.parent.is_dir():
        raise TaskError(f"{file.parent}: is not a folder; name the folder of a task, or make one with: blastdoor init")
    if not file.is_file():
        raise TaskError(f"{file}: is not there; write one with: blastdoor init")
    try:
        with file.open("rb") as stream:
            data = stream.read(FILE_BYTES + 1)
    except OSError as error:
        raise TaskError(f"{file}: cannot be read ({error.strerror}); check its rights") from None
    if len(data) > FILE_BYTES:
        raise TaskError(f"{file}: has more than 1MiB; put large texts into files")
    try:
        return data.decode("utf-8-sig")  # some editors begin a file with a mark of its encoding
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{file}:{line}: is not UTF-8; save it as UTF-8") from None


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return bounded_toml.loads(text)
    except ValueError as error:
        # Plain ValueErrors are those of numbers that nobody writes; they come without a place.
        said = str(error)
        match = re.fullmatch(r"(.*) \(at line ([0-9]+), column ([0-9]+)\)", said, re.DOTALL)
        if match:
            raise TaskError(f"{file}:{match[2]}: is not TOML: {match[1]} at column {match[3]}; correct it") from None
        line = text.rstrip().count("\n") + 1
        raise TaskError(f"{file}:{line}: is not TOML: {said}; correct it") from None


def validated(raw: dict[str, Any]) -> Task:
    _refuse_unusable(raw, ())
    _inherit_limits(raw)
    try:
        # As JSON, because there a list may become a tuple while nothing else is converted: "5" is no number.
        return Task.model_validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        if errors[0]["type"] == "json_invalid":  # we wrote it: the one fault it can have is its depth
            raise RecursionError from None
        raise explained(errors, raw) from None


def _refuse_unusable(value: Any, key: Key) -> None:
    """TOML has values that JSON has not, or not in every reader."""
    if isinstance(value, datetime | date | time):
        raise Wrong(key, "is a date; no key takes one, so write text in quotes")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Wrong(key, "is too large a number; write a smaller one")
    if isinstance(value, dict | list):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_unusable(inner, (*key, part))


def _inherit_limits(raw: dict[str, Any]) -> None:
    """A limit that tune, a guard or [combine] does not name is that of the trial, or of the judge where the guard runs
    there.
    """
    trial, judge = raw.get("limits", {}), raw.get("judge", {})
    of_judge = judge.get("limits", {}) if isinstance(judge, dict) else {}
    tune, guards = raw.get("tune"), raw.get("guards")
    if isinstance(tune, dict) and "limits" in tune:
        _fill(tune, trial)
    for guard in guards if isinstance(guards, list) else ():
        if isinstance(guard, dict):
            _fill(guard, of_judge if guard.get("in") == "judge" else trial)
    if isinstance(combine := raw.get("combine"), dict):
        if "limits" in combine:
            _fill(combine, trial)
        # A level deeper, the stage's own limits are what others go by.
        _inherit_limits({**combine, "limits": combine.get("limits", trial), "judge": judge})


def _fill(section: dict[str, Any], limits: object) -> None:
    own = section.get("limits", {})
    if isinstance(own, dict) and isinstance(limits, dict):
        section["limits"] = limits | own


def _located(key: Key, said: str, lines: Mapping[Key, int], file: Path) -> str:
    line = line_of(key, lines)
    return f"{file}:{line}: {dotted(key)}: {said}" if key else f"{file}:{line}: {said}"
