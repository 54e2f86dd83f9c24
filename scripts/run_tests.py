"""Runs the tests in two stages: those that must have the machine alone, then all others beside each other.

usage: run-tests [--thorough] [--slurm] [ARGUMENTS OF PYTEST...]
exit code: 0 when every test passed, 5 when there was none, else pytest's

Left out are tests that rent from a Slurm cluster, which --slurm runs instead of all others, and without --thorough
those that say the same at greater length: long random runs, every hardening flag switched off in turn, and what says
more of an extra that nobody touched. With it, each test of random input draws three times as many.
No test gets a second try: one that fails now and then is wrong, or has found something.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite_times import TIMES, summary

TESTS = Path(__file__).resolve().parents[1] / "tests"
# More than processors: tests wait for engines, providers and processes most of their time.
WORKERS = 2 * (os.cpu_count() or 1)
STAGES = (
    ("alone and not slurm", ()),
    ("not alone and not slurm", ("--numprocesses", str(WORKERS), "--dist", "worksteal")),
)
AT_LENGTH = "not (slow or fuzz)"
THOROUGH, SLURM = "--thorough", "--slurm"
PASSED, NOTHING_COLLECTED = 0, 5


def stage(marks: str, more: tuple[str, ...], arguments: list[str]) -> int:
    """What pytest exits with."""
    chosen = f"({marks}) and ({given})" if (given := _marks(arguments)) else marks
    if marks.startswith("alone") and not any(Path(word.partition("::")[0]).exists() for word in arguments):
        more = (*more, *files_with_alone())
    return _pytest(*more, *arguments, "-m", chosen)


def files_with_alone() -> list[str]:
    """The few that have such a test: to collect all others takes longer than some of the tests."""
    return sorted(str(path) for path in TESTS.rglob("test_*.py") if "mark.alone" in path.read_text())


def _pytest(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


def _marks(arguments: list[str]) -> str:
    """What the caller said with -m: pytest takes the last one only."""
    return next((arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word == "-m"), "")


def main(arguments: list[str]) -> int:
    """Ends with what the tests took."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="blastdoor-times-") as times:
        os.environ[TIMES] = times.name
        code = run(arguments)
        print(*summary(Path(times.name), (time.monotonic() - began) / 60), sep="\n")
    return code


def run(arguments: list[str]) -> int:
    rest = [word for word in arguments if word not in (THOROUGH, SLURM)]
    if SLURM in arguments:
        return stage("slurm", (), rest if THOROUGH in arguments else ["--touched", *rest])
    if THOROUGH in arguments:
        rest = ["--hypothesis-profile", "thorough", *rest]
        codes = [stage(marks, more, rest) for marks, more in STAGES]
    else:
        codes = [stage(f"{marks} and {AT_LENGTH}", more, ["--touched", *rest]) for marks, more in STAGES]
    bad = [code for code in codes if code not in (PASSED, NOTHING_COLLECTED)]
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
