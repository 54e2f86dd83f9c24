"""What `make test` is told by its two stages."""

from pathlib import Path

import pytest

import run_tests


@pytest.mark.parametrize(
    ("codes", "told"), [((0, 0), 0), ((0, 5), 0), ((5, 0), 0), ((5, 5), 5), ((1, 0), 1), ((0, 1), 1), ((5, 2), 2)]
)
def test_worst_of_both(monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int], told: int) -> None:
    """A failure of either stage is told; a stage without tests is none, unless both are."""
    left = list(codes)
    monkeypatch.setattr(run_tests, "stage", lambda *_: left.pop(0))
    assert run_tests.main([]) == told


def test_own_marks_narrow_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage keeps what it leaves out, whatever the caller asks for."""
    asked: list[str] = []

    def ran(*words: str) -> int:
        asked.append(words[len(words) - 1 - words[::-1].index("-m") + 1])
        return 0

    monkeypatch.setattr(run_tests, "_pytest", ran)
    assert run_tests.main(["-m", "crash or e2e"]) == 0
    assert asked == [
        "(alone and not slurm and not (slow or fuzz)) and (crash or e2e)",
        "(not alone and not slurm and not (slow or fuzz)) and (crash or e2e)",
    ]


def test_thorough_leaves_out_slurm_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said at greater length is run where somebody asks for it."""
    asked: list[tuple[str, list[str]]] = []

    def stage(marks: str, more: tuple[str, ...], rest: list[str]) -> int:
        asked.append((marks, rest))
        return 0

    monkeypatch.setattr(run_tests, "stage", stage)
    assert run_tests.main(["--thorough", "-x"]) == 0
    assert asked == [("alone and not slurm", ["-x"]), ("not alone and not slurm", ["-x"])]


def test_slurm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rents from a cluster is run by itself, without the others."""
    asked: list[tuple[str, list[str]]] = []

    def stage(marks: str, more: tuple[str, ...], rest: list[str]) -> int:
        asked.append((marks, rest))
        return 1

    monkeypatch.setattr(run_tests, "stage", stage)
    assert run_tests.main(["--slurm", "-x"]) == 1
    assert asked == [("slurm", ["-x"])]


SUITE = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent

def test_well():
    pass

def test_first_time_only():
    (HERE / "seen").open("a").write("x")
    assert (HERE / "seen").read_text() != "x"

@pytest.mark.parametrize("number", range({broken}))
def test_broken(number):
    (HERE / f"ran{number}").open("a").write("x")
    assert False
"""


def suite(folder: Path, broken: int, within: str = "") -> int:
    (folder / within).mkdir(parents=True, exist_ok=True)
    (folder / within / "test_it.py").write_text(SUITE.replace("{broken}", str(broken)))
    return run_tests.stage("not alone", ("--rootdir", str(folder)), ["-q", "-p", "no:randomly", str(folder)])


def test_failed_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A test that passes when it is run again, alone, is named; the others are not run again."""
    assert suite(tmp_path, broken=0) == 0
    assert "PASSED ONLY WHEN RUN AGAIN: test_it.py::test_first_time_only" in capfd.readouterr().out
    assert (tmp_path / "seen").read_text() == "xx"


def test_failed_twice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What fails again fails the run."""
    assert suite(tmp_path, broken=1) == 1
    assert "PASSED ONLY" not in capfd.readouterr().out
    assert (tmp_path / "ran0").read_text() == "xx"


def test_failed_in_numbers(tmp_path: Path) -> None:
    """More than a few failures are no bad luck: nothing is run again."""
    assert suite(tmp_path, broken=run_tests.A_FEW) == 1
    assert (tmp_path / "ran0").read_text() == "x"
    assert (tmp_path / "seen").read_text() == "x"


@pytest.mark.parametrize("within", ["tests/attacks", "tests/crash"])
def test_a_hole_that_opens_now_and_then(tmp_path: Path, within: str) -> None:
    """What must hold gets no second try."""
    assert suite(tmp_path, broken=0, within=within) == 1
    assert (tmp_path / within / "seen").read_text() == "x"
