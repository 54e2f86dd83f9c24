"""Tasks of evo: a repository in which `evo init` was run, with a target, a benchmark's command line and a direction.

They stand in `.evo`, in the folder of the active run. The benchmark goes into the judge's folder as it is; where its
command line names the target, it gets the path of a stub.
"""

import json
import shlex
from dataclasses import replace
from typing import Any

from orchestrator.change import shown
from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.evaluated import Guard, Lines, Names, Wanted, find
from orchestrator.importing.packages import Needs, needs_of
from orchestrator.importing.source import MAX_TEXT_BYTES, Source
from orchestrator.task import TaskError

_TARGET = "{target}"
_GOALS = {"max": "higher", "min": "lower"}
_WALL_S = 300.0
_MEMORY_MIB = 2048


def read(request: ImportRequest) -> Imported:
    source = Source.of(request.source)
    config = _config(source)
    goal = _GOALS.get(str(config.get("metric")))
    if goal is None:
        raise TaskError(f"{source.folder}: its .evo says the metric {config.get('metric')!r}; it must be max or min")
    evaluator, arguments = _command(source, str(config.get("benchmark", "")))
    target = request.program or str(config.get("target", ""))
    found = find(replace(request, program=target, evaluator=evaluator), Names([], [], []))
    wanted = Wanted(
        origin=f"evo: {target}, {config['benchmark']}",
        module="blastdoor_evo",
        said="",
        metric=request.metric or "score",
        wall_s=_WALL_S,
        memory_mib=_MEMORY_MIB,
        attempts=0,
        driver={"arguments": arguments, "goal": goal},
        goal=goal,
    )
    mapped = [
        f"the metric is {wanted.metric}, {goal} is better, as evo init was told",
        f"limits.wall is {_WALL_S:g}s: evo has no such limit of its own",
    ]
    gate = str(config.get("gate") or "")
    guard = _guard(source, gate, target, request)
    wanted = replace(wanted, guard=guard)
    left_out = [f"the gate ({shown(gate)}): write it as one of [[guards]]"] if gate and not guard else []
    findings = []
    if guard:
        mapped.append(f"the gate is a guard: {shown(' '.join(guard.command))}")
        findings.append("the gate runs beside the candidate's code: it guards against mistakes, not against cheats")
    left_out.append("experiments that .evo holds, and gates of its branches")
    return found.imported(request, wanted, Lines(mapped, left_out, findings))


def _guard(source: Source, line: str, target: str, request: ImportRequest) -> Guard | None:
    """None for a line of the shell, and for a command that names no file of the repository."""
    try:
        words = [word.replace(_TARGET, target) for word in shlex.split(line)]
    except ValueError:
        return None
    named = [word.removeprefix("./").rstrip("/") for word in words]
    files = {it for it in source.names for word in named if it == word or (word and it.startswith(f"{word}/"))}
    if not files - {target} or set(line) & set("|&;<>$`(){}*?!") - set("{}" if _TARGET in line else ""):
        return None
    needs = Needs(files=set(files))
    for name in sorted(files):
        if name.endswith(".py"):
            found = needs_of(source, name, request.packages)
            needs.files |= found.files
            needs.packages |= found.packages
    needs.packages |= {"pytest"} & {*words}
    return Guard(words, needs)


def _config(source: Source) -> dict[str, Any]:
    """Of the active run; an older layout has it in .evo itself."""
    meta = _table(source, ".evo/meta.json")
    active = meta.get("active")
    inside = f"{active}/" if isinstance(active, str) and "/" not in active and not active.startswith(".") else ""
    config = _table(source, f".evo/{inside}config.json")
    if not config:
        raise TaskError(
            f"{source.folder}: has no .evo/{shown(inside)}config.json; run evo init there, or name its repository"
        )
    return config


def _table(source: Source, name: str) -> dict[str, Any]:
    """Empty where it is not there. Raises TaskError for a link on the way to it, which could lead anywhere."""
    path = source.folder / name
    try:
        link = next((it for it in (path, *path.parents[: name.count("/")]) if it.is_symlink()), None)
        there = path.is_file()
    except OSError as error:
        raise TaskError(f"{shown(str(path))}: cannot be read ({error.strerror})") from None
    if link:
        raise TaskError(f"{link}: is a link, and none is followed; put what it leads to in its place")
    if not there:
        return {}
    try:
        found = json.loads(source.read(name, MAX_TEXT_BYTES))
    except (ValueError, RecursionError):
        raise TaskError(f"{path}: is not JSON; mend it") from None
    return found if isinstance(found, dict) else {}


def _command(source: Source, line: str) -> tuple[str, list[str]]:
    """The benchmark's file and what comes behind it. Raises TaskError for a command that is no Python file of the
    repository with the target among its arguments.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    at = next((at for at, word in enumerate(words) if word.removeprefix("./") in source.names), -1)
    file = words[at].removeprefix("./") if at >= 0 else ""
    if not file.endswith(".py") or not any(_TARGET in word for word in words[at + 1 :]):
        raise TaskError(
            f"{source.folder}: its benchmark ({shown(line)}) is no Python file of the repository that is given"
            f" {_TARGET}; only such can be imported yet"
        )
    return file, words[at + 1 :]
