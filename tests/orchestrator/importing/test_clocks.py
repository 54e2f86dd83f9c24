"""Which of an evaluator's numbers a clock may be in, as far as its text tells."""

import ast
from pathlib import Path

import pytest

from orchestrator.importing.clocks import keys_reached, looks
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR, task_of
from tests.orchestrator.importing.test_openevolve import imported

START = "import time\ndef evaluate(path):\n    started = time.time()\n    value = run(path)\n"
REACHED = {
    "at once": "    return {'score': value / (time.time() - started)}\n",
    "by get": "    it = dict(took=time.time() - started)\n    return {'score': 1 / it.get('took', 1)}\n",
    "by a computed key": "    it = {}\n    it[path] = time.time()\n    return {'score': value / it['first']}\n",
    "by a key": "    it = {'took': time.time() - started}\n    it['score'] = 1 / it['took']\n    return it\n",
    "by a list and a loop": "    all, best = [], 0\n    all.append(time.time())\n"
    "    for it in all:\n        best += it\n    return {'score': best}\n",
    "by an argument and a result": "    return graded(value, took(started))\ndef took(since):\n"
    "    return time.time() - since\ndef graded(value, by):\n    return {'score': value / by}\n",
    "by an object": "    run = Run(value, took=time.time() - started)\n    return {'score': value - 0.01 * run.took}\n"
    "class Run:\n    took: float\n",
}
NOT_REACHED = {
    "told beside": "    return {'score': value, 'took': time.time() - started}\n",
    "in a result of runs": "    all = [{'value': value, 'took': time.time() - started}]\n"
    "    return {'score': sum(it['value'] for it in all), 'took': sum(it['took'] for it in all)}\n",
    "a limit": "    if time.time() - started > 60:\n        return {'score': 0.0}\n    return {'score': value}\n",
    "of another function": "    return {'score': value}\ndef other():\n    value = time.time()\n"
    "    return {'took': value}\n",
}


@pytest.mark.parametrize("way", [*REACHED, *NOT_REACHED])
def test_whether_a_clock_reaches_the_score(way: str) -> None:
    """Most evaluators tell how long they took, beside it."""
    text = START + (REACHED | NOT_REACHED)[way]
    assert ("score" in keys_reached(ast.parse(text))) is (way in REACHED)


CLOCKS = [
    "import time\ntime.perf_counter_ns()",
    "import time as t\nt.monotonic()",
    "from time import time as now\nnow()",
    "import timeit\ntimeit.Timer('x').timeit(3)",
    "from datetime import datetime\ndatetime.now()",
    "from timeit import default_timer\ndefault_timer()",
]


def test_clocks_by_any_name() -> None:
    for text in CLOCKS:
        assert [it.lineno for it in looks(ast.parse(text))] == [2], text
    for text in ("import time\ntime.sleep(1)", "time()", "it.time()", "from mine import time\ntime()"):
        assert looks(ast.parse(text)) == [], text


@pytest.mark.parametrize("metric", ["combined_score", "calls"])
def test_the_rule_of_an_imported_task(tmp_path: Path, metric: str) -> None:
    """Noisy where the clock may be in what is ranked by, with the reason; a clock beside it is only told."""
    start = "def evaluate(program_path):\n"
    text = EVALUATOR.replace(start, f"import time\n{start}    started = time.time()\n")
    text = text.replace('"combined_score": ', '"combined_score": -0.1 * (time.time() - started) + ')
    found = imported(tmp_path, metric=metric, evaluator__py=text)
    assert task_of(tmp_path, found).certify.rule == ("noisy" if metric == "combined_score" else "strict")
    why = 'certify.rule is "noisy", since evaluator.py looks at a clock, and what that says may be in combined_score'
    assert (why in found.mapped) == (metric == "combined_score")
