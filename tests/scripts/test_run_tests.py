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
    assert run_tests.run([]) == told


def test_own_marks_narrow_the_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage keeps what it leaves out, whatever the caller asks for."""
    asked: list[str] = []

    def ran(*words: str) -> int:
        asked.append(words[len(words) - 1 - words[::-1].index("-m") + 1])
        return 0

    monkeypatch.setattr(run_tests, "_pytest", ran)
    assert run_tests.run(["-m", "crash or e2e"]) == 0
    assert asked == [
        "(alone and not slurm and not (slow or fuzz)) and (crash or e2e)",
        "(not alone and not slurm and not (slow or fuzz)) and (crash or e2e)",
    ]


def test_tests_that_run_alone_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files that have one are collected for them, unless the caller names files."""
    asked: list[tuple[str, ...]] = []

    def ran(*words: str) -> int:
        asked.append(words)
        return 0

    monkeypatch.setattr(run_tests, "_pytest", ran)
    assert run_tests.run(["-x"]) == run_tests.run([__file__]) == 0
    alone, others, *named = asked
    assert {Path(word).name for word in alone if word.endswith(".py")} >= {"test_command_line.py", "test_speedup.py"}
    assert not [word for words in (others, *named) for word in words if word.endswith(".py") and word != __file__]


def test_thorough_leaves_out_slurm_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said at greater length is run where somebody asks for it, and draws more."""
    asked: list[tuple[str, list[str]]] = []

    def stage(marks: str, more: tuple[str, ...], rest: list[str]) -> int:
        asked.append((marks, rest))
        return 0

    monkeypatch.setattr(run_tests, "stage", stage)
    assert run_tests.run(["--thorough", "-x"]) == 0
    rest = ["--hypothesis-profile", "thorough", "-x"]
    assert asked == [("alone and not slurm", rest), ("not alone and not slurm", rest)]


def test_slurm_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It runs in a process of its own, beside those that are not alone; its failure tells."""
    asked: list[str] = []

    def ran(marks: str, *_: object) -> int:
        asked.append(marks)
        return 0

    other = tmp_path / "other.py"
    other.write_text("import os, sys\nprint(sys.argv[1:], os.environ['TESTS_INSIDE'])\nsys.exit(3)")
    monkeypatch.setattr(run_tests, "__file__", str(other))
    monkeypatch.setattr(run_tests, "stage", ran)
    assert run_tests.run(["--with-slurm", "-x"]) == 3
    assert [marks.partition(" and")[0] for marks in asked] == ["alone", "not alone"]
    assert "['--slurm', '-x'] 1" in capfd.readouterr().out


def test_an_engine_is_left_as_it_was_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is left in the end is named, and fails the run; what goes in a moment does not."""
    left = ["ps b"]
    monkeypatch.setattr("time.sleep", lambda seconds: left.pop())
    monkeypatch.setattr(run_tests, "engine_holds", lambda: {"ps a", *left})
    assert run_tests.is_left_as({"ps a"})
    monkeypatch.setattr(run_tests, "GONE_S", 0.0)
    left += ["ps b", "volume c"]
    assert not run_tests.is_left_as({"ps a"})
    assert capsys.readouterr().out == "the engine is not left as it was found: ps b, volume c\n"


def test_slurm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rents from a cluster is run by itself, without the others."""
    asked: list[tuple[str, list[str]]] = []

    def stage(marks: str, more: tuple[str, ...], rest: list[str]) -> int:
        asked.append((marks, rest))
        return 1

    monkeypatch.setattr(run_tests, "stage", stage)
    assert run_tests.run(["--slurm", "-x"]) == 1
    assert run_tests.run(["--slurm", "--thorough"]) == 1
    assert asked == [("slurm", ["--touched", "-x"]), ("slurm", ["--hypothesis-profile", "thorough"])]


SUITE = """
import pathlib

def test_first_time_only():
    seen = pathlib.Path(__file__).with_name("seen")
    seen.open("a").write("x")
    assert seen.read_text() != "x"
"""


def test_no_second_try(tmp_path: Path) -> None:
    """A test that failed fails the run, and is not run again."""
    (tmp_path / "test_it.py").write_text(SUITE)
    assert run_tests.stage("not alone", ("--rootdir", str(tmp_path)), ["-q", str(tmp_path)]) == 1
    assert (tmp_path / "seen").read_text() == "x"
