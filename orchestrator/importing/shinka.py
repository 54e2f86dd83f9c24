"""Tasks of ShinkaEvolve: initial.py, evaluate.py with `main(program_path, results_dir)`, and settings in run_evo.py or
in a shinka.yaml.

The settings in Python are read, not run: of a keyword only a plain value counts, or a name that has one.
"""

import ast
import re
from typing import Any

from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.config import number, read_config, section
from orchestrator.importing.evaluated import Lines, Names, Wanted, find
from orchestrator.importing.program import chosen
from orchestrator.importing.source import Source
from orchestrator.importing.survey import RANKED

_NAMES = Names(["evaluate.py"], ["initial.*"], ["main"])
_SETTINGS = ("run_evo.py", "shinka.y*ml", "shinka*.y*ml")
_TIMEOUT_S = 300.0
_MEMORY_MIB = 2048
_READ = ("task_sys_msg", "num_generations", "time")
_CLOCK = re.compile(r"([0-9]{1,3}):([0-9]{2}):([0-9]{2})")


def read(request: ImportRequest) -> Imported:
    found = find(request, _NAMES)
    name = _settings_name(found.source, request.config)
    settings = _settings(found.source, name) if name else {}
    said, wall_s = settings.get("task_sys_msg"), _seconds(settings.get("time"))
    wanted = Wanted(
        origin=f"ShinkaEvolve: {', '.join(filter(None, [found.program, found.evaluator, name]))}",
        module="blastdoor_shinka",
        said=said if isinstance(said, str) else "",
        metric=request.metric or RANKED,
        wall_s=wall_s or _TIMEOUT_S,
        memory_mib=_MEMORY_MIB,
        attempts=int(number(settings.get("num_generations"), 1, 1_000_000, 0)),
        driver={},
    )
    why = "as you said" if request.metric else "as ShinkaEvolve ranks by it"
    mapped = [
        f"the metric is {wanted.metric}, higher is better, {why}",
        f"limits.wall is {wanted.wall_s:g}s" + ("" if wall_s else ", since the settings name no time"),
    ]
    left_out = ["private metrics: they are for nobody who searches"]
    left_out += [f"settings of {name} but {', '.join(_READ)}"] if name else []
    return found.imported(request, wanted, Lines(mapped, left_out, read=[name]))


def _settings_name(source: Source, named: str | None) -> str:
    if named is not None:
        return chosen(source, named, [], "config")
    return next((names[0] for pattern in _SETTINGS if (names := source.at_top(pattern))), "")


def _settings(source: Source, name: str) -> dict[str, Any]:
    if name.endswith(".py"):
        return _keywords(source.python(name))
    config = read_config(source, name)
    return {**config, **section(config, "job_config"), **section(config, "evo_config")}


def _keywords(tree: ast.Module) -> dict[str, Any]:
    """What is given to any call under the names that count."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _READ:
            if isinstance(node.value, ast.Constant):
                found[node.arg] = node.value.value
            elif isinstance(node.value, ast.Name) and node.value.id in constants:
                found[node.arg] = constants[node.value.id]
    return found


def _seconds(value: object) -> float:
    """Of "00:03:00"; 0 where nobody said it like that."""
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    return 3600.0 * int(match[1]) + 60 * int(match[2]) + int(match[3]) if match else 0.0
