"""Runs an evaluator of OpenEvolve: `evaluate(program_path)`, or its stages. Standard library only, Python 3.9 up.

from blastdoor_openevolve import judge

judge(evaluator="evaluator.py", metric="combined_score", functions=["solve"], thresholds=[0.5])
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from blastdoor_evaluator import EvaluatorBroke, Outcome, lend, loaded, run_evaluator

__all__ = ["judge"]

# How many ran. What was scored at an early one does not stand beside the score of a later one.
STAGES = "stages"
_STAGES = ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")


@dataclasses.dataclass
class EvaluationResult:
    """What such evaluators return where a dict does not do: numbers, and beside them what to read."""

    metrics: dict[str, Any]
    artifacts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, Any]) -> EvaluationResult:
        return cls(metrics)

    def to_dict(self) -> dict[str, Any]:
        return self.metrics

    def has_artifacts(self) -> bool:
        return bool(self.artifacts)


def judge(*, thresholds: Sequence[float] | None = None, **given: Any) -> None:
    """As run_evaluator. With `thresholds` the stages run one after the other, and the first whose score is below its
    threshold is the last. A stage that gives an error, or a last one without the metric, is no solution.
    """
    lend("openevolve.evaluation_result", EvaluationResult=EvaluationResult)
    run_evaluator(lambda evaluator, program, found: _run(loaded(evaluator), program, found, thresholds), **given)


def _run(module: ModuleType, program: str, found: Outcome, thresholds: Sequence[float] | None) -> None:
    stages = [getattr(module, name) for name in _STAGES if hasattr(module, name)]
    if thresholds is None or not stages:
        _take(module.evaluate, program, found)
        return
    for number, stage in enumerate(stages, 1):
        own = _take(stage, program, found)
        if error := found.texts.get("error", ""):
            found.incorrect = f"stage {number} of {len(stages)} gave the error: {error}"
            return
        why_last = _why_last(own, found, number, len(stages), thresholds)
        if why_last is not None:
            if found.metric != STAGES:
                found.numbers[STAGES] = number
            found.notes += filter(None, [why_last])
            # A candidate that fails where it is dear must not keep the score of a stage where it was cheap.
            if found.metric in found.numbers and found.metric not in own:
                gave = ", ".join(own) or "none"
                found.incorrect = f"stage {number} of {len(stages)}, the last, gave no {found.metric} (it gave: {gave})"
            return


def _why_last(
    own: Mapping[str, float], found: Outcome, number: int, stages: int, thresholds: Sequence[float]
) -> str | None:
    """None where the next stage runs."""
    if number == stages:
        return ""
    if number > len(thresholds):
        return f"stage {number} has no threshold, so it is the last"
    value, name = _passing(own, found)
    if value >= thresholds[number - 1]:
        return None
    return f"stopped at stage {number} of {stages}: {name} {value:g} is below {thresholds[number - 1]}"


def _take(function: Callable[[str], Any], program: str, found: Outcome) -> dict[str, float]:
    returned = function(program)
    if inspect.iscoroutine(returned):
        returned = asyncio.run(returned)
    metrics = getattr(returned, "metrics", returned)
    if not isinstance(metrics, Mapping):
        raise EvaluatorBroke(f"{function.__name__} returned {type(returned).__name__}, not a dict of metrics")
    own: dict[str, float] = found.take(metrics, getattr(returned, "artifacts", None))
    return own


def _passing(own: Mapping[str, float], found: Outcome) -> tuple[float, str]:
    """What is held against a threshold: the metric, and where the stage has none, the mean of its numbers."""
    if found.metric in found.numbers:
        return found.numbers[found.metric], found.metric
    counted = [value for name, value in own.items() if name != "error"]
    return (sum(counted) / len(counted) if counted else -math.inf), f"the mean of {', '.join(own) or 'nothing'}"
