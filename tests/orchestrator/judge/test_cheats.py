"""Cheat oracles: a careful judge beats them all, and each kind of hole is found by one of them."""

import json
import math
import pickle
import struct
import sys
import unittest.mock
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.metric import Goal, Metric
from orchestrator.judge.adversaries import Oracle, rows_of
from orchestrator.judge.adversaries import oracles as oracles_of
from orchestrator.judge.cheats import Recording
from orchestrator.judge.contract import ResultRefused, parse_result
from orchestrator.judge.guest.blastdoor_twists import FILLS, PICKS
from orchestrator.judge.rewriting import Array, Json, Opaque, Table, npy_bytes, opened
from tests.orchestrator.judge.judges import Chamber

CIRCLES = [[0.25, 0.25, 0.2], [0.75, 0.75, 0.2]]
PACKING = {"packing.json": json.dumps({"count": 2, "circles": CIRCLES}).encode()}
ARRAY = npy_bytes("<f8", (2, 2), struct.pack("<4d", 0.5, 1.5, 2.5, 3.5))

CAREFUL = """
from blastdoor_judge import *
with judging():
    packing = load_json("packing.json")
    circles = packing.get("circles") if isinstance(packing, dict) else None
    if not isinstance(circles, list) or len(circles) != 2:
        raise BadOutput("two circles are wanted")
    rows = [[number(value) for value in row] for row in circles if isinstance(row, list) and len(row) == 3]
    if len(rows) != 2 or not all(0 <= r <= x <= 1 - r and r <= y <= 1 - r for x, y, r in rows):
        raise BadOutput("x, y and r within the square are wanted")
    (x, y, r), (a, b, s) = rows
    if (x - a) ** 2 + (y - b) ** 2 < (r + s) ** 2:
        raise BadOutput("overlap")
    publish(r + s)
"""
NAIVE = """
import json, os, sys
SETUP
outputs = os.environ["BLASTDOOR_OUTPUTS"]
packing = json.load(open(outputs + "/packing.json"))
circles = packing["circles"]
score = float(sum(r for x, y, r in circles))
for i, (x, y, r) in enumerate(circles):
    if x - r < 0 or x + r > 1 or y - r < 0 or y + r > 1 or r < 0:
        score = 0.0
    for a, b, s in circles[:i]:
        if (x - a) ** 2 + (y - b) ** 2 < (r + s) ** 2:
            score = 0.0
TRUST
json.dump({"score": score}, open(os.environ["BLASTDOOR_RESULT_PATH"], "w"))
"""


def oracles(
    baseline: Mapping[str, bytes], metrics: Sequence[Metric] = (Metric(),), *, quick: bool = False
) -> list[Oracle]:
    return oracles_of(
        Recording(baseline, metrics, {"given.json": b"[1, 2]"}), rows_of(calls=False, quick=quick), 1 if quick else None
    )


# A process for each folder, from one that has imported nothing of a judge's yet.
EACH = """
import os, sys
code = compile(sys.argv[1], "judge.py", "exec")
for folder in sys.argv[2:]:
    child = os.fork()
    if not child:
        os.chdir(folder + "/judge")
        os.environ.update(BLASTDOOR_OUTPUTS=folder + "/outputs", BLASTDOOR_RESULT_PATH=folder + "/out/result.json")
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        open(folder + "/out/failed", "x").close()
"""


def winners(tmp_path: Path, code: str) -> set[str]:
    """The cheats that this judge puts above the baseline."""
    tried: dict[str, Mapping[str, bytes]] = {"": PACKING}
    tried |= {oracle.name: oracle.outputs for oracle in oracles(PACKING, quick=True)}
    chambers = {}
    for place, (name, outputs) in enumerate(tried.items()):
        folder = tmp_path / str(place)
        folder.mkdir()
        chambers[name] = Chamber(folder)
        for path, data in outputs.items():
            (folder / "outputs" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "outputs" / path).write_bytes(data)
    chambers[""].call([sys.executable, "-c", EACH, code, *(str(it.out.parent) for it in chambers.values())])
    scores: dict[str, float] = {}
    for name, chamber in chambers.items():
        left = chamber.harvest()
        with suppress(ResultRefused):
            score = None if "failed" in left else parse_result(left).score
            scores |= {} if score is None else {name: score}
    assert scores[""] == pytest.approx(0.4)
    return {name for name, score in scores.items() if score > scores[""]}


def naive(setup: str = "", trust: str = "") -> str:
    return NAIVE.replace("SETUP", setup).replace("TRUST", trust)


def test_t38_a_careful_judge_falls_for_none(tmp_path: Path) -> None:
    """With the helper's loaders and a check of every range no cheat wins."""
    assert winners(tmp_path, CAREFUL) == set()


def test_t38_nan_hides_from_comparisons(tmp_path: Path) -> None:
    """A judge that only compares takes circles at NaN for circles without neighbours."""
    assert winners(tmp_path, naive()) == {"NaN twice, the rest large"}


HOLES = {
    "result beside": (
        'if os.path.exists(outputs + "/score.json"): score = json.load(open(outputs + "/score.json"))["score"]',
        "",
    ),
    "score in the output": ('score = packing.get("score", score)', ""),
    "planted modules": ("", 'sys.path.insert(0, os.environ["BLASTDOOR_OUTPUTS"])\nimport statistics'),
}


@pytest.mark.parametrize("cheat", HOLES)
def test_t32_t36_a_judge_with_a_hole(tmp_path: Path, cheat: str) -> None:
    """One that looks for a result among the outputs, takes the candidate's own word, or imports from the outputs."""
    trust, setup = HOLES[cheat]
    assert cheat in winners(tmp_path, naive(setup, trust))


def test_the_set_is_what_was_promised() -> None:
    """Empty, seeded, NaN, huge, infinite, hard-coded, doubled, cut, deep, of other types; each says why."""
    made = oracles(PACKING)
    wanted = {
        "no output", "empty files", "result beside", "result instead", "score in the output", "planted modules", "NaN",
        "infinity", "huge", "an integer of 401 digits", "zeros", "ones", "texts for numbers", "cut in half",
        "every row twice", "nested deeply", "empty lists", "only one item: only the last", "code for data",
        "the input copied", "one figure alone: count = 0", "what another task wants: labels", "nothing for numbers",
    }  # fmt: skip
    assert wanted <= {it.name for it in made}
    assert len({it.name for it in made}) == len(made)
    assert all(oracle.why and oracle.outputs != PACKING for oracle in made)


def test_the_forged_score_follows_the_goal() -> None:
    """Where lower is better the forged value is low; a ceiling is not passed, so that it cannot save the judge."""
    forged = {
        oracle.name: oracle for oracle in oracles(PACKING, [Metric("loss", Goal.LOWER), Metric("acc", ceiling=1.0)])
    }
    result = json.loads(forged["result beside"].outputs["result.json"])
    assert result["metrics"] == {"loss": -1e9, "acc": 1.0}
    assert result["score"] == -1e9


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        *((PACKING["packing.json"], Json), (b'{"a": 1}\n{"a": 2}\n', Json), (b"id,x\n1,2.5\n", Table), (ARRAY, Array)),
        *((b"\x7fELF\xff", Opaque), (b"only words", Opaque), (b"", Opaque)),
    ],
)
def test_formats(data: bytes, kind: type) -> None:
    """By content, not by name."""
    assert type(opened(data)) is kind


@pytest.mark.parametrize(
    ("data", "new"),
    [
        (b'{"n": 2, "x": [0.5, 1]}', b'{"n": 2, "x": [NaN, 1]}'),
        (b'{"n": 2, "b": true}', b'{"n": NaN, "b": true}'),
        (b'{"a": 0.5}\n{"a": 1}\n', b'{"a": NaN}\n{"a": 1}'),
        (b"id,x\n1,0.5\n2,7\n", b"id,x\n1,nan\n2,nan\n"),
        (b"id\tlabel\n1\t3\n", b"id\tlabel\n1\tnan\n"),
        (b"5\n6\n", b"nan\nnan\n"),
        (b"words", b"words"),
        (npy_bytes("<f4", (1,), struct.pack("<f", 1)), npy_bytes("<f4", (1,), struct.pack("<f", math.nan))),
        (npy_bytes("<i4", (1,), struct.pack("<i", 1)), npy_bytes("<i4", (1,), struct.pack("<i", 1))),
    ],
)
def test_numbers_are_replaced(data: bytes, new: bytes) -> None:
    """Fractions where there are any, whole numbers otherwise, row names never."""
    assert opened(data).refilled(lambda _old, _place: math.nan) == new


def test_arrays_hold_what_they_can() -> None:
    """A value past the type of an array becomes the largest that fits."""
    small = npy_bytes("|u1", (2,), b"\1\2")
    assert opened(small).refilled(lambda _old, _place: 10**400)[-2:] == b"\xff\xff"
    assert opened(small).refilled(lambda _old, _place: -5)[-2:] == b"\0\0"
    half = npy_bytes("<f2", (1,), struct.pack("<e", 1))
    assert opened(half).refilled(lambda _old, _place: 1e308)[-2:] == struct.pack("<e", 65504)


def test_rows_are_picked() -> None:
    """Every row twice, only the last, none: in the file's own form, and with what names the columns."""
    twice, last, none = (PICKS[name] for name in ("all twice", "only the last", "none"))
    assert json.loads(opened(b'{"a": [1, [2]], "b": 3}').picked(twice)) == {"a": [1, [2], 1, [2]], "b": 3}
    assert opened(b"x,y\n1,2\n").picked(twice) == b"x,y\n1,2\n1,2\n"
    assert opened(b'{"a": 1}\n{"a": 2}').picked(twice) == b'{"a": 1}\n{"a": 2}\n{"a": 1}\n{"a": 2}'
    assert opened(ARRAY).picked(twice) == npy_bytes("<f8", (4, 2), struct.pack("<8d", *(0.5, 1.5, 2.5, 3.5) * 2))
    assert opened(ARRAY).picked(last) == npy_bytes("<f8", (1, 2), struct.pack("<2d", 2.5, 3.5))
    assert json.loads(opened(b'{"a": 1, "b": 2}').picked(last)) == {"b": 2}
    assert opened(b"x,y\n1,2\n3,4\n").picked(none) == b"x,y\n"
    assert opened(b"one line\nanother\n").picked(last) == b"another\n"


def test_what_is_not_changed_stays_as_it_was_spelt() -> None:
    """A file in another spelling is no cheat, and would score as the baseline does."""
    spelt = b'{ "name": "a",  "tags": ["x"] }'
    assert opened(spelt).refilled(FILLS["NaN"]) == spelt
    assert opened(spelt).picked(PICKS["only the first"]) == spelt
    assert opened(b"[0.5]\n").picked(PICKS["reversed"]) == b"[0.5]\n"
    assert opened(b"a,b\r\n1,2.0\r\n").picked(PICKS["reversed"]) == b"a,b\r\n1,2.0\r\n"


def test_t25_a_pickle_that_equals_everything() -> None:
    """Where a judge unpickles, the cheat is an object that is equal to any answer; loading it does no harm."""
    (made,) = [oracle for oracle in oracles({"a.npy": ARRAY, "b.pkl": b"x"}) if oracle.name == "a pickled object"]
    assert pickle.loads(made.outputs["b.pkl"]) is unittest.mock.ANY  # noqa: S301  # our own bytes
    assert made.outputs["a.npy"].endswith(made.outputs["b.pkl"])
    assert "a pickled object" not in [it.name for it in oracles(PACKING)]


def test_sizes() -> None:
    """However large the baseline, an oracle adds a few megabytes at most."""
    rows = "".join(f"{place},0.5\n" for place in range(10_000)).encode()
    for baseline in ({"a.csv": rows}, {"a.json": json.dumps([0.5] * 10_000).encode()}, {"a": bytes(20 << 20)}):
        size = sum(map(len, baseline.values()))
        for oracle in oracles(baseline):
            assert sum(map(len, oracle.outputs.values())) <= 2 * size + (5 << 20)


@given(st.dictionaries(st.sampled_from(["a.json", "a.csv", "a.npy", "a.pkl"]), st.binary(max_size=60)))
def test_any_baseline(baseline: dict[str, bytes]) -> None:
    """Outputs of no known format make oracles too, and no errors."""
    made = oracles(baseline)
    assert all(isinstance(data, bytes) for oracle in made for data in oracle.outputs.values())
