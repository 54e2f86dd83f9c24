"""Runs the tests in two stages: those that must have the engine alone, then all others beside each other.

usage: run-tests [ARGUMENTS OF PYTEST...]    exit code: 0 when every test passed, 5 when there was none, else pytest's

Tests that rent from a Slurm cluster are left out: `make slurm` runs them.
"""

import os
import subprocess
import sys

# Tests wait for engines and deadlines most of the time: more of them than processors fit beside each other.
WORKERS = 2 * (os.cpu_count() or 1)
STAGES = (
    ("alone and not slurm", ()),
    ("not alone and not slurm", ("--numprocesses", str(WORKERS), "--dist", "worksteal")),
)
PASSED, NOTHING_COLLECTED = 0, 5


def stage(marks: str, more: tuple[str, ...], arguments: list[str]) -> int:
    chosen = f"({marks}) and ({given})" if (given := _marks(arguments)) else marks
    return subprocess.run([sys.executable, "-m", "pytest", *more, *arguments, "-m", chosen], check=False).returncode


def _marks(arguments: list[str]) -> str:
    """What the caller said with -m: pytest takes the last one only."""
    return next((arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word == "-m"), "")


def main(arguments: list[str]) -> int:
    codes = [stage(marks, more, arguments) for marks, more in STAGES]
    bad = [code for code in codes if code not in (PASSED, NOTHING_COLLECTED)]
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
