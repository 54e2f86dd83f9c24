"""Group C, capture of the judge, through a whole campaign: on the stage, where nothing is isolated and only what
crosses is seen, and on an engine. Each attack ran, had no effect, and the campaign went on.
"""

import pytest

from orchestrator.domain.ending import Ending
from tests.attacks.candidates import ATTACKS, CONFIGS, ISOLATED, MODULES, RESULT, leaving
from tests.attacks.judged import WRONG_SCORE, Fought, fight, site_of
from tests.orchestrator.views.judging.stage import METRIC, write_task

STAGE = pytest.param("stage", marks=pytest.mark.attack)
ENGINE = pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.attack])
# Reads .npy where there is one; has inputs of its own where the task has some.
JUDGE = """import json
from pathlib import Path
from blastdoor_judge import BadOutput, judging, load_json, load_npy, number, outputs, publish

with judging():
    right = json.loads(Path("gold/answers.json").read_text())["values"]
    given = Path("/inputs/data/data.json")
    if given.exists() and json.loads(given.read_text()) != {"scale": 1}:
        raise SystemExit("the judge's own inputs were changed")
    if (Path(outputs()) / "answers.npy").exists():
        values = list(load_npy("answers.npy").values)
    else:
        found = load_json("answers.json", max_bytes=10_000)
        values = found.get("values") if isinstance(found, dict) else None
    if not isinstance(values, list) or len(values) != len(right):
        raise BadOutput("three numbers are wanted")
    publish(-sum(abs(number(value) - wanted) for value, wanted in zip(values, right)))
"""


@pytest.fixture(scope="module", params=[STAGE, ENGINE])
def fought(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fought:
    folder = tmp_path_factory.mktemp(f"capture-{request.param}")
    on_engine = request.param == "docker"
    inputs = {"inputs/data.json": '{"scale": 1}'} if on_engine else {}
    more = '[inputs]\ndata = "inputs/data.json"\n' if on_engine else ""
    task = write_task(folder / "task", METRIC, more, files={"judge/judge.py": JUDGE, **inputs})
    return fight(task, site_of(request.param, folder / "cache"), ATTACKS | (ISOLATED if on_engine else {}))


def ending(fought: Fought, name: str) -> tuple[Ending | None, bool, str]:
    node = fought.nodes[name]
    return node.ending, node.kept, node.why


def lost_honestly(fought: Fought, name: str) -> bool:
    """Scored by the judge for what it answered, as if it had done nothing else."""
    node = fought.nodes[name]
    score = node.verdict.metrics["score"] if node.verdict else None
    return (node.ending, node.kept, score) == (Ending.SCORED, False, WRONG_SCORE)


def test_controls(fought: Fought) -> None:
    """An honest candidate scores, an honest wrong one loses, and after all attacks the best is still found."""
    assert fought.went_on()
    assert all(node.phase == "ended" for node in fought.nodes.values())


@pytest.mark.parametrize("name", ["T24 exit at import", "T24 exit in the middle"])
def test_t24_early_exit(fought: Fought, name: str) -> None:
    """A clean exit before any work is no output: invalid, charged, and never a pass."""
    assert b"imported" in fought.logs[name]
    assert fought.trials[name].exit_code == 0
    assert ending(fought, name) == (Ending.INVALID, False, "it left no output")
    assert fought.nodes[name].verdict is None


@pytest.mark.parametrize("name", ["T25 equal to all", "T25 equal to all, as text", "T26 computes later"])
def test_t25_t26_only_plain_data_crosses(fought: Fought, name: str) -> None:
    """What was an object with a mind of its own is bytes to the judge, and no solution."""
    assert fought.outputs[name]
    assert ending(fought, name) == (Ending.INVALID, False, "the judge says that it is no solution")


def test_t28_patched_library(fought: Fought) -> None:
    """The candidate's json, sum and abs are its own; the judge's are the judge's."""
    assert b"patched 0.0" in fought.logs["T28 patched library"]
    assert lost_honestly(fought, "T28 patched library")


def test_t32_planted_modules(fought: Fought) -> None:
    """Modules and settings among the outputs lie next door to the judge, which imports none of them."""
    name = "T32 planted in the outputs"
    assert {*MODULES, *CONFIGS} <= set(fought.outputs[name])
    assert lost_honestly(fought, name)


def test_t32_planted_in_the_workspace(fought: Fought) -> None:
    """A name that tools load unasked cannot even be proposed."""
    end, kept, why = ending(fought, "T32 planted in the workspace")
    assert (end, kept) == (Ending.INVALID, False)
    assert why.startswith("the change is refused: reserved name")


def test_t36_a_result_of_ones_own(fought: Fought) -> None:
    """A pre-seeded result is an output like any other: beside an answer it changes nothing, alone it is none."""
    assert fought.outputs["T36 result beside"]["result.json"].decode() == RESULT
    assert lost_honestly(fought, "T36 result beside")
    assert ending(fought, "T36 result alone") == (Ending.INVALID, False, "the judge says that it is no solution")


@pytest.mark.parametrize(("name", "left"), [("T38 NaN", b"NaN"), ("T38 infinity", b"-Infinity")])
def test_t38_no_numbers(fought: Fought, name: str, left: bytes) -> None:
    """NaN and infinity are no solution, and no score, not even a bad one."""
    assert left in fought.outputs[name]["answers.json"]
    assert ending(fought, name) == (Ending.INVALID, False, "the judge says that it is no solution")


def test_t38_too_good(fought: Fought) -> None:
    """Beyond the ceiling it is flagged, and never kept, however good it is."""
    node = fought.nodes["T38 too good"]
    assert (node.ending, node.kept) == (Ending.SCORED, False)
    assert node.verdict is not None
    assert (node.verdict.suspect, node.verdict.metrics["score"]) == (("score",), 0.0)


@pytest.mark.parametrize("fought", [ENGINE], indirect=True)
def test_t33_late_rewriting(fought: Fought) -> None:
    """What a child writes after the end is not collected: it is dead by then."""
    name = "T33 late rewriting"
    assert b"a child stays" in fought.logs[name]
    assert b"at exit" in fought.logs[name]
    assert lost_honestly(fought, name)


@pytest.mark.parametrize("fought", [ENGINE], indirect=True)
def test_t35_inputs_rewritten(fought: Fought) -> None:
    """Nothing of the inputs can be changed, and the judge, which would break, scores as ever."""
    told = fought.outputs["T35 inputs rewritten"]["told.txt"].decode().splitlines()
    assert {line.split()[1] for line in told} == {"chmod", "write", "rename", "remove"}
    assert any("/inputs/data/data.json" in line for line in told)
    assert not [line for line in told if not line.startswith("denied ")]
    assert lost_honestly(fought, "T35 inputs rewritten")


LAX = """import json, os
from pathlib import Path
values = json.loads(Path("../outputs/answers.json").read_text())["values"]
Path(os.environ["BLASTDOOR_RESULT_PATH"]).write_text(json.dumps({"score": -1.0 if values[0] == 1.0 else values[0]}))
"""


@pytest.fixture(scope="module")
def lax(tmp_path_factory: pytest.TempPathFactory) -> Fought:
    """A judge that hands on whatever number it is given."""
    folder = tmp_path_factory.mktemp("lax")
    values = {"NaN": "NaN", "infinity": "1e999", "absurd": "1e300"}
    attacks = {name: leaving(answers=f'{{"values": [{value}]}}') for name, value in values.items()}
    return fight(write_task(folder, METRIC, files={"judge/judge.py": LAX}), site_of("stage", folder), attacks)


@pytest.mark.parametrize("name", ["NaN", "infinity"])
def test_t38_a_score_that_is_no_number(lax: Fought, name: str) -> None:
    """The schema refuses it. The judge is well on the baseline, so whoever left the number pays."""
    assert ending(lax, name) == (Ending.INVALID, False, "the judge cannot score it: score is not finite")
    assert lax.nodes[name].verdict is None


def test_t38_an_absurd_score(lax: Fought) -> None:
    """The ceiling holds where the judge does not."""
    node = lax.nodes["absurd"]
    assert (node.ending, node.kept) == (Ending.SCORED, False)
    assert node.verdict is not None
    assert node.verdict.suspect == ("score",)
    assert lax.champion != node.id
