"""`check`, `gate` and `replay` where the judge calls the candidate. The programs really run."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.ending import Ending
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.examine.gate import Decision
from orchestrator.judge.adversaries import players, rows_of
from orchestrator.judge.guest.blastdoor_twists import with_field
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.judge.helpers import GUEST
from orchestrator.judge.tape import Tape
from orchestrator.loop.rehearsal import rehearse
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.judging.check import examine
from orchestrator.views.judging.gate import Change, gate
from orchestrator.wiring.parts import make_parts
from tests.attacks.relay_candidates import BASELINE, ENDED, HONEST, JUDGE, LAST, MARKER, PATCHED_CLOCK, TASK, WRONG
from tests.orchestrator.views.judging.stage import Stage, whole

pytestmark = pytest.mark.touching("audit")

TIMED = TASK + '[[metrics]]\nname = "seconds"\ngoal = "lower"\ntiming = true\n'


SLOW = "import time\ndef solve(numbers):\n    time.sleep(0.05)\n    return sum(numbers)\n"


def write(folder: Path, task: str = TASK, judge: str = JUDGE, solve: str = BASELINE) -> Path:
    files = {
        "blastdoor.toml": task,
        "workspace/solve.py": solve,
        "judge/judge.py": judge,
        "judge/gold/marker.txt": MARKER,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def examined(folder: Path, stage: Stage | None = None, *, runs: int = 1, cheats: bool = False) -> Findings:
    findings = Findings()
    async with (stage or Stage()).site() as site:
        await examine(load_task(folder), folder, site, Settings(), findings, runs=runs, cheats=cheats)
    return findings


def texts(findings: Findings, section: Section, sign: Sign) -> list[str]:
    return [row.text for row in findings.rows if (row.section, row.sign) == (section, sign)]


async def test_a_sound_task(tmp_path: Path) -> None:
    """Wiring, gold and every cheat: the channel's figures are told, and no fixed answer wins."""
    findings = await examined(write(tmp_path), runs=2, cheats=True)
    assert findings.good, [row for row in findings.rows if row.sign is Sign.FAIL]
    assert texts(findings, Section.NOISE, Sign.OK) == ["score = -100 in all 2 runs"]
    assert texts(findings, Section.NOISE, Sign.NOTE) == [], "nothing differs, so nothing is said to"
    wiring = "\n".join(texts(findings, Section.WIRING, Sign.OK))
    assert "the baseline loads and the judge calls it 5 times; an empty call takes" in wiring
    fates = {text.partition(":")[0] for text in texts(findings, Section.CHEATS, Sign.OK)}
    assert fates == {"no solution", "no better than the baseline"}
    told = [cheat for row in findings.rows if row.section is Section.CHEATS for cheat in row.facts["cheats"]]  # type: ignore[attr-defined]
    tried = {cheat["name"].partition(":")[0] for cheat in told}
    assert tried <= {row.name for row in rows_of(calls=True, quick=True)}
    assert {"answers nothing", "answers true", "answers an error", "NaN", "remembers"} <= tried
    gold = texts(findings, Section.GOLD, Sign.OK)[-1]
    assert gold.startswith("a canary put beside it is not in the candidate's files")


async def test_a_judge_that_checks_nothing(tmp_path: Path) -> None:
    """Whoever answers at once, and anything, would win: that is a failure of the task."""
    lax = JUDGE.replace("abs(number(reply.value) - sum(numbers))", "0.0 if reply.value is None else 1.0")
    findings = await examined(write(tmp_path, judge=lax), cheats=True)
    assert not findings.good
    (text,) = texts(findings, Section.CHEATS, Sign.FAIL)
    assert text.startswith("“answers nothing” beats the baseline")


async def test_cheats_that_do_not_run(tmp_path: Path) -> None:
    """Where the image has no Python, that is said: a cheat that never ran proves nothing."""
    blind = Stage(instead={"blastdoor_cheat": "not_here"})
    findings = await examined(write(tmp_path), blind, cheats=True)
    (text,) = texts(findings, Section.CHEATS, Sign.WARN)
    assert text.startswith("not tried: they do not run in the candidate's image (failed: ")


def test_the_cheats_are_those_of_the_guest() -> None:
    """What the table asks for is what the program in the chamber knows, and all of that is asked for."""
    look = "import json, blastdoor_cheat as it; print(json.dumps([list(it.ANSWERS), list(it.SPARES)]))"
    told = subprocess.run([sys.executable, "-c", look], cwd=GUEST, capture_output=True, check=True)
    answers, spares = map(set, json.loads(told.stdout))
    call = b"C" + encode(["f", [1]])
    tape = Tape([(call, b"V" + encode({"a": 1, "b": [0.5]})), (b"C" + encode(["is_f", 1]), b"VT"), (call, b"VN")])
    plays = [it.play for it in players(tape, rows_of(calls=True)) if it.play]
    assert {it.answer for it in plays} == answers
    assert {it.spare for it in plays} == spares


@pytest.mark.parametrize(
    ("answer", "alone", "several"),
    [
        (({"loss": 0.5}, [1, 2]), ["loss"], []),
        ((0.5, [1.0, 2.0], {"degree": 1}), ["place 1", "degree"], []),
        ((np.float32(0.5), np.zeros((2, 3)), {(1, 2): {"fit": 2}}, {3}, 1j), ["place 1", "fit"], []),
        ((1.5, -0.5, np.int64(2)), [], ["place 1", "place 2", "place 3"]),
        ([0.5, 1], [], []),
    ],
)
def test_figures_among_several_values(
    answer: Any, alone: list[str], several: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of exact kinds are looked into, too. A number beside something else may be a claim, so a gain from it is
    a hole; of numbers alone nobody can tell, so it is a warning.
    """
    monkeypatch.syspath_prepend(str(GUEST))
    packed = importlib.import_module("blastdoor_kinds").encode_exact(answer)
    tape = Tape([(b"C" + encode(["f", [1]]), b"V" + packed)])
    plays = players(tape, rows_of(calls=True))
    changed = {it.play.field: it.proof for it in plays if it.play and it.play.answer == "field"}
    assert changed == {**dict.fromkeys(alone, True), **dict.fromkeys(several, False)}
    for name in changed:
        assert repr(with_field(answer, name, 7)) != repr(answer)
    assert any(it.play and it.play.answer == "claims" for it in plays) is any(isinstance(it, dict) for it in answer)


WRONGS = {
    "the judge gives no score: it says that the baseline is no solution: solve: there is no function solve; there are:"
    " other": ("def other(numbers):\n    return 1\n", JUDGE),
    "the baseline does not run: failed: it does not load: ModuleNotFoundError": ("import not_here\n", JUDGE),
    "the judge gives no score: judge failed: the chamber ended by itself": (BASELINE, "raise SystemExit(1)\n"),
    "the judge gives no score: judge protocol broken": (BASELINE, "print('hello', flush=True)\n" + JUDGE),
    "the judge gives no score: judge failed": (BASELINE, JUDGE.replace('"solve"', "object()")),
}


@pytest.mark.parametrize("says", WRONGS)
async def test_what_is_wrong(tmp_path: Path, says: str) -> None:
    """A function that is not there, code that does not load, a judge that breaks: one line each, and an end."""
    solve, judge = WRONGS[says]
    (text,) = texts(await examined(write(tmp_path, solve=solve, judge=judge)), Section.WIRING, Sign.FAIL)
    assert text.startswith(says)


async def test_a_time_below_the_jitter(tmp_path: Path) -> None:
    """Of a baseline that is too fast to be timed it is said which metric, how large the jitter is, and what to do."""
    judge = JUDGE.replace('{"seconds": seconds}', '{"seconds": 0.0}')
    findings = await examined(write(tmp_path, TIMED, judge))
    (text,) = texts(findings, Section.WIRING, Sign.FAIL)
    assert text.startswith("nothing faster could be told from the baseline: seconds is below what the channel can tell")
    assert " after 5 calls, at a jitter of " in text
    assert "let the judge time more work, or try again when the machine is less busy" in text


@pytest.mark.parametrize("rule", ["strict", ""])
async def test_times_need_the_noisy_rule(tmp_path: Path, rule: str) -> None:
    """Times are never the same twice: a task that is timed has the rule that fits, and one line says so, unless it
    names another one; then it is told which one fits.
    """
    named = f'[certify]\nrule = "{rule}"\n' if rule else ""
    findings = await examined(write(tmp_path, TIMED + named, solve=SLOW), runs=2)
    warned = [text for text in texts(findings, Section.NOISE, Sign.WARN) if text.startswith("certify.rule is")]
    notes = texts(findings, Section.NOISE, Sign.NOTE)
    assert any("nothing here is the same twice" in text for text in notes)
    said = 'certify.rule is "noisy", since seconds is a time: repeats in turn decide, unless it names another'
    assert (len(warned), said in notes) == ((1, False) if rule else (0, True))


TIMER = """
from blastdoor_judge import BadOutput, publish
from blastdoor_relay import relay

def question(rng):
    return ([rng.randrange(1, 1000) for _ in range(20)],)

def check(answer, numbers):
    if answer != sum(numbers):
        raise BadOutput("a wrong sum")

with relay() as candidate:
    timing = candidate.time("solve", question, check, seconds=1.0)
    publish(0.0, metrics={"seconds": timing.seconds})
"""
KEEPS = "kept = []\ndef solve(numbers):\n    kept.append(sum(numbers))\n    return kept[len(kept) // 4]\n"
EARLY = ENDED["T81 before it is asked"][0] + BASELINE
PATCHED = PATCHED_CLOCK.replace(" - 900", "")


@pytest.mark.parametrize(
    ("solve", "ending", "says"),
    [(PATCHED, None, ""), (KEEPS, None, "a wrong sum"), (EARLY, Ending.TAMPERED, ""), (LAST, None, "")],
    ids=["T27 patched clock", "T37 answers that were kept", "T81 before it is asked", "honest"],
)
async def test_times_are_not_to_be_cheated(tmp_path: Path, solve: str, ending: Ending | None, says: str) -> None:
    """Whatever a candidate does to its clock, to earlier answers or to the channel, `candidate.time` gives it no time
    that it did not earn; one that just answers has one.
    """
    folder = write(tmp_path, TIMED, TIMER, solve)
    task = load_task(folder)
    async with Stage().site() as site:
        run = await rehearse(await make_parts(task, snapshot(task, folder), site))
    assert run.ending is ending
    if ending is None:
        assert run.verdict
        assert (run.verdict.valid, run.verdict.notes) == (not says, says)
    if not says and ending is None:
        assert run.verdict
        assert run.verdict.metrics["seconds"] >= (0.05 if solve == PATCHED else 0.0)


NEVER_CALLS = "from blastdoor_judge import publish\nfrom blastdoor_relay import relay\nwith relay() as candidate:\n"
IGNORES = NEVER_CALLS + "    candidate.call('solve', [1, 2])\n    publish(1.0)\n"
NEVER_CALLS += "    candidate.null()\n    publish(1.0)\n"
NO_CEILING = TASK.replace("ceiling = 0.5\n", "")
DEPENDS_NOT = "it does not depend on the candidate"


async def test_a_judge_that_never_calls(tmp_path: Path) -> None:
    """Its score cannot depend on the candidate: not ready, with one line that says what to do."""
    stage = Stage()
    findings = await examined(write(tmp_path, NO_CEILING, NEVER_CALLS), stage, cheats=True)
    [row] = [row for row in findings.rows if row.sign is Sign.FAIL]
    assert row.section is Section.WIRING
    assert row.text == "the judge never calls the candidate: the score cannot depend on it"
    assert "candidate.call" in row.advice
    assert not any("blastdoor_cheat" in job for job in stage.jobs), "no cheat tells more than that"


@pytest.mark.parametrize("section", ["tune", "heldout"])
async def test_a_judge_that_does_not_call_elsewhere(tmp_path: Path, section: str) -> None:
    """The cheaper target and the held-out split are looked at, too."""
    judge = "import sys\nif '--other' in sys.argv:\n" + "".join(f"    {line}\n" for line in NEVER_CALLS.splitlines())
    judge += "else:\n" + "".join(f"    {line}\n" for line in JUDGE.splitlines())
    keys = {"tune": "trials = 1", "heldout": "step = 0.5"}[section]
    more = f'[{section}]\n{keys}\njudge = ["python3", "judge.py", "--other"]\n'
    findings = await examined(write(tmp_path, NO_CEILING + more, judge))
    (text,) = texts(findings, Section.WIRING, Sign.FAIL)
    assert text.endswith("the judge never calls the candidate: the score cannot depend on it")


async def test_a_judge_that_ignores_the_answer(tmp_path: Path) -> None:
    """Whatever is answered, the score is the baseline's: not ready. That an error is no answer does not hide it."""
    findings = await examined(write(tmp_path, NO_CEILING, IGNORES), cheats=True, runs=2)
    (row,) = [row for row in findings.rows if row.sign is Sign.FAIL]
    assert row.text == f"the judge gives every cheat the baseline's score (score = 1): {DEPENDS_NOT}"
    assert row.advice.startswith(
        "let the score come from what the candidate did; what is no solution gets valid = false"
    )
    assert "If the baseline is a stub that solves nothing, begin with one that solves something" in row.advice


SEES = JUDGE.replace("off.append(abs(number(reply.value) - sum(numbers)))", "off.append({score})")


@pytest.mark.parametrize(
    "score",
    ["100 if reply.value in (0, 1, sum(numbers) - 100) else 700", "abs(checked(reply.value, numbers) - sum(numbers))"],
    ids=["zero and one as the baseline", "all cheats invalid"],
)
async def test_a_judge_that_looks(tmp_path: Path, score: str) -> None:
    """Some answers that happen to score as the baseline does, or none that is a solution: all is well."""
    checked = (
        "\ndef checked(value, numbers):\n    if type(value) is not int or value < sum(numbers) - 800:\n"
        "        raise BadOutput('far off')\n    return value\n"
    )
    judge = SEES.replace("{score}", score).replace("\nwith relay", f"{checked}\nwith relay")
    findings = await examined(write(tmp_path, judge=judge), cheats=True, runs=2)
    assert findings.good, [row for row in findings.rows if row.sign is Sign.FAIL]
    assert texts(findings, Section.CHEATS, Sign.WARN) == []


@pytest.mark.parametrize(
    ("solve", "decision", "ending"),
    [
        (HONEST, Decision.ACCEPTED, Ending.SCORED),
        (WRONG, Decision.REJECTED, Ending.SCORED),
        ("import os\nos._exit(0)\n", Decision.REJECTED, Ending.FAILED),
    ],
)
async def test_gate(tmp_path: Path, solve: str, decision: Decision, ending: Ending) -> None:
    """One change, judged by calling it."""
    raw = whole(solve).encode()
    report = await gate(write(tmp_path), Change(raw, "0" * 64, len(raw)), Settings(), Stage().site, must_improve=False)
    assert (report.gated.decision, report.gated.ending) == (decision, ending)
