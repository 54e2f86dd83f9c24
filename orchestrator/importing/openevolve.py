"""Tasks of OpenEvolve: a program, an evaluator with `evaluate(program_path)`, and a config.yaml.

The evaluator goes into the judge's folder as it is. It is given the path of a stub, whose functions are calls of the
candidate in its own chamber; see judge/guest/blastdoor_evaluator.py.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.config import number, read_config, section
from orchestrator.importing.evaluated import Found, Lines, Names, Wanted, find
from orchestrator.importing.program import chosen
from orchestrator.importing.source import Source
from orchestrator.importing.survey import RANKED, Survey
from orchestrator.task import TaskError

_STAGES = ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")
_NAMES = Names(["evaluator.py"], ["initial_program.*", "init_program.*"], ["evaluate", *_STAGES])
# Where there is no combined_score: what people call the one number that counts, the clearest first.
_NEXT_BEST = ("score", "overall_score", "total_score", "final_score", "composite_score", "fitness", "accuracy")
_TIMEOUT_S = 300.0
_MEMORY_MIB = 2048
_THRESHOLDS = (0.5, 0.75, 0.9)
_MAPPED = {"max_iterations", "evaluator", "prompt", "random_seed", "log_level", "checkpoint_interval"}


@dataclass(frozen=True)
class _Rules:
    """What the config says of the evaluation, for these stages."""

    config: dict[str, Any]
    stages: list[str]

    @property
    def table(self) -> dict[str, Any]:
        return section(self.config, "evaluator")

    @property
    def thresholds(self) -> list[float] | None:
        """None where the evaluator has no stages, or the config wants none. Raises TaskError for what is no number."""
        if not self.stages or self.table.get("cascade_evaluation") is False:
            return None
        given = self.table.get("cascade_thresholds")
        given = given if isinstance(given, list) else _THRESHOLDS
        found = [number(it, -sys.float_info.max, sys.float_info.max, math.nan) for it in given]
        if any(map(math.isnan, found)):
            raise TaskError("evaluator.cascade_thresholds of the config: each must be a finite number; mend it")
        return found

    @property
    def wall_s(self) -> float:
        """Each stage has the whole time-out there."""
        stages = len(self.stages) if self.thresholds is not None else 1
        return number(self.table.get("timeout"), 1, 86_400, _TIMEOUT_S) * stages


def read(request: ImportRequest) -> Imported:
    found = find(request, _NAMES)
    name = _config_name(found.source, request.config)
    config = read_config(found.source, name) if name else {}
    rules = _Rules(config, [it for it in _STAGES if it in found.seen.entries])
    metric, why = _metric(request.metric, found.seen, found.source.folder / found.evaluator)
    said = section(config, "prompt").get("system_message")
    wanted = Wanted(
        origin=f"OpenEvolve: {', '.join(filter(None, [found.program, found.evaluator, name]))}",
        module="blastdoor_openevolve",
        said=said if isinstance(said, str) else "",
        metric=metric,
        wall_s=rules.wall_s,
        memory_mib=int(number(rules.table.get("memory_limit_mb"), 64, 1 << 20, _MEMORY_MIB)),
        attempts=int(number(config.get("max_iterations"), 1, 1_000_000, 0)),
        driver={"thresholds": rules.thresholds},
        stages=len(rules.stages) > 1 and bool(rules.thresholds) and metric != "stages",
    )
    return found.imported(request, wanted, _lines(found, rules, name, f"{metric}, higher is better, {why}"))


def _config_name(source: Source, named: str | None) -> str:
    if named is not None:
        return chosen(source, named, [], "config")
    found = source.at_top("config.y*ml") or source.at_top("config*.y*ml")
    return found[0] if found else ""


def _metric(named: str | None, seen: Survey, path: object) -> tuple[str, str]:
    """Its name, and why it is this one. A mean of all numbers, as OpenEvolve takes it, would reward nonsense."""
    if named is not None:
        return named, "as you said"
    if RANKED in seen.metrics:
        return RANKED, "as OpenEvolve ranks by it"
    if found := next((name for name in _NEXT_BEST if name in seen.metrics), None):
        return found, f"since there is no {RANKED}, and its name says that it counts; --metric chooses another"
    if len(seen.metrics) == 1:
        return seen.metrics[0], f"the only one, since there is no {RANKED}"
    some = ", ".join(seen.metrics[:12]) or "nothing that can be read"
    raise TaskError(f"{path}: returns no {RANKED}; choose one of what it returns ({some}) with --metric")


def _lines(found: Found, rules: _Rules, config_name: str, metric: str) -> Lines:
    mapped = [
        f"the metric is {metric}",
        f"limits.wall is {rules.wall_s:g}s"
        + ("" if "timeout" in rules.table else f", since the config names no evaluator.timeout ({_TIMEOUT_S:g}s)"),
    ]
    if rules.thresholds is not None:
        told = ", ".join(map(str, rules.thresholds)) or "none"
        mapped.append(f"{len(rules.stages)} stages with the thresholds {told}")
    elif rules.stages:
        mapped.append("the stages are not run: evaluator.cascade_evaluation is false")
    keys = [str(name) for name in rules.config if name not in _MAPPED]
    keys += ["evaluator.use_llm_feedback"] if rules.table.get("use_llm_feedback") is True else []
    left_out = [f"settings of {config_name}: {', '.join(keys)}"] if keys else []
    others = [name for name in found.source.at_top("config*.y*ml") if name != config_name]
    if others:
        left_out.append(f"{', '.join(others)}: {config_name} was taken; --config chooses another")
    findings = (
        ["a candidate that stops at a stage has that stage's score, as in OpenEvolve; one that went on is better"]
        if rules.thresholds
        else []
    )
    return Lines(mapped, left_out, findings, read=[config_name, *others])
