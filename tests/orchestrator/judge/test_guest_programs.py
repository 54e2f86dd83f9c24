"""Programs that an evaluator starts: what goes along to the candidate's chamber, and what may come back."""

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from orchestrator.change import Tree
from orchestrator.judge.helpers import HARBOR, JUDGE_HELPERS, imported_by
from tests.orchestrator.judge.guests import fresh_guests


@pytest.fixture
def guest() -> Iterator[ModuleType]:
    with fresh_guests():
        yield importlib.import_module("blastdoor_carry")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Any]:
    """Scratch with a working folder, our own folder and the program in it; beside it the judge's own files."""
    for name in ("scratch/work/sub", "scratch/ours", "scratch/there", "judge"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "scratch/work/in.txt").write_text("40")
    (tmp_path / "scratch/alone.txt").write_text("alone")
    (tmp_path / "scratch/ours/door").write_text("secret")
    (tmp_path / "scratch/there/prog.rs").write_text("fn main() {}")
    (tmp_path / "judge/gold.txt").write_text("42")
    (tmp_path / "judge/named.txt").write_text("named")
    scratch = tmp_path / "scratch"
    return {"scratch": scratch, "kept": scratch / "ours", "program": scratch / "there/prog.rs"}


def carried(guest: ModuleType, places: dict[str, Any], cwd: str, *argv: str) -> Any:
    at: Path = (places["scratch"] / cwd).resolve()
    return guest.Carried(["tool", *argv], at, {name: str(it) for name, it in places.items()})


def test_the_working_folder_goes_along(
    guest: ModuleType, places: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what the command line names, and without our own folder; not where it is too much for one call."""
    found = carried(guest, places, "work", str(places["scratch"] / "alone.txt"), "--x=sub/new.txt").files()
    assert sorted(Path(name).name for name in found) == ["alone.txt", "in.txt"]
    assert sorted(Path(name).name for name in carried(guest, places, ".").files()) == ["alone.txt", "in.txt"]
    monkeypatch.setattr(guest, "MAX_BYTES", 1)
    with pytest.raises(ValueError, match="MiB in its working folder"):
        carried(guest, places, "work").files()


def test_the_judges_own_folder_stays(guest: ModuleType, places: dict[str, Any]) -> None:
    """Only what the command line names goes along of it, and nothing comes back there."""
    call = carried(guest, places, "../judge", "named.txt")
    assert [Path(name).name for name in call.files()] == ["named.txt"]
    named = places["scratch"].parent / "judge/named.txt"
    call.bring_back({str(named): b"other", str(named.with_name("gold.txt")): b"other"})
    assert (named.read_text(), named.with_name("gold.txt").read_text()) == ("named", "42")


HOSTILE = [
    *("work/../../judge/gold.txt", "work/numpy.py", "work/x.so", "work/x.PTH", "work/in.txt", "work/cache.pkl"),
    *("work/x.joblib", "work/x.npy", "work/pytest.ini", "work/conftest.py", "work/pyproject.toml", "work/run.sh"),
    *("work/.profile", ".local/lib/x", "ours/tools/cargo", "there/prog.rs", "other/x.txt", "work/link/x.txt"),
    *("work/file-link", "work/nul\0", "work//double.txt"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_must_not_come_back(guest: ModuleType, places: dict[str, Any], name: str) -> None:
    """Nothing outside of where the call was, nothing that a Python would load or take for settings, nothing over a
    link, and nothing over a file of the evaluator's.
    """
    scratch = places["scratch"].resolve()
    (scratch / "work/link").symlink_to(scratch.parent / "judge")
    (scratch / "work/file-link").symlink_to(scratch.parent / "judge/gold.txt")
    before = {path: path.read_bytes() for path in scratch.parent.rglob("*") if path.is_file()}
    call = carried(guest, places, "." if name.startswith((".", "ours", "there")) else "work")
    call.bring_back({f"{scratch}/{name}": b"evil"})
    assert {path: path.read_bytes() for path in scratch.parent.rglob("*") if path.is_file()} == before


def test_what_comes_back(guest: ModuleType, places: dict[str, Any]) -> None:
    """Files as they are, and nothing that is none; one that could be started is a stand-in, which is not sent on."""
    work = (places["scratch"] / "work").resolve()
    call = carried(guest, places, "work")
    call.bring_back({7: b"x", f"{work}/a": "text", f"{work}/b": 3.0})
    assert sorted(it.name for it in work.iterdir()) == ["in.txt", "sub"]
    call.bring_back({f"{work}/out/new.txt": b"42", f"{work}/built": None})
    assert (work / "out/new.txt").read_bytes() == b"42"
    assert (work / "out/new.txt").stat().st_mode & 0o111 == 0
    assert "carry(" in (work / "built").read_text()
    assert f"{work}/built" not in carried(guest, places, "work").files()


def test_answers_of_the_evaluator_stay(guest: ModuleType, places: dict[str, Any]) -> None:
    """A candidate does not write what it is compared with, even where the command line names it as an input."""
    work = (places["scratch"] / "work").resolve()
    (work / "expected.json").write_text("42")
    call = carried(guest, places, "work", "in.txt", "expected.json")
    evil = {f"{work}/expected.json": b"0", f"{work}/in.txt": None, f"{work}/new.json": b"0"}
    assert call.bring_back(evil) == ["expected.json", "in.txt"]
    assert [(work / name).read_text() for name in ("expected.json", "in.txt", "new.json")] == ["42", "40", "0"]


@pytest.mark.parametrize("words", [["-o", "out.txt"], ["--output=out.txt"]])
def test_an_output_that_the_command_line_names(guest: ModuleType, places: dict[str, Any], words: list[str]) -> None:
    work = (places["scratch"] / "work").resolve()
    (work / "out.txt").write_text("before")
    carried(guest, places, "work", *words).bring_back({f"{work}/out.txt": b"after"})
    assert (work / "out.txt").read_text() == "after"


def test_what_a_program_may_write_again(guest: ModuleType, places: dict[str, Any]) -> None:
    """An empty file that it was named, and what it left itself; not once the evaluator has written it."""
    work = (places["scratch"] / "work").resolve()
    (work / "made.txt").touch()
    assert not carried(guest, places, "work", "made.txt").bring_back({f"{work}/made.txt": b"1", f"{work}/b": b"1"})
    assert not carried(guest, places, "work").bring_back({f"{work}/made.txt": b"2", f"{work}/b": None})
    assert (work / "made.txt").read_text() == "2"
    (work / "made.txt").write_text("the evaluator's")
    assert carried(guest, places, "work").bring_back({f"{work}/made.txt": b"3"}) == ["made.txt"]


@pytest.mark.parametrize("answer", [None, True, {"code": 0}, {"code": "0", "stdout": b"", "stderr": b"", "files": {}}])
def test_a_candidate_that_does_not_say_how_it_ended(guest: ModuleType, answer: object) -> None:
    """It is not waited for without end."""
    asked: list[str] = []

    def ask(function: str, *_: object) -> object:
        asked.append(function)
        return answer

    assert guest.how_it_ended(ask, {})["code"] == 125
    assert len(asked) <= 30


NO_END = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD)


@pytest.mark.parametrize("code", [0, 3, 256, 10**30, -(10**30), *(-number for number in range(1, 66))])
def test_t102_a_stand_in_ends_whatever_code_it_repeats(guest: ModuleType, tmp_path: Path, code: int) -> None:
    """No code of a candidate's stops it, or lets it live; one that ended by a signal is still seen to have done so."""
    (tmp_path / "carrying.json").write_text(
        json.dumps({"scratch": "/nowhere", "kept": str(tmp_path), "program": "/nowhere/x", "env": {}})
    )
    answers = {"start": 1, "wait": {"code": code, "stdout": b"", "stderr": b"", "files": {}}}
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  it lives as long as the child
        os._exit(guest.run_elsewhere(lambda function, *_: answers[function], ["tool"], tmp_path))
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not os.WIFSTOPPED(status)
    ends = -code in signal.valid_signals() and -code not in (*NO_END, signal.SIGURG, signal.SIGWINCH)
    assert os.waitstatus_to_exitcode(status) == (code if ends else code & 0xFF)


def test_runs(guest: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run gets its files and input, and gives exit code, output and what changed; a given-up one is ended."""
    programs = importlib.import_module("blastdoor_programs")
    program, work = tmp_path / "prog.sh", tmp_path / "work"
    program.write_text('cat "$1" - > out.txt; echo told; touch built; chmod +x built; exit 3')
    runs = programs.Runs(program)
    assert runs.program() == program.read_bytes()
    request = {
        "argv": ["sh", "{program}", "in.txt"],
        "cwd": str(work),
        "env": {"BLASTDOOR_OUT": "no", "A": "b"},
        "stdin": b"2",
        "files": {f"{work}/in.txt": b"40"},
        "program": str(tmp_path / "there/prog.sh"),
        "roots": [str(work)],
        "named": [],
    }
    sleeping = runs.start({**request, "argv": ["sh", "-c", "echo $$ > pid; exec sleep 600"]})
    while not (work / "pid").is_file() or not (pid := (work / "pid").read_text().strip()):
        assert runs.wait(sleeping, 0.01) is None
    (work / "pid").unlink()
    monkeypatch.setattr(programs, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 60))
    number = runs.start(request)
    while (ended := runs.wait(number, 0.5)) is None:
        pass
    assert ended == {
        "code": 3,
        "stdout": b"told\n",
        "stderr": b"",
        "files": {f"{work}/out.txt": b"402", f"{work}/built": None},
    }
    assert (tmp_path / "there/prog.sh").read_bytes() == program.read_bytes()
    assert not Path("/proc", pid).exists()
    missing = runs.start({**request, "argv": ["no-such-tool"]})
    assert runs.wait(missing, 0.5)["code"] == 127


def test_modules_travel_with_a_judge_that_imports_them() -> None:
    """In data mode, too; a judge of one's own gets none of them."""
    assert imported_by(Tree.of({"judge.py": b"from blastdoor_judge import publish\n"})) == ()
    assert imported_by(Tree.of({"judge.py": b"from blastdoor_openevolve import judge\n"})) == JUDGE_HELPERS
    assert imported_by(Tree.of({"judge.py": b"import os\nfrom blastdoor_harbor import judge\n"})) == (HARBOR,)
    assert imported_by(Tree.of({"notes.txt": b"from blastdoor_openevolve import judge\n"})) == ()
