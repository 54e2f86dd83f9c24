"""`gate` on changes that are good, bad, forbidden and hostile. The programs really run, in chambers that pretend."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from orchestrator.domain.ending import Ending
from orchestrator.examine import gate as gate_module
from orchestrator.examine.gate import Decision, changed_paths
from orchestrator.examine.gate_steps import StepState
from orchestrator.ledger import Ledger
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.views.exits import Exit
from orchestrator.views.judging import gate as gate_view
from orchestrator.views.judging.gate import Change, gate, read_change
from orchestrator.views.judging.report import Report
from tests.clicking import every_command, runner
from tests.orchestrator.views.judging.stage import BETTER, JUDGE, METRIC, SOLVE, WORSE, Stage, whole, write_task

SAME = SOLVE + "# the same, and a word more\n"
GUARD = '[[guards]]\nname = "plain"\ncommand = ["sh", "-c", "! grep dreadful solve.py"]\n'
SECRET = "gold-text-of-the-judge"
CUT_OFF = """--- a/solve.py
+++ b/solve.py
@@ -1,4 +1,4 @@
 import json, os
-values = [1.0, 2.0, 3.0]
+values = [1.0, 2.0, 3.4]
"""


async def gated(folder: Path, text: str | bytes, stage: Stage | None = None, *, must_improve: bool = False) -> Report:
    raw = text.encode() if isinstance(text, str) else text
    return await gate(
        folder, Change(raw, "0" * 64, len(raw)), Settings(), (stage or Stage()).site, must_improve=must_improve
    )


def states(report: Report) -> dict[str, StepState]:
    return {step.name: step.state for step in report.gated.steps}


@pytest.mark.parametrize(
    ("text", "must_improve", "decision", "says"),
    [
        (BETTER, False, Decision.ACCEPTED, "better than the baseline (score -0.6, baseline -1)"),
        (BETTER, True, Decision.ACCEPTED, "better than the baseline"),
        (SAME, False, Decision.ACCEPTED, "not worse than the baseline"),
        (SAME, True, Decision.REJECTED, "no better than the baseline"),
        (WORSE, False, Decision.REJECTED, "scored: worse than the baseline"),
    ],
)
async def test_scores(tmp_path: Path, text: str, must_improve: bool, decision: Decision, says: str) -> None:
    """Not worse is enough, unless it must improve. A campaign asks its guards only of a champion; the gate asks them of
    every sound change.
    """
    report = await gated(write_task(tmp_path, METRIC, GUARD), whole(text), must_improve=must_improve)
    assert (report.gated.decision, report.gated.ending) == (decision, Ending.SCORED)
    assert says in report.gated.why
    assert states(report)["guards:plain"] is StepState.PASSED


@pytest.mark.parametrize(
    ("code", "step", "ending", "says"),
    [
        ("import os\nos._exit(0)\n", "trial", Ending.INVALID, "it left no output"),
        ("raise SystemExit(3)\n", "trial", Ending.FAILED, "exit code 3"),
        (SOLVE.replace("[1.0, 2.0, 3.0]", "'x'"), "judge", Ending.INVALID, "the judge says that it is no solution"),
        (SOLVE.replace("[1.0, 2.0, 3.0]", "[1.0, 2.5, 3.5]"), "judge", Ending.SCORED, "too good to be believed"),
    ],
)
async def test_candidates_that_do_not_get_through(
    tmp_path: Path, code: str, step: str, ending: Ending, says: str
) -> None:
    """Each is rejected at its step, with its ending in one line, and what comes after is skipped."""
    report = await gated(write_task(tmp_path, METRIC, GUARD), whole(code))
    assert (report.gated.decision, report.gated.ending) == (Decision.REJECTED, ending)
    assert says in report.gated.why
    assert "\n" not in report.gated.why
    found = states(report)
    assert found[step] is StepState.FAILED
    assert found["score"] is found["guards:plain"] is StepState.SKIPPED


async def test_guards_reject(tmp_path: Path) -> None:
    """However good the score is. A campaign stops at the first guard that fails; the report has them all."""
    second = GUARD.replace("plain", "second").replace("dreadful", "awful")
    report = await gated(write_task(tmp_path, METRIC, GUARD, second), whole(BETTER + "# dreadful awful\n"))
    assert report.gated.decision is Decision.REJECTED
    assert report.gated.why.startswith("scored: the guard plain does not pass: exit code 1")
    found = states(report)
    assert found["guards:plain"] is found["guards:second"] is StepState.FAILED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (whole("x\n", "judge.py"), "not editable"),
        ("--- a/../judge/judge.py\n+++ b/../judge/judge.py\n@@ -1 +1 @@\n-a\n+b\n", "unsafe name"),
        (b"\xff\xfe not text", "not text"),
        ("", "no change found"),
        (whole(SOLVE), "change has no effect"),
        (CUT_OFF, "line 3: the hunk has other lines than its header says; the text may be cut off"),
        (b"x" * (1 << 20) + b"x", "text too long"),
    ],
)
async def test_a_forbidden_change_needs_no_engine(tmp_path: Path, text: str | bytes, says: str) -> None:
    """It is rejected before anything is started, as invalid."""
    stage = Stage()
    stage.world.answers = False
    report = await gated(write_task(tmp_path), text, stage)
    assert (report.gated.decision, report.gated.ending) == (Decision.REJECTED, Ending.INVALID)
    assert says in report.gated.why
    assert stage.jobs == []
    assert report.witness is None


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"workspace/solve.py": "raise SystemExit(1)\n"}, "the baseline ended as failed"),
        ({"judge/judge.py": f"raise SystemExit({SECRET!r})\n"}, "judge failed"),
        ({"blastdoor.toml": "nonsense"}, "is not TOML"),
    ],
)
async def test_a_broken_task_judges_nobody(tmp_path: Path, files: dict[str, str], says: str) -> None:
    """It says nothing about the change, for or against it."""
    report = await gated(write_task(tmp_path, files=files), whole(BETTER))
    assert report.gated.decision is Decision.UNJUDGED
    assert says in report.gated.why
    assert SECRET not in report.gated.why


async def test_t86_an_engine_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it: it is waited for as long as a stage may wait, and then there is no verdict."""
    monkeypatch.setattr(gate_module, "PATIENCE_S", 0.0)
    stage = Stage()
    judge = JUDGE.replace("with judging", "import time\ntime.sleep(30)\nwith judging")

    def gone(_: object) -> object:
        stage.world.cut()
        raise ValueError

    stage.judge = gone
    report = await gated(write_task(tmp_path, METRIC, files={"judge/judge.py": judge}), whole(BETTER), stage)
    stage.world.chambers.clear()
    assert report.gated.decision is Decision.UNJUDGED
    assert "given up after" in report.gated.why


async def test_the_evidence_is_complete(tmp_path: Path) -> None:
    """Digests, trees, images, packages, posture, fingerprint, both verdicts and the ledger's head. The campaign of the
    gate is thrown away; the task has no campaign afterwards.
    """
    folder = write_task(tmp_path / "task", METRIC, GUARD)
    report = await gated(folder, whole(BETTER))
    assert report.head is not None
    assert report.witness is not None
    assert {"task", "workspace", "judge", "gold", "inputs"} <= set(report.digests)
    assert report.gated.tree not in (None, report.digests["workspace"])
    assert report.gated.fingerprint["gold"] == report.digests["gold"]
    assert [command.what for command in report.witness.commands] == ["trial", "judge", "guard plain"]
    held = {it.limit: it.held_by for it in report.witness.commands[0].limits}
    assert (held["wall"], held["cpus"]) == ("controller", "nobody")
    (image,) = report.witness.images
    assert image.installed or image.missing
    assert report.values(report.gated.baseline) == {"score": -1.0}
    assert not (folder / ".blastdoor").exists()


async def test_a_gate_that_tunes_nothing(tmp_path: Path) -> None:
    """The diff is judged as it is: no trial of it runs against the cheaper target."""
    tune = '[tune]\ntrials = 2\ncommand = ["python3", "solve.py", "quick"]\n'
    stage = Stage()
    report = await gated(write_task(tmp_path, METRIC, tune), whole(BETTER), stage)
    assert report.gated.decision is Decision.ACCEPTED
    assert stage.jobs.count(("python3", "solve.py", "quick")) <= 1  # the baseline's own


def test_changed_paths(tmp_path: Path) -> None:
    """Names that lead elsewhere are not repeated; the line is the first that changes."""
    policy = load_task(write_task(tmp_path)).policy()
    diff = b"--- a/solve.py\n+++ b/solve.py\n@@ -5,2 +5,2 @@\n a\n-b\n+c\n--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n"
    assert [(it.path, it.line) for it in changed_paths(diff, policy)] == [("solve.py", 5)]
    assert changed_paths(b"\xff", policy) == ()


@pytest.fixture
def run_gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """The command line, on the stage, with a change in a file."""

    def run(stage: Stage, code: str, *words: str | Path) -> Result:
        monkeypatch.setattr(gate_view, "open_site", lambda *_: stage.site())
        (tmp_path / "change").write_text(whole(code))
        given = ["--diff", str(tmp_path / "change"), *map(str, words)]
        return runner().invoke(every_command().commands["gate"], given, obj=Settings(), standalone_mode=False)

    return run


Run = Callable[..., Result]


@pytest.mark.parametrize(("code", "exit_code"), [(BETTER, Exit.OK), (WORSE, Exit.NOT_GOOD)])
def test_command(tmp_path: Path, run_gate: Run, code: str, exit_code: Exit) -> None:
    """Exit code, a line to read, and every document that was asked for."""
    folder = write_task(tmp_path / "task")
    forms = ("junit", "markdown", "sarif", "evidence")
    asked = [word for form in forms for word in (f"--{form}", tmp_path / form)]
    result = run_gate(Stage(), code, *asked, folder)
    assert result.return_value == exit_code, result.output
    assert all((tmp_path / form).stat().st_size > 100 for form in forms)
    word = "accepted" if exit_code is Exit.OK else "rejected"
    assert f"{word}: scored: " in result.output
    assert json.loads((tmp_path / "evidence").read_text())["decision"] == word
    assert not list(tmp_path.glob(".*"))


def test_an_engine_that_is_not_there(tmp_path: Path, run_gate: Run) -> None:
    """Not judged, and told why; it is exit code 2 here, and the documents say so."""
    stage = Stage()
    stage.world.answers = False
    result = run_gate(stage, BETTER, "--junit", tmp_path / "junit", write_task(tmp_path / "task"))
    assert result.return_value == Exit.BAD_INPUT
    assert 'errors="1"' in (tmp_path / "junit").read_text()
    assert "could not judge: the fake provider was told not to answer" in result.output


def test_keep(tmp_path: Path, run_gate: Run) -> None:
    """The ledger can be kept, proves itself, and ends where the evidence says; guards are on record. As JSON there is
    one object, and nothing else on stdout.
    """
    result = run_gate(
        Stage(), SAME, "--json", "--keep", tmp_path / "kept", write_task(tmp_path / "task", METRIC, GUARD)
    )
    with Ledger.open(tmp_path / "kept" / "ledger.sqlite3", read_only=True) as ledger:
        verified = ledger.verify()
        assert any(record.kind == "guard ended" for record in ledger.read())
    told = json.loads(result.stdout)
    assert told["format"] == "blastdoor evidence"
    assert told["ledger"] == {"seq": verified.head.seq, "hash": verified.head.hash}


def test_keep_never_overwrites(tmp_path: Path, run_gate: Run) -> None:
    """A folder with something in it is refused before anything runs."""
    assert isinstance(run_gate(Stage(), BETTER, "--keep", tmp_path, tmp_path).exception, click.UsageError)


def test_changes_that_are_long_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is kept than a change may have, but the digest is that of all of it. A device, or a program that goes on
    for ever, ends in one line, and so does a file that is not there.
    """
    (tmp_path / "long").write_bytes(b"x" * 3_000_000)
    change = read_change(str(tmp_path / "long"))
    assert (len(change.text), change.size) == ((1 << 20) + 1, 3_000_000)
    monkeypatch.setattr(gate_view, "LONGEST", 5_000_000)
    with pytest.raises(click.UsageError, match=r"has more than 4\.77MiB; no change is that long"):
        read_change("/dev/zero")
    with pytest.raises(click.UsageError, match="cannot be read"):
        read_change(str(tmp_path / "nowhere"))


def test_a_gate_that_was_killed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder, with the ledger and the change, is removed by the next gate of that user."""
    folder, temporary = write_task(tmp_path / "task"), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        with gate_view.kept_folder(None) as kept:
            (kept / "ledger.sqlite3").write_text("x")
            os.write(told, b"x")
            signal.pause()
    os.close(told)
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (left,) = temporary.glob("*gate*")
    assert (left / "ledger.sqlite3").is_file()
    assert asyncio.run(gated(folder, whole(BETTER))).gated.decision is Decision.ACCEPTED
    assert list(temporary.glob("*gate*")) == []


async def test_t82_a_change_that_is_slow_to_compare(tmp_path: Path) -> None:
    """A rewrite of many files that share no line is judged like any other; one past the budget is rejected, and never
    "could not judge": to run it again would not help.
    """
    folder = write_task(tmp_path)
    task = folder / "blastdoor.toml"
    task.write_text(task.read_text().replace('"notes.txt"]', '"notes.txt", "more/**"]'))
    (folder / "workspace/more").mkdir()
    for number in range(40):
        (folder / f"workspace/more/{number}.txt").write_text("".join(f"old{at * 7 % 997}\n" for at in range(1_000)))
    new = "".join(f"new{at * 7 % 997}\n" for at in range(1_000))
    slow = "".join(f"more/{number}.txt\n```\n{new}```\n" for number in range(40))
    report = await gated(folder, slow)
    assert report.gated.decision is Decision.ACCEPTED
    report = await gated(folder, whole("\n" * 900_000))
    assert (report.gated.decision, report.gated.ending) == (Decision.REJECTED, Ending.INVALID)
    assert "too many lines" in report.gated.why
