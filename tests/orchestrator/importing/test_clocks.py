"""Which of an evaluator's numbers a clock may be in, as far as its text tells."""

import ast
import time
from pathlib import Path

import pytest

from orchestrator.importing.clocks import keys_reached, looks
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR
from tests.orchestrator.importing.test_openevolve import imported, task_of

START = "import time\ndef evaluate(path):\n    started = time.time()\n    value = run(path)\n"
REACHED = {
    "at once": "    return {'score': value / (time.time() - started)}\n",
    "by a name": "    took = time.time() - started\n    return {'score': value / took}\n",
    "by a key": "    it = {'took': time.time() - started}\n    it['score'] = 1 / it['took']\n    return it\n",
    "by get": "    it = dict(took=time.time() - started)\n    return {'score': 1 / it.get('took', 1)}\n",
    "by a key that is computed": (
        "    it = {}\n    it[path] = time.time() - started\n    return {'score': value / it['first']}\n"
    ),
    "by a list": "    all = []\n    all.append(time.time() - started)\n    return {'score': max(all)}\n",
    "by a loop": "    best = 0\n    for it in [time.time()]:\n        best += it\n    return {'score': best}\n",
    "by a function's result": (
        "    return {'score': value / took(started)}\ndef took(since):\n    return time.time() - since\n"
    ),
    "by its argument": (
        "    return graded(value, time.time() - started)\ndef graded(value, by):\n    return {'score': value / by}\n"
    ),
    "by a named argument": "    return made(by=time.time())\ndef made(by):\n    return {'score': by}\n",
    "by one of several": "    value, took = run(path), time.time() - started\n    return {'score': took}\n",
    "by an object": (
        "    run = Run(value, took=time.time() - started)\n    return {'score': value - 0.01 * run.took}\n"
        "class Run:\n    took: float\n"
    ),
    "by a file's name": "    global took\n    took = time.time()\n    return {'score': took}\n",
    "by itself": "    return {'score': self.since()}\nclass It:\n    def since(self):\n        return time.time()\n",
}
NOT_REACHED = {
    "told beside": "    return {'score': value, 'took': time.time() - started}\n",
    "told beside, key by key": "    it = {'took': time.time() - started}\n    it['score'] = value\n    return it\n",
    "in a result of runs": (
        "    all = [{'value': value, 'took': time.time() - started}]\n"
        "    return {'score': sum(it['value'] for it in all), 'took': sum(it['took'] for it in all)}\n"
    ),
    "printed": "    print(f'took {time.time() - started}')\n    return {'score': value}\n",
    "a limit": "    if time.time() - started > 60:\n        return {'score': 0.0}\n    return {'score': value}\n",
    "one of several": "    value, took = run(path), time.time() - started\n    return {'score': value, 'took': took}\n",
    "of another function": (
        "    return {'score': value}\ndef other():\n    value = time.time()\n    return {'took': value}\n"
    ),
    "an object": (
        "    run = Run(value=value, took=time.time() - started)\n    return {'score': run.value}\n"
        "class Run:\n    value: float\n"
    ),
}


@pytest.mark.parametrize("way", REACHED)
def test_a_clock_reaches_the_score(way: str) -> None:
    assert "score" in keys_reached(ast.parse(START + REACHED[way]))


@pytest.mark.parametrize("way", NOT_REACHED)
def test_a_clock_beside_the_score(way: str) -> None:
    """Most evaluators tell how long they took."""
    assert "score" not in keys_reached(ast.parse(START + NOT_REACHED[way]))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "import time\ntime.perf_counter_ns()",
            "import time as t\nt.monotonic()",
            "import timeit\ntimeit.repeat('x')",
        ),
        *("from time import perf_counter\nperf_counter()", "from time import time as now\nnow()"),
        *("import timeit\ntimeit.Timer('x').timeit(3)", "import datetime\ndatetime.datetime.now()"),
        *("from datetime import datetime\ndatetime.now()", "from timeit import default_timer\ndefault_timer()"),
    ],
)
def test_clocks_by_any_name(text: str) -> None:
    assert [it.lineno for it in looks(ast.parse(text))] == [2]


@pytest.mark.parametrize("text", ["import time\ntime.sleep(1)", "time()", "it.time()", "from mine import time\ntime()"])
def test_no_clock(text: str) -> None:
    assert looks(ast.parse(text)) == []


def test_a_long_chain_takes_no_longer() -> None:
    """Whoever wrote it: each name is followed once, whatever the order."""
    chain = "".join(f"    n{at} = n{at + 1}\n" for at in range(20_000))
    text = f"import time\ndef evaluate(path):\n{chain}    n20000 = time.time()\n    return {{'score': n0}}\n"
    tree = ast.parse(text)
    started = time.process_time()
    assert "score" in keys_reached(tree)
    assert time.process_time() - started < 20


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
