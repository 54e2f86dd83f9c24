"""Runs an evaluator of ShinkaEvolve: `main(program_path, results_dir)` leaves metrics.json and correct.json there.
Standard library only, Python 3.9 up.

    from blastdoor_shinka import judge

    judge(evaluator="evaluate.py", metric="combined_score", functions=["run_experiment"])

Most of them call `run_shinka_eval` of their system. Here is one that does what evaluators rely on: so many runs, one
after the other, each checked, then one dict of metrics.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from blastdoor_evaluator import EvaluatorBroke, Outcome, lend, loaded, run_evaluator

__all__ = ["judge"]


def judge(**given: Any) -> None:
    """As run_evaluator."""
    lend("shinka.core", run_shinka_eval=run_shinka_eval)
    run_evaluator(_run, **given)


def _run(evaluator: str, program: str, found: Outcome) -> None:
    with tempfile.TemporaryDirectory() as results:
        loaded(evaluator).main(program, results)
        metrics, correct = (_read(Path(results) / name) for name in ("metrics.json", "correct.json"))
    if correct.get("correct") is not True:
        found.incorrect = str(correct.get("error") or "the evaluator says that it is not correct")
    public = metrics.get("public")
    # What is private there is for nobody who searches, so it is not told at all.
    found.take({**(public if isinstance(public, Mapping) else {}), **metrics})


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluatorBroke(f"the evaluator left no {path.name} that can be read ({error})") from None
    if not isinstance(found, dict):
        raise EvaluatorBroke(f"{path.name} of the evaluator is no table")
    return found


def run_shinka_eval(
    program_path: str,
    results_dir: str,
    experiment_fn_name: str,
    num_runs: int,
    get_experiment_kwargs: Callable[[int], dict[str, Any]] | None = None,
    aggregate_metrics_fn: Callable[[list[Any]], dict[str, Any]] | None = None,
    validate_fn: Callable[[Any], tuple[bool, str | None]] | None = None,
    **_others: Any,
) -> tuple[dict[str, Any], bool, str | None]:
    """Whatever goes wrong is an answer that is not correct. Plots, workers and an early end have no counterpart."""
    errors: list[str] = []
    metrics: dict[str, Any] = {"combined_score": 0.0}
    try:
        function = getattr(_program(program_path), experiment_fn_name)
        results, taken = [], []
        for number in range(num_runs):
            keywords = get_experiment_kwargs(number) if get_experiment_kwargs else {"seed": number + 1}
            began = time.perf_counter()
            results.append(function(**keywords))
            taken.append(time.perf_counter() - began)
            valid, why = validate_fn(results[-1]) if validate_fn else (True, None)
            errors += [] if valid else [f"Validation failed: {why}"]
        metrics = aggregate_metrics_fn(results) if aggregate_metrics_fn else {"num_successful_runs": len(results)}
        metrics.pop("extra_data", None)
        metrics["execution_time_mean"] = statistics.fmean(taken) if taken else 0.0
        metrics["num_invalid_runs"] = len(errors)
    except Exception as error:  # noqa: BLE001  evaluators of this system expect an answer, whatever happened
        errors.append(str(error))
    folder = Path(results_dir)
    folder.mkdir(parents=True, exist_ok=True)
    told = errors[0] if errors else None
    (folder / "metrics.json").write_text(json.dumps(metrics, default=str), encoding="utf-8")
    (folder / "correct.json").write_text(json.dumps({"correct": not errors, "error": told}), encoding="utf-8")
    return metrics, not errors, told


def _program(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("program", path)
    if spec is None or spec.loader is None:
        raise EvaluatorBroke("the stub cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
