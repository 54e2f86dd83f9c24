"""What `make test` is told by its two stages."""

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
    asked: list[list[str]] = []

    class Ended:
        returncode = 0

    def run(words: list[str], check: bool) -> Ended:
        asked.append(words)
        return Ended()

    monkeypatch.setattr("run_tests.subprocess.run", run)
    assert run_tests.main(["-m", "crash or e2e"]) == 0
    assert [words[-1] for words in asked] == [
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
