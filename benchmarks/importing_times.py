"""Speed-ups that an evaluator takes with its own clock, through the door and natively in turn: `importing-times`.

The evaluator times a function of its own and the program's, which does the same work, so the score is 1 but for noise.
"""

import statistics
import tempfile
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.importing import native_task, ran
from orchestrator.importing import ImportRequest, write_task
from orchestrator.importing.openevolve import read

ROUNDS = 5
PROGRAM = """
def solve(n, data):
    total = 0.0
    for i in range(n):
        total += i * 0.5
    return total + len(data)
"""
EVALUATOR = """
import importlib.util, statistics, time

{own}
def timed(function, *arguments):
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began

def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    asked = ({n}, {data})
    program.solve(*asked)
    times = [(timed(own, *asked), timed(program.solve, *asked)) for _ in range({calls})]
    return {{"combined_score": statistics.median(it[0] for it in times) / statistics.median(it[1] for it in times)}}
"""
# Steps of a call, its data, calls in an evaluation, and the goal: what a user is told to give a call agrees.
CASES = {
    "1 ms": (20_000, "[1.0]", 60, ""),
    "10 ms": (200_000, "[1.0]", 15, ""),
    "10 ms and a list of 10,000 floats": (200_000, "[0.5] * 10_000", 15, ""),
    "100 ms": (2_000_000, "[1.0]", 7, ">= 0.9"),
}


async def measure() -> list[Figure]:
    figures = []
    for name, (n, data, calls, goal) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="importing-") as place:
            source, task = Path(place, "source"), Path(place, "task")
            source.mkdir()  # noqa: ASYNC240  # a benchmark waits for nobody
            own = PROGRAM.replace("def solve", "def own")
            (source / "initial_program.py").write_text(PROGRAM)
            (source / "evaluator.py").write_text(EVALUATOR.format(own=own, n=n, data=data, calls=calls))
            write_task(read(ImportRequest(source, "timed")), task)
            native = native_task(task, Path(place, "native"))
            pairs = [(await ran(task), await ran(native)) for _ in range(ROUNDS)]
        scores = [(one.score, other.score) for one, other in pairs if one.score and other.score]
        if scores:
            door, natively = (statistics.median(it[at] for it in scores) for at in (0, 1))
            figures.append(
                Figure(
                    f"importing: speed-up of 1 by calls of some {name}, to the native one", door / natively, "", goal
                )
            )
    return figures
