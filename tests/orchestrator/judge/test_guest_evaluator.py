"""What becomes of an evaluator's answer: a score, no solution, or a judge that broke."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.judge.evaluators import BY_SPEC, EVALUATE, Functions, Judge


def test_numbers_are_metrics(judge: Judge) -> None:
    """Numbers become metrics, artifacts and texts become notes; what is no number, or not finite, is no metric."""
    evaluator = (
        BY_SPEC
        + """
from openevolve.evaluation_result import EvaluationResult
async def evaluate(program_path):
    metrics = {"combined_score": load(program_path).solve(1), "score": 7, "ok": True, "far": float("inf"), "why": "so"}
    return EvaluationResult(metrics=metrics, artifacts={"hint": "x" * 5000})
"""
    )
    result = judge(evaluator).result
    assert (result["score"], result["metrics"]) == (2, {"combined_score": 2, "evaluator_score": 7})
    assert "why: so" in result["notes"]
    assert "hint: xxx" in result["notes"]
    assert len(result["notes"]) < 600


STAGED = (
    BY_SPEC
    + """
def evaluate(program_path):
    raise AssertionError("the stages are run")
def evaluate_stage1(program_path):
    return {"runs": 1.0, "combined_score": load(program_path).solve(0.2)}
def evaluate_stage2(program_path):
    return {"combined_score": load(program_path).solve(3)}
"""
)


@pytest.mark.parametrize(("threshold", "score", "ran"), [(0.3, 6, 2), (0.5, 0.4, 1)])
def test_stages_stop_below_their_threshold(judge: Judge, threshold: float, score: float, ran: int) -> None:
    """A stage below its threshold is the last one, and its score counts. How many ran is told with every score: one of
    an early stage is no match for one of a later stage.
    """
    result = judge(STAGED, thresholds=[threshold]).result
    assert (result["score"], result["metrics"]["stages"]) == (score, ran)
    assert ("stopped at stage 1 of 2: combined_score 0.4 is below 0.5" in result["notes"]) == (ran == 1)


LATER = {
    "stage 2 of 2 gave the error: no luck": ('{"error": "no luck"}', [0.3]),
    "stage 2 of 2 gave the error: nearly": ('{"combined_score": 5.0, "error": "nearly"}', [0.3]),
    "stage 2 of 2, the last, gave no combined_score (it gave: runs)": ('{"runs": 1.0}', [0.3]),
    "stage 2 of 2, the last, gave no combined_score (it gave: none)": ("{}", [0.3]),
    "stage 2 of 3, the last, gave no combined_score": ("{}", [0.3, 0.5]),
}


@pytest.mark.parametrize("why", LATER)
def test_a_stage_that_fails_leaves_no_score_of_an_earlier_one(judge: Judge, why: str) -> None:
    """A candidate that passes the cheap stage and fails in a later one has no score, though the first one gave some;
    nor where that is the last one since it is below its threshold.
    """
    gives, thresholds = LATER[why]
    staged = STAGED.replace('{"combined_score": load(program_path).solve(3)}', gives)
    staged += "evaluate_stage3 = evaluate_stage1\n" * (len(thresholds) == 2)
    result = judge(staged, thresholds=thresholds).result
    assert result["valid"] is False
    assert why in result["notes"]


def test_a_first_stage_without_the_metric(judge: Judge) -> None:
    """It gives no score: the mean of its numbers decides only whether to go on."""
    staged = STAGED.replace('"runs": 1.0, "combined_score": ', '"runs": 0.0, "speed": ')
    result = judge(staged, thresholds=[0.5]).result
    assert result["valid"] is False
    assert "the mean of runs, speed 0.2 is below 0.5" in result["notes"]


def test_stages_of_a_broken_evaluator(judge: Judge) -> None:
    """An error of a stage that called nobody is the evaluator's own."""
    staged = STAGED.replace("    return {", "    return {'error': 'no disk'}\n    return {")
    with pytest.raises(Exception, match=r"neither called nor started the program .*no disk"):
        judge(staged, thresholds=[0.3])


BROKEN = {
    "neither called nor started the program (No module named 'missing_helper')": EVALUATE.replace(
        "    try:\n", "    try:\n        import missing_helper\n"
    ),
    "neither called nor started the program": "def evaluate(program_path):\n    return {'combined_score': 1.0}\n",
    "cannot be sent to the candidate": EVALUATE.replace("solve(20)", "solve(object())"),
    "cannot be sent to the candidate: solve: function": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).solve(lambda x: x)}\n"
    ),
    "raised NameError: name 'scale' is not defined (evaluator.py:12)": EVALUATE.replace(
        "    try:", "    scale\n    try:"
    ),
    "returned int, not a dict": "def evaluate(program_path):\n    return 3\n",
    "raised SystemExit: 3 (evaluator.py:3)": "import sys\ndef evaluate(program_path):\n    sys.exit(3)\n",
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_evaluator_is_no_score(judge: Judge, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An evaluator that swallowed its own fault is a judge that broke, whatever score it gave; one line says so."""
    with pytest.raises(Exception, match=r"evaluator|returned") as broke:
        judge(BROKEN[why], classes=["function"])  # that a program has none of that name is no fault of its
    assert type(broke.value).__name__ == "EvaluatorBroke"
    assert why in str(broke.value)
    capsys.readouterr()
    sys.excepthook(type(broke.value), broke.value, broke.value.__traceback__)
    assert capsys.readouterr().err.count("\n") == 1


def no_luck(x: float) -> None:
    del x
    raise ValueError("no luck")


AGAIN = (
    BY_SPEC
    + """
def evaluate(path):
    program = load(path)
    try:
        return {"combined_score": program.solve([program.solve(20)] * 2)}
    except Exception as error:
        return {"combined_score": 0.0, "error": str(error)}
"""
)


def nested(_: object) -> list[object]:
    value: list[object] = []
    for _ in range(26):
        value = [value]
    return value


NO_SOLUTION: dict[str, tuple[str, Functions]] = {
    "cannot be sent to the candidate: solve: nested more than": (
        AGAIN.replace("[program.solve(20)] * 2", "[[[[[[program.solve(20)]]]]]]"),
        {"solve": nested},
    ),
    "cannot be sent to the candidate: solve: a whole number of more than": (
        AGAIN.replace("[program.solve(20)] * 2", "program.solve(20) ** 2"),
        {"solve": lambda _: 1 << 4000},
    ),
    "cannot be sent to the candidate: solve: more than": (AGAIN, {"solve": lambda _: [0.5] * 1_200_000}),
    "the program has no function solve; it has: other": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': float(hasattr(load(path), 'solve'))}\n",
        {"other": abs},
    ),
    "every call failed, the first with: solve: ValueError: no luck": (EVALUATE, {"solve": no_luck}),
    "the evaluator gave no finite combined_score": (EVALUATE, {"solve": lambda _: float("inf")}),
    "the evaluator gave no finite combined_score (it gave: combined_score)": (
        BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).solve(1)}\n",
        {"solve": lambda _: -10**400},
    ),
    "the evaluator gave 0 with the error: can only concatenate": (EVALUATE, {"solve": lambda _: "text"}),
    "the evaluator gave no combined_score (it gave: x)": (EVALUATE.replace("combined_score", "x"), {"solve": abs}),
}  # fmt: skip


@pytest.mark.parametrize("why", NO_SOLUTION)
def test_a_failing_candidate_has_no_score(judge: Judge, why: str) -> None:
    """Where the program failed, the result says so: it is no solution, not a score of zero."""
    result = judge(*NO_SOLUTION[why]).result
    assert result["valid"] is False
    assert why in result["notes"]


ANSWER = BY_SPEC + "import sys\ndef evaluate(path):\n    answer = load(path).solve(1)\n    {}\n"
OWN = {
    "the evaluator raised TypeError: unsupported operand type(s) for +: 'NoneType' and 'int' (evaluator.py:13)":
        "return {'combined_score': answer + 1}",
    "the evaluator raised AssertionError (evaluator.py:13)": "assert answer",
    "the evaluator raised ValueError: two lines (evaluator.py:13)": "raise ValueError('two\\nlines')",
    "the evaluator raised SystemExit: 3 (evaluator.py:13)": "sys.exit(3)",
    "the evaluator raised CancelledError (evaluator.py:13)": "raise __import__('asyncio').CancelledError",
    "evaluate returned NoneType, not a dict of metrics": "return answer",
}  # fmt: skip


@pytest.mark.parametrize("why", OWN)
def test_an_answer_that_an_evaluator_cannot_cope_with(
    judge: Judge, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that the evaluator lets pass, once it has called the program, leaves the program without a score: it is
    no fault of the judge that a candidate could be refunded for. One line says what it was and where; the log has more.
    """
    result = judge(ANSWER.format(OWN[why]), {"solve": lambda _: None}).result
    assert (result["valid"], result["notes"]) == (False, why)
    assert ("Traceback" in capsys.readouterr().err) is ("raised" in why)


@pytest.mark.parametrize("cause", [" from error", ""])
def test_an_error_of_the_candidate_that_the_evaluator_wraps(judge: Judge, cause: str) -> None:
    """What led to the evaluator's own error is told first."""
    body = "def evaluate(path):\n    try:\n        load(path).solve(1)\n    except ValueError as error:\n"
    result = judge(f"{BY_SPEC}{body}        raise RuntimeError('bad program'){cause}\n", {"solve": no_luck}).result
    told = "solve: ValueError: no luck; the evaluator raised RuntimeError: bad program (evaluator.py:14)"
    assert (result["valid"], result["notes"]) == (False, told)


def test_which_error_of_the_candidate_is_told(judge: Judge) -> None:
    """That which the evaluator let pass, not the last one of all."""
    body = "def evaluate(path):\n    kept = None\n    for x in (1, 0):\n        try:\n            load(path).solve(x)\n"
    body += "        except Exception as error:\n            kept = kept or error\n    raise kept\n"
    result = judge(BY_SPEC + body, {"solve": lambda x: 1 / 0 if not x else no_luck(x)}).result
    assert (result["valid"], result["notes"]) == (False, "solve: ValueError: no luck")


def test_a_function_that_a_candidate_took_out(judge: Judge) -> None:
    """An evaluator that stumbles over it says nothing of the judge."""
    result = judge(ANSWER.format("return {}"), {"other": abs}).result
    assert (result["valid"], result["notes"]) == (False, "the program has no function solve; it has: other")


def test_a_constant_that_an_evaluator_cannot_cope_with(judge: Judge) -> None:
    """A value that a program has is the candidate's word, too."""
    module = importlib.import_module("blastdoor_candidate").Offered
    reads = BY_SPEC + "def evaluate(path):\n    return {'combined_score': load(path).SIZES[0]}\n"
    result = judge(reads, module({"solve": abs}, {"SIZES": []}), constants=["SIZES"]).result
    assert result["valid"] is False
    assert result["notes"] == "the evaluator raised IndexError: list index out of range (evaluator.py:11)"


def test_a_file_that_an_evaluator_cannot_cope_with(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it a fault of a judge that reads what a candidate left."""
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "prompt.txt").write_text("no number")
    monkeypatch.setenv("BLASTDOOR_OUTPUTS", str(tmp_path / "outputs"))
    reads = "def evaluate(path):\n    return {'combined_score': float(open(path).read())}\n"
    judge(reads, wanted=(), reads="prompt.txt")
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["valid"] is False
    assert result["notes"] == (
        "the evaluator raised ValueError: could not convert string to float: 'no number' (evaluator.py:2)"
    )


def test_an_integer_that_is_too_long_to_be_told(judge: Judge) -> None:
    """A candidate's huge integer among other metrics and artifacts breaks nothing: it is no metric."""
    evaluator = (
        BY_SPEC
        + """
from openevolve.evaluation_result import EvaluationResult
def evaluate(program_path):
    huge = load(program_path).solve(1) ** 20
    return EvaluationResult(metrics={"combined_score": 1.0, "huge": huge}, artifacts={"huge": huge})
"""
    )
    result = judge(evaluator, {"solve": lambda _: 10**400}).result
    assert (result["score"], result["metrics"]) == (1, {"combined_score": 1})
    assert "huge: an integer, or with one, that is too long to be told" in result["notes"]


SHINKA = """
from shinka.core import run_shinka_eval

def checked(result):
    return (result < 100, f"{result} is too large")

def main(program_path, results_dir):
    run_shinka_eval(
        program_path=program_path,
        results_dir=results_dir,
        experiment_fn_name="solve",
        num_runs=3,
        get_experiment_kwargs=lambda number: {"x": number},
        validate_fn=checked,
        aggregate_metrics_fn=lambda results: {
            "combined_score": float(sum(results)), "public": {"runs": len(results)}, "private": {"gold": 7}
        },
        run_workers=4,
    )
"""


def test_an_evaluator_of_shinka(judge: Judge) -> None:
    """Its runs are calls with keywords; public numbers are told, private ones are not."""
    result = judge(SHINKA, system="shinka").result
    metrics = result["metrics"]
    assert (result["score"], metrics["runs"], metrics["num_invalid_runs"]) == (6, 3, 0)
    assert "gold" not in json.dumps(result)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: 99 + x, "100 is too large"),
        (lambda x: 1 / x if x else 1 / 0, "division by zero"),
        (no_luck, "no luck"),
    ],
)
def test_an_answer_that_shinka_calls_wrong(judge: Judge, function: Callable[..., Any], why: str) -> None:
    """What the evaluator calls incorrect is no solution, whatever its score."""
    result = judge(SHINKA, {"solve": function}, system="shinka").result
    assert result["valid"] is False
    assert why in result["notes"]


def test_an_evaluator_of_shinka_that_leaves_nothing(judge: Judge) -> None:
    """Without its two files the judge broke."""
    with pytest.raises(Exception, match=r"left no metrics\.json"):
        judge("def main(program_path, results_dir):\n    pass\n", system="shinka")


EVO = (
    BY_SPEC
    + """
import json, os, sys
solve = load(sys.argv[2]).solve
tasks = {str(x): solve(x) for x in (1, 2)}
result = json.dumps({"score": sum(tasks.values()), "tasks": tasks})
"""
)
LEAVES = {
    "a file": "print('log')\nopen(os.environ['EVO_RESULT_PATH'], 'x').write(result)\nsys.exit(0)\n",
    "stdout": "print(result)\n",
}
TOLD = {"system": "evo", "metric": "score", "arguments": ["--target", "{target}"]}


@pytest.mark.parametrize("where", LEAVES)
def test_a_benchmark_of_evo(judge: Judge, where: str) -> None:
    """It finds the target on its command line, and its result counts wherever it leaves it, with its tasks."""
    result = judge(EVO + LEAVES[where], **TOLD).result
    assert (result["score"], result["tasks"]) == (6, {"1": 2, "2": 4})


@pytest.mark.parametrize(
    ("end", "why"),
    [("sys.exit(3)\n", "ended with 3"), ("print('no result')\n", "left no result"), ("print('[1]')\n", "is no table")],
)
def test_a_benchmark_of_evo_that_breaks(judge: Judge, end: str, why: str) -> None:
    """Another exit code than 0, and no result, are no score; if it called nobody, they are the judge's own faults. A
    task without a number is no solution: it is the candidate that gave it.
    """
    result = judge(EVO + end, **TOLD).result
    assert (result["valid"], why in result["notes"]) == (False, True)
    with pytest.raises(Exception, match=why):
        judge(f"import sys\n{end}", **TOLD)
    end = "print(json.dumps({'score': 1.0, 'tasks': tasks}))\n"
    result = judge(EVO + end, {"solve": lambda _: float("inf")}, **TOLD).result
    assert (result["valid"], "no finite number for the task 1" in result["notes"]) == (False, True)


@pytest.mark.parametrize(
    ("score", "goal", "valid"),
    [(0.0, "lower", False), (5.0, "lower", False), (0.0, "higher", False), (5.0, "higher", True)],
)
def test_a_benchmark_of_evo_that_tells_an_error(judge: Judge, score: float, goal: str, valid: bool) -> None:
    """An error beside the score is no solution where the score is one of failure: 0 or less, or any where lower is
    better, since 0 would win there.
    """
    result = judge(f"{EVO}print(json.dumps({{'score': {score}, 'error': 'no luck'}}))\n", **TOLD, goal=goal).result
    assert (result["valid"], "no luck" in result["notes"]) == (valid, True)


@pytest.mark.parametrize("error", ["ValueError('no luck')", "['no luck']"])
def test_an_error_that_is_no_text(judge: Judge, error: str) -> None:
    """An evaluator may hand the error on as it is."""
    body = f"def evaluate(path):\n    load(path).solve(1)\n    return {{'combined_score': 0, 'error': {error}}}"
    result = judge(BY_SPEC + body).result
    assert (result["valid"], "no luck" in result["notes"]) == (False, True)
