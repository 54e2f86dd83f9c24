"""Group C, capture of the judge, through a whole campaign: on the stage, where nothing is isolated and only what
crosses is seen, and on an engine. Each attack ran, had no effect, and the campaign went on.
"""

from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from tests.attacks.candidates import ATTACKS, CONFIGS, ISOLATED, MODULES, RESULT, leaving
from tests.attacks.judged import WRONG_SCORE, Fought, fight, site_of
from tests.orchestrator.views.judging.stage import METRIC, write_task

STAGE = pytest.param("stage", marks=pytest.mark.attack)
ENGINE = pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.attack])
AT_LENGTH = pytest.param("docker, all of them", marks=[pytest.mark.docker, pytest.mark.attack, pytest.mark.slow])
# What crosses is the same everywhere, and all of it is tried on the stage; an engine holds what only it can, and a few.
FEW = ("T24 exit at import", "T32 planted in the outputs", "T36 result alone")
SCORED_AS_WRONG = (Ending.SCORED, False, "no better than the champion", WRONG_SCORE)
NO_SOLUTION = (Ending.INVALID, False, "the judge says that it is no solution", None)
# How each ends, and what shows that it was tried: in its log, or in a file that it left.
ENDS = {
    "T24 exit at import": ((Ending.INVALID, False, "it left no output", None), "", b"imported"),
    "T24 exit in the middle": ((Ending.INVALID, False, "it left no output", None), "", b"imported"),
    "T25 equal to all": (NO_SOLUTION, "answers.json", b"unittest.mock"),
    "T25 equal to all, as text": (NO_SOLUTION, "answers.json", b"ANY"),
    "T26 computes later": (NO_SOLUTION, "answers.npy", b"[1.0, 2.5, 3.5]"),
    "T28 patched library": (SCORED_AS_WRONG, "", b"patched 0.0"),
    "T32 planted in the outputs": (SCORED_AS_WRONG, "judge/judge.py", b"BLASTDOOR_RESULT_PATH"),
    "T36 result beside": (SCORED_AS_WRONG, "result.json", RESULT.encode()),
    "T36 result alone": (NO_SOLUTION, "result.json", RESULT.encode()),
    "T38 NaN": (NO_SOLUTION, "answers.json", b"NaN"),
    "T38 infinity": (NO_SOLUTION, "answers.json", b"-Infinity"),
    "T33 late rewriting": (SCORED_AS_WRONG, "", b"a child stays\nat exit"),
    "T35 inputs rewritten": (SCORED_AS_WRONG, "told.txt", b"/inputs/data/data.json"),
}
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


@pytest.fixture(scope="module", params=[STAGE, ENGINE, AT_LENGTH])
def fought(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fought:
    kind, _, length = request.param.partition(",")
    folder = tmp_path_factory.mktemp(f"capture-{kind}")
    if kind == "stage":
        task = write_task(folder / "task", METRIC, files={"judge/judge.py": JUDGE})
        return fight(task, site_of(kind, folder), ATTACKS)
    files = {"judge/judge.py": JUDGE, "inputs/data.json": '{"scale": 1}'}
    task = write_task(folder / "task", METRIC, '[inputs]\ndata = "inputs/data.json"\n', files=files)
    attacks = ATTACKS if length else {name: ATTACKS[name] for name in FEW}
    return fight(task, site_of(kind, folder / "cache"), attacks | ISOLATED)


def ending(fought: Fought, name: str) -> tuple[Ending | None, bool, str, float | None]:
    node = fought.nodes[name]
    return node.ending, node.kept, node.why, node.verdict.metrics.get("score") if node.verdict else None


def test_controls(fought: Fought) -> None:
    """An honest candidate scores, an honest wrong one loses, and after all attacks the best is still found."""
    assert fought.went_on()
    assert all(node.phase == "ended" for node in fought.nodes.values())


def test_t24_t25_t26_t28_t32_t33_t35_t36_t38_nothing_is_gained(fought: Fought) -> None:
    """An exit before any work is no output, what has a mind of its own is bytes to the judge, a result among outputs
    is an output, NaN and infinity are no numbers; what plays with its own chamber or with what lies beside the judge is
    scored for what it answered, and a child that writes after the end is dead by then.
    """
    tried = [name for name in ENDS if name in fought.nodes]
    for name in tried:
        wanted, place, proof = ENDS[name]
        assert proof in (fought.outputs[name][place] if place else fought.logs[name]), name
        assert ending(fought, name) == wanted, name
    assert set(tried) >= {*FEW, *(ISOLATED if "T35 inputs rewritten" in fought.nodes else ATTACKS.keys() & ENDS.keys())}
    assert fought.trials["T24 exit at import"].exit_code == 0
    assert {*MODULES, *CONFIGS} <= set(fought.outputs["T32 planted in the outputs"])


@pytest.mark.parametrize("fought", [STAGE], indirect=True)
def test_t32_planted_in_the_workspace(fought: Fought) -> None:
    """A name that tools load unasked cannot even be proposed."""
    end, kept, why, _ = ending(fought, "T32 planted in the workspace")
    assert (end, kept) == (Ending.INVALID, False)
    assert why.startswith("the change is refused: reserved name")


@pytest.mark.parametrize("fought", [STAGE], indirect=True)
def test_t38_too_good(fought: Fought) -> None:
    """Beyond the ceiling it is flagged, and never kept, however good it is."""
    node = fought.nodes["T38 too good"]
    assert (node.ending, node.kept) == (Ending.SCORED, False)
    assert node.verdict is not None
    assert (node.verdict.suspect, node.verdict.metrics["score"]) == (("score",), 0.0)


@pytest.mark.parametrize("fought", [ENGINE, AT_LENGTH], indirect=True)
def test_t35_no_input_was_changed(fought: Fought) -> None:
    """Every way was tried on every one, and denied; the judge, which would break, scored as ever."""
    told = fought.outputs["T35 inputs rewritten"]["told.txt"].decode().splitlines()
    assert {line.split()[1] for line in told} == {"chmod", "write", "rename", "remove"}
    assert not [line for line in told if not line.startswith("denied ")]


LAX = """import json, os
from pathlib import Path
values = json.loads(Path("../outputs/answers.json").read_text())["values"]
Path(os.environ["BLASTDOOR_RESULT_PATH"]).write_text(json.dumps({"score": -1.0 if values[0] == 1.0 else values[0]}))
"""


def test_t38_a_judge_that_hands_on_whatever_it_is_given(tmp_path: Path) -> None:
    """The schema refuses what is no number, and whoever left it pays, since the judge is well on the baseline; the
    ceiling holds where the judge does not.
    """
    values = {"NaN": "NaN", "infinity": "1e999", "absurd": "1e300"}
    attacks = {name: leaving(answers=f'{{"values": [{value}]}}') for name, value in values.items()}
    lax = fight(write_task(tmp_path, METRIC, files={"judge/judge.py": LAX}), site_of("stage", tmp_path), attacks)
    for name in ("NaN", "infinity"):
        assert ending(lax, name) == (Ending.INVALID, False, "the judge cannot score it: score is not finite", None)
    absurd = lax.nodes["absurd"]
    assert (absurd.ending, absurd.kept) == (Ending.SCORED, False)
    assert absurd.verdict is not None
    assert absurd.verdict.suspect == ("score",)
    assert lax.champion != absurd.id
