"""Runs an evaluator that wants the path of a program, while the program is in another chamber. Standard library only,
Python 3.9 up.

    from blastdoor_evaluator import judge

    judge(evaluator="evaluator.py", metric="combined_score", functions=["solve"], thresholds=[0.5])

The path that `evaluate(program_path)` gets is that of a stub (blastdoor_stub). Evaluators catch every error and answer
with a score of 0, so what went wrong is noticed here: an evaluator that called nobody, or whose arguments cannot be
sent, is a judge that broke, not a bad candidate.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import inspect
import math
import numbers
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from blastdoor_judge import BadOutput, publish
from blastdoor_relay import NoFunction, relay
from blastdoor_stub import Door, EvaluatorBroke, opened

__all__ = ["judge"]

MAX_ARTIFACT = 400
MAX_TEXT = 300
_STAGES = ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")


def judge(
    *,
    evaluator: str,
    metric: str,
    functions: Sequence[str],
    classes: Sequence[str] = (),
    thresholds: Sequence[float] | None = None,
) -> None:
    """Run the evaluator and publish what it returns. `functions` are those that it calls, `classes` those that it makes
    objects of; with `thresholds` its stages run one after the other, and the first whose score is below its threshold
    is the last.
    """
    with relay(exact=True, classes=classes) as candidate, tempfile.TemporaryDirectory() as folder:
        door = Door(candidate, [*functions, *classes])
        found = _Outcome(metric)
        with opened(door, Path(folder)) as program:
            try:
                found.run(_loaded(evaluator), program, thresholds)
            except Exception as error:
                if not any(error is it for it in door.raised):
                    raise
                raise BadOutput(door.failures[-1]) from error  # the candidate's own, which the evaluator let pass
        _refuse_silence(door, candidate.functions, [*functions, *classes], found)
        found.publish(door)


def _loaded(name: str) -> ModuleType:
    _lend_result_class()
    path = Path(name).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("evaluation_module", path)
    if spec is None or spec.loader is None:
        raise EvaluatorBroke(f"{name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluation_module"] = module
    spec.loader.exec_module(module)
    return module


@dataclasses.dataclass
class EvaluationResult:
    """What evaluators of that ecosystem return where a dict does not do: numbers, and beside them what to read."""

    metrics: dict[str, Any]
    artifacts: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: dict[str, Any]) -> EvaluationResult:
        return cls(metrics)

    def to_dict(self) -> dict[str, Any]:
        return self.metrics

    def has_artifacts(self) -> bool:
        return bool(self.artifacts)


def _lend_result_class() -> None:
    if "openevolve" not in sys.modules and importlib.util.find_spec("openevolve") is None:
        package, module = ModuleType("openevolve"), ModuleType("openevolve.evaluation_result")
        module.EvaluationResult = EvaluationResult  # type: ignore[attr-defined]  # made here
        package.evaluation_result = module  # type: ignore[attr-defined]  # made here
        package.__path__ = []
        sys.modules.update({"openevolve": package, "openevolve.evaluation_result": module})


class _Outcome:
    """What the evaluator returned, stage by stage: a later number replaces an earlier one of its name."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.numbers: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.notes: list[str] = []

    def run(self, module: ModuleType, program: str, thresholds: Sequence[float] | None) -> None:
        stages = [getattr(module, name) for name in _STAGES if hasattr(module, name)]
        if thresholds is None or not stages:
            self._take(module.evaluate, program)
            return
        for number, stage in enumerate(stages, 1):
            own = self._take(stage, program)
            if number == len(stages):
                return
            if number > len(thresholds):
                self.notes.append(f"stage {number} has no threshold, so it is the last")
                return
            value, name = self._passing(own)
            if not value >= thresholds[number - 1]:
                threshold = thresholds[number - 1]
                self.notes.append(f"stopped at stage {number} of {len(stages)}: {name} {value:g} is below {threshold}")
                return

    def _take(self, function: Callable[[str], Any], program: str) -> dict[str, float]:
        returned = function(program)
        if inspect.iscoroutine(returned):
            returned = asyncio.run(returned)
        metrics = getattr(returned, "metrics", returned)
        if not isinstance(metrics, Mapping):
            raise EvaluatorBroke(f"{function.__name__} returned {type(returned).__name__}, not a dict of metrics")
        artifacts = getattr(returned, "artifacts", None)
        own = {str(name): float(it) for name, it in metrics.items() if _is_number(it)}
        self.numbers.update(own)
        self.texts.update((str(name), _short(it)) for name, it in metrics.items() if isinstance(it, str))
        if isinstance(artifacts, Mapping):
            self.notes += [f"{name}: {_short(it, MAX_ARTIFACT)}" for name, it in artifacts.items()]
        return own

    def _passing(self, own: Mapping[str, float]) -> tuple[float, str]:
        """What is held against a threshold: the metric, and where the stage has none, the mean of its numbers."""
        if self.metric in self.numbers:
            return self.numbers[self.metric], self.metric
        counted = [value for name, value in own.items() if name != "error"]
        return (sum(counted) / len(counted) if counted else -math.inf), f"the mean of {', '.join(own) or 'nothing'}"

    def publish(self, door: Door) -> None:
        score = self.numbers.get(self.metric)
        error = self.texts.get("error", "")
        if score is None or not math.isfinite(score):
            told = "; ".join(filter(None, [error, *self.notes[-1:]])) or f"it gave: {', '.join(self.numbers) or 'none'}"
            raise BadOutput(f"the evaluator gave no {'' if score is None else 'finite '}{self.metric} ({told})")
        if score <= 0 and error:
            raise BadOutput(f"the evaluator gave {score:g} with the error: {error}")
        others = {name: value for name, value in self.numbers.items() if math.isfinite(value)}
        # The contract keeps this name for the score itself.
        others = {
            ("evaluator_score" if name == "score" and value != score else name): value for name, value in others.items()
        }
        failed = ""
        if door.failures:
            failed = f"{len(door.failures)} of {door.calls} calls failed, the first: {door.failures[0]}"
        said = (f"{name}: {text}" for name, text in self.texts.items())
        publish(score, metrics=others, notes="\n".join(filter(None, [failed, *self.notes, *said])))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _short(value: Any, limit: int = MAX_TEXT) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _refuse_silence(door: Door, offered: Sequence[str], wanted: Sequence[str], found: _Outcome) -> None:
    """An evaluator that catches everything looks well whatever happened to it."""
    if door.unsendable:
        raise EvaluatorBroke(f"an argument of the evaluator cannot be sent to the candidate: {door.unsendable[0]}")
    told = found.texts.get("error", "") or "; ".join(found.notes)
    if not door.calls:
        if missing := [name for name in wanted if name not in offered]:
            raise NoFunction(f"the program has no function {missing[0]}; it has: {', '.join(offered) or 'none'}")
        raise EvaluatorBroke(f"the evaluator called no function of the program{f' ({told})' if told else ''}")
    if len(door.failures) == door.calls:
        raise BadOutput(f"every call failed, the first with: {door.failures[0]}")
