"""Runs the tests in two stages: those that must have the machine alone, then all others beside each other.

usage: run-tests [--thorough | --slurm] [ARGUMENTS OF PYTEST...]
exit code: 0 when every test passed, 5 when there was none, else pytest's

Left out are tests that rent from a Slurm cluster, which --slurm runs instead of all others, and without --thorough
those that say the same at greater length: long random runs, and every hardening flag switched off in turn.

A few tests that failed are run once more, alone, and named at the end: many have real deadlines, which a machine that
stands still for a moment breaks. A test that fails twice, or more than a few that fail at all, fail the run; so does
one of the attacks and of the killed campaigns at once, because a hole that opens now and then is a hole.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Tests wait for engines and deadlines much of the time, so there are more than processors.
WORKERS = 2 + (os.cpu_count() or 1)
STAGES = (
    ("alone and not slurm", ()),
    ("not alone and not slurm", ("--numprocesses", str(WORKERS), "--dist", "worksteal")),
)
AT_LENGTH = "not (slow or fuzz)"
THOROUGH, SLURM = "--thorough", "--slurm"
PASSED, FAILED, NOTHING_COLLECTED = 0, 1, 5
A_FEW = 5
MUST_HOLD = ("tests/attacks/", "tests/crash/")


def stage(marks: str, more: tuple[str, ...], arguments: list[str]) -> int:
    """What pytest exits with; a few that failed get another try."""
    chosen = f"({marks}) and ({given})" if (given := _marks(arguments)) else marks
    with tempfile.TemporaryDirectory() as remembered:
        asked = [*arguments, "-m", chosen, "-o", f"cache_dir={remembered}"]
        code = _pytest(*more, *asked)
        failed = _failed(Path(remembered))
        if code != FAILED or not 0 < len(failed) <= A_FEW or any(test.startswith(MUST_HOLD) for test in failed):
            return code
        print(f"failed, and run once more, alone: {', '.join(failed)}", flush=True)
        code = _pytest("--last-failed", "--last-failed-no-failures", "none", *asked)
        if code == PASSED:
            print(f"PASSED ONLY WHEN RUN AGAIN: {', '.join(failed)}: see above why they failed", flush=True)
        return code


def _pytest(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


def _failed(remembered: Path) -> list[str]:
    """The tests that pytest's own cache says failed in the run before."""
    path = remembered / "v" / "cache" / "lastfailed"
    return list(json.loads(path.read_text())) if path.exists() else []


def _marks(arguments: list[str]) -> str:
    """What the caller said with -m: pytest takes the last one only."""
    return next((arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word == "-m"), "")


def main(arguments: list[str]) -> int:
    rest = [word for word in arguments if word not in (THOROUGH, SLURM)]
    if SLURM in arguments:
        return stage("slurm", (), rest)
    thorough = THOROUGH in arguments
    codes = [stage(marks if thorough else f"{marks} and {AT_LENGTH}", more, rest) for marks, more in STAGES]
    bad = [code for code in codes if code not in (PASSED, NOTHING_COLLECTED)]
    return bad[0] if bad else min(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
