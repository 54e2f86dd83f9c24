"""`audit`: known holes are found, sound judges are not blamed, and what gains names its change (T92)."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.metric import Goal, Metric, Ranking
from orchestrator.examine.audit import AuditReport, tell_no_gains, tell_saturated, unknown_names
from orchestrator.examine.cheating import Bar, Fate, Tried
from orchestrator.examine.facing import Faced, Faces, by_row, floor_of
from orchestrator.examine.findings import Findings, Sign
from orchestrator.examine.gate import Decision
from orchestrator.judge.adversaries import ADVERSARIES, Adversary, Oracle, players, rows_of
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.judge.seeds import seeded_places
from orchestrator.judge.tape import Tape
from orchestrator.settings import Settings
from orchestrator.views.judging.gate import Change, gate
from tests.leaky.auditing import PAIRS, audited
from tests.orchestrator.examine.test_calls import NEVER_CALLS, NO_CEILING, SLOW
from tests.orchestrator.examine.test_calls import write as write_calls
from tests.orchestrator.examine.test_checkup import SHARED
from tests.orchestrator.views.judging.stage import METRIC, Stage, write_task

# These in `make test`, with the adversary that is made for them; all of them, with everybody, in `make thorough`.
FEW = ("nan-geometry", "missing-is-skipped")
MORE = ("class-grades-itself",)
LEAKY = {name: (by, write) for name, by, write in PAIRS}


def few(names: tuple[str, ...]) -> list[object]:
    return [name if name in names else pytest.param(name, marks=pytest.mark.slow) for name in LEAKY]


@pytest.mark.parametrize("name", few((*FEW, *MORE)))
async def test_a_known_hole(tmp_path: Path, name: str) -> None:
    """The adversary that is made for it gains, and what to change is said."""
    by, write = LEAKY[name]
    report = await audited(write(tmp_path / "task", fixed=False), [by])
    assert not report.good
    assert {it.adversary for it in report.found} == {by}
    assert (report.held, report.tried) == (0, 1)
    assert all(it.mend for it in report.found)


@pytest.mark.parametrize("name", few(FEW))
async def test_its_fixed_twin(tmp_path: Path, name: str) -> None:
    """The same adversary gains nothing from the same judge without the hole."""
    by, write = LEAKY[name]
    report = await audited(write(tmp_path / "task", fixed=True), [by])
    assert (report.found, report.why, report.untried) == ((), "", {})


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LEAKY))
async def test_a_twin_against_everybody(tmp_path: Path, name: str) -> None:
    """No adversary gains from a judge without a hole."""
    report = await audited(LEAKY[name][1](tmp_path / "task", fixed=True))
    assert report.good, report.found


@pytest.mark.parametrize("fixed", [False, True])
async def test_a_held_out_split_is_not_asked(tmp_path: Path, fixed: bool) -> None:
    """A hole of the judge is one with a split that is held out, too, and none is made by it. The split is not asked:
    what adversaries score there would be told by the report.
    """
    by, write = LEAKY["nan-geometry"]
    folder = write(tmp_path / "task", fixed=fixed)
    place = folder / "blastdoor.toml"
    place.write_text(f'{place.read_text()}\n[heldout]\nstep = 0.5\njudge = ["python3", "judge.py", "--held"]\n')
    stage = Stage()
    report = await audited(folder, [by], stage=stage)
    assert {it.adversary for it in report.found} == (set() if fixed else {by})
    assert report.tried == 1
    assert stage.jobs
    assert not any("--held" in job for job in stage.jobs)


def test_the_tables() -> None:
    """At least twenty holes, of both kinds, which nearly half of the adversaries find; names of these are unique, each
    fits a way of judging, and half or so are quick.
    """
    assert len(LEAKY) >= 20
    calls = [name for name, (by, _) in LEAKY.items() if any(row.name == by and row.plays for row in ADVERSARIES)]
    assert 10 <= len(calls) <= len(LEAKY)
    assert unknown_names([by for by, _ in LEAKY.values()]) == []
    assert len({by for by, _ in LEAKY.values()}) >= 15
    assert len({row.name for row in ADVERSARIES}) == len(ADVERSARIES)
    assert all(row.why and (row.forge or row.plays) for row in ADVERSARIES)
    for by_calls in (True, False):
        assert 0.3 < len(rows_of(calls=by_calls, quick=True)) / len(rows_of(calls=by_calls)) < 0.8


@pytest.mark.parametrize(("name", "must_improve"), [("no-range", True), ("graded-by-itself", False)])
async def test_a_change_that_does_it_again(tmp_path: Path, name: str, must_improve: bool) -> None:
    """What gained comes as a change: `gate` lets it through, since the judge does, until the hole is mended."""
    by, write = LEAKY[name]
    folder = write(tmp_path / "task", fixed=False)
    (first, *_) = (await audited(folder, [by])).found
    assert first.change
    raw = first.change.encode()
    decided = await gate(folder, Change(raw, "0" * 64, len(raw)), Settings(), Stage().site, must_improve=must_improve)
    assert decided.gated.decision is Decision.ACCEPTED, decided.gated.why
    if not must_improve:
        return
    write(folder, fixed=True)
    decided = await gate(folder, Change(raw, "0" * 64, len(raw)), Settings(), Stage().site, must_improve=must_improve)
    assert decided.gated.decision is Decision.REJECTED


def scored(values: object) -> float | None:
    if not isinstance(values, list) or len(values) != 3 or not all(type(it) is float for it in values):
        return None
    off = sum(abs(it - want) for it, want in zip(values, (1.0, 2.5, 3.5), strict=True))
    return -off if off < 1e6 else None


def sound(outputs: Mapping[str, bytes]) -> object:
    try:
        found = json.loads(outputs["answers.json"])
        score = scored(found["values"]) if isinstance(found, dict) else None
    except (KeyError, ValueError, RecursionError):
        score = None
    return {"valid": False} if score is None else {"score": score}


@pytest.mark.parametrize("seed", [0, *(pytest.param(it, marks=pytest.mark.slow) for it in range(1, 20))])
async def test_noise_is_no_gain(tmp_path: Path, seed: int) -> None:
    """Cheats that keep the baseline's outputs score like it, with its luck: none is blamed, and the noise is told."""
    rng = random.Random(seed)

    def noisy(outputs: Mapping[str, bytes]) -> object:
        found = sound(outputs)
        assert isinstance(found, dict)
        return {"score": found["score"] + rng.gauss(0, 0.3)} if "score" in found else found

    findings = Findings()
    report = await audited(write_task(tmp_path, ""), findings=findings, stage=Stage(judge=noisy), runs=3)
    assert report.good, report.found
    assert report.held == report.tried > 30
    assert any("differs from run to run" in row.text for row in findings.rows)


async def test_a_judge_that_looks_at_the_form_alone(tmp_path: Path) -> None:
    """What `check` only warns of is decided here: garbage that gets the baseline's score is a gain."""

    def formal(outputs: Mapping[str, bytes]) -> object:
        try:
            return {"score": 1.0, "valid": bool(json.loads(outputs["answers.json"]))}
        except (KeyError, ValueError, RecursionError):
            return {"valid": False}

    report = await audited(write_task(tmp_path, ""), stage=Stage(judge=formal))
    assert not report.good
    assert {"NaN", "texts for numbers"} <= {it.adversary for it in report.found}
    assert {it.how for it in report.found} == {"gets the baseline's score"}


async def test_a_sound_judge(tmp_path: Path) -> None:
    """Everything is held against, the floor is told, and nothing is left in the folder."""
    findings = Findings()
    folder = write_task(tmp_path, "")
    before = sorted(folder.rglob("*"))
    report = await audited(folder, findings=findings, stage=Stage(judge=sound))
    assert report.good, report.found
    assert (report.baseline, report.floor) == ({"score": -1.0}, None)
    texts = [row.text for row in findings.rows]
    assert "the floor: what does nothing gets no score" in texts
    assert texts[-1] == f"the judge held against {report.tried} of {report.tried} adversaries"
    assert sorted(folder.rglob("*")) == before


async def test_what_is_accepted(tmp_path: Path) -> None:
    """A person may accept what an adversary gains: it is told, and is no failure."""

    def seeded(outputs: Mapping[str, bytes]) -> object:
        return json.loads(outputs["result.json"]) if "result.json" in outputs else sound(outputs)

    rows = ["result beside", "NaN"]
    report = await audited(write_task(tmp_path, ""), rows, stage=Stage(judge=seeded), accept=["result beside"])
    assert report.good
    assert [(it.adversary, it.accepted) for it in report.found] == [("result beside", True)]


@pytest.mark.parametrize("kind", ["baseline", "calls nobody", "shared", "no such program"])
async def test_what_can_not_be_tried(tmp_path: Path, kind: str) -> None:
    """One line that says why, and no blame; what proves nothing is never good."""
    stage = Stage()
    if kind == "baseline":
        folder = write_task(tmp_path, files={"workspace/solve.py": "raise SystemExit(3)\n"})
    elif kind == "calls nobody":
        folder = write_calls(tmp_path, NO_CEILING, NEVER_CALLS)
    elif kind == "shared":
        folder = write_task(tmp_path, METRIC, judge='mode = "shared"', files={"judge/judge.py": SHARED})
    else:
        folder, stage = write_calls(tmp_path, solve=SLOW), Stage(instead={"blastdoor_cheat": "not_here"})
    findings = Findings()
    report = await audited(folder, ["NaN", "answers nothing"], findings=findings, stage=stage)
    assert (report.good, bool(report.why), report.found) == (False, True, ())
    assert sum(row.sign is Sign.FAIL for row in findings.rows) == 1


ROW = Adversary("x", "mend it", tie=True, idle=True)
BAR = Bar(Ranking((Metric("score"),)), [{"score": 0.5}, {"score": 0.5}])


def tried(score: float | None, fate: Fate = Fate.NO_BETTER) -> Tried:
    return Tried(Oracle("x", {}, "", row=ROW), fate, "", values=None if score is None else {"score": score})


def test_when_the_same_score_is_a_gain() -> None:
    """Where every way of a row gets it for nothing; not where one is refused, or where the baseline has nothing."""
    reached, refused = tried(0.5), tried(None, Fate.NO_SOLUTION)
    assert by_row([ROW], [reached, reached], BAR)[0].gains
    assert not by_row([ROW], [reached, refused], BAR)[0].gains
    alone = replace(ROW, alone=True)
    mine = [replace(it, oracle=replace(it.oracle, row=alone)) for it in (refused, reached)]
    assert [gain.tried for gain in by_row([alone], mine, BAR)[0].gains] == mine[1:], "one of its ways is enough"
    assert not by_row([ROW], [tried(0.4)], BAR)[0].gains
    nothing = Bar(BAR.ranking, [{"score": 0.0}])
    assert not by_row([ROW], [tried(0.0)], nothing)[0].gains
    best = Bar(Ranking((Metric("score", Goal.LOWER),)), [{"score": 0.0}])
    assert by_row([ROW], [tried(0.0)], best)[0].gains
    assert by_row([ROW], [], BAR) == []


def test_what_did_not_run_was_not_held_against() -> None:
    """A cheat that relay mode could not carry counts neither way, and neither does one of which a part was carried:
    what did not run might have gained. A way that gained decides for the row.
    """
    not_run, refused = replace(tried(None, Fate.NOT_RUN), code="timed out"), tried(None, Fate.NO_SOLUTION)
    faces = Faces(BAR, tuple(by_row([ROW], [not_run, not_run], BAR)))
    assert (faces.held, len(faces.untried), faces.faced[0].gains) == (0, 1, ())
    for some in ([not_run, refused], [refused, not_run]):
        faces = Faces(BAR, tuple(by_row([ROW], some, BAR)))
        assert (faces.held, [it.why_untried for it in faces.untried]) == (0, ["timed out"])
    faces = Faces(BAR, tuple(by_row([ROW], [not_run, tried(0.5)], BAR)))
    assert (len(faces.faced[0].gains), faces.held, faces.untried) == (1, 0, [])
    report = AuditReport(held=1, tried=1, untried={"slow": "timed out"})
    assert not report.good
    assert replace(report, accepted=("slow",)).good
    assert not AuditReport().good, "nothing was tried"


def test_margins() -> None:
    """What must be passed by a known amount is not passed by less, nor is it different by less."""
    bar = Bar(BAR.ranking, BAR.runs, {"score": 0.2})
    assert (bar.passed({"score": 0.6}), bar.passed({"score": 0.8})) == (False, True)
    assert (bar.is_alike({"score": 0.4}), bar.is_alike({"score": 0.2})) == (True, False)


def call(name: str, *arguments: object) -> bytes:
    return b"C" + encode([name, *arguments])


def test_a_tape() -> None:
    """Names, graders and repeated questions are read off the bytes; an answer that cannot be read is not known."""
    tape = Tape()
    for request, answer in [
        (call("solve", [1, 2]), b"V" + encode({"x": 1, "y": 0.5})),
        (call("is_solution", [1, 2], 3), b"VT"),
        (call("solve", [1, 2]), b"V\xff\xff"),
        (call("is_solution", [4], 3), b"VT"),
    ]:
        tape.keep(request, answer)
    assert (tape.names, tape.graders) == (("solve", "is_solution"), ("is_solution",))
    assert (tape.questions, tape.asks_again, tape.uses_objects) == (3, True, False)
    assert not tape.asks_without_question
    assert (tape.has_both, tape.has_objects, tape.fields) == (True, True, ["x", "y"])
    assert not tape.always_answers(True)
    again = Tape([(call("solve", [1, 2]), b"VN"), (call("solve", [9]), b"VN"), (call("tick"), b"VN")])
    assert (tape.recurring(again), again.recurring(tape), again.recurring(again)) == (1, 1, 2)
    assert again.always_answers(None)
    assert again.asks_without_question
    assert Tape([(b"K" + encode(["tick", [], {}, {"exact": True}]), b"VN")]).asks_without_question
    assert not Tape([(b"K" + encode(["tick", [1], {}, {}]), b"VN")]).asks_without_question
    echo = Tape([(call("solve", [1, 2]), b"V" + encode([1, 2]))])
    assert echo.always_answers_the_question
    assert not tape.always_answers_the_question
    for number in range(3_000):
        echo.keep(call("f", number), b"VN")
    echo.keep(bytes(20 << 20), b"")
    assert len(echo.calls) == 2_000, "the first ones are enough"


def test_the_baselines_own_answer_is_no_cheat() -> None:
    """Where it always says nothing, or repeats the question, who does the same does what it does."""

    def names(tape: Tape) -> set[str]:
        return {it.name for it in players(tape, rows_of(calls=True))}

    says_nothing = Tape([(call("f", 1), b"VN"), (call("f", 2), b"VN")])
    assert "answers nothing" not in names(says_nothing)
    assert "answers zero" in names(says_nothing)
    assert "NaN" not in names(says_nothing), "there is no number to replace"
    assert "answers the question back" not in names(Tape([(call("f", 5), b"V" + encode(5))]))


def test_seeds() -> None:
    """A constant given to a generator is found with its line; one that is drawn is not."""
    code = {
        "judge.py": b"import random\nrandom.seed(7)\nrng = random.Random(candidate.seed)\n",
        "lib.py": b"rng = np.random.default_rng(seed=3)\nother = Random()\n",
        "notes.txt": b"random.seed(7)\n",
        "broken.py": b"def (",
    }
    assert seeded_places(code) == ["judge.py:2", "lib.py:1"]


def test_when_every_way_must_gain() -> None:
    """One that is better, or as good, is not enough: to leave out an item can be honest. It is told as what it is; what
    did not gain again was chance.
    """
    every = replace(ROW, every=True)
    better, reached, worse = (
        replace(it, oracle=replace(it.oracle, row=every)) for it in (tried(0.9, Fate.WON), tried(0.5), tried(0.1))
    )
    gains = [
        len(by_row([every], ways, BAR)[0].gains)
        for ways in ([better, worse], [better, reached], [worse, reached], [better, better], [reached, reached])
    ]
    assert gains == [0, 0, 0, 2, 1]
    findings = Findings()
    tell_no_gains(Faces(BAR, tuple(by_row([every], [better, worse], BAR))), findings)
    tell_no_gains(Faces(BAR, tuple(by_row([every], [better, better], BAR))), findings)
    tell_no_gains(Faces(BAR, (Faced(ROW, (tried(0.9, Fate.WON),)),)), findings)
    assert [row.text for row in findings.rows] == [
        "better than the baseline, while other ways of the same kind are not: x",
        "by chance, and not again: x",
    ]


def test_the_floor() -> None:
    """The best of those that do nothing; what is beyond the ceiling would never be kept. Noise that hides the way from
    there to the baseline, and a ceiling that is reached, are told beforehand.
    """
    floor = floor_of(by_row([ROW], [tried(0.1), tried(0.3), tried(9.0, Fate.FLAGGED), tried(None)], BAR), BAR)
    assert floor
    assert floor.values == {"score": 0.3}
    hidden = "runs of the same baseline differ by 0.4 in score, and the floor is only 0.6 away"
    reached = "the baseline has reached the ceiling of score (1): nothing can be better"
    for runs, lowest, ceiling, told in (
        ((0.5, 0.9), 0.1, None, [hidden]),
        ((0.5, 0.6), 0.1, None, []),
        ((0.5, 0.5), 0.5, None, []),
        ((1.0, 1.0), 0.1, 1.0, [reached]),
    ):
        bar = Bar(Ranking((Metric("score", ceiling=ceiling),)), [{"score": it} for it in runs])
        tell_saturated(Faces(bar, (), floor=tried(lowest)), findings := Findings())
        assert [row.text for row in findings.rows] == told
