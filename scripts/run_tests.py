"""Runs the tests in two stages: those that must have the machine alone, then all others beside each other.

usage: run-tests [--thorough] [--slurm | --with-slurm] [ARGUMENTS OF PYTEST...]
exit code: 0 when every test passed, 5 when there was none, else pytest's; 1 where an engine is not left as it was

Left out are tests that rent from a Slurm cluster, which mostly wait: --slurm runs them instead of all others,
--with-slurm beside them. Left out without --thorough are those that say the same at greater length: long random runs,
every hardening flag switched off in turn, and what says more of an extra that nobody touched. With it, each test of
random input draws three times as many.
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
INSIDE = "TESTS_INSIDE"  # another run of this script, which looks at the engine itself
THOROUGH, SLURM, WITH_SLURM = "--thorough", "--slurm", "--with-slurm"
PASSED, FAILED, NOTHING_COLLECTED = 0, 1, 5
LISTS = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))  # what an engine may be left with
GONE_S = 60.0  # wardens of killed owners are at work


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
    began, found = time.monotonic(), engine_holds()
    with tempfile.NamedTemporaryFile(prefix="blastdoor-times-") as times:
        os.environ[TIMES] = times.name
        code = run(arguments)
        print(*summary(Path(times.name), (time.monotonic() - began) / 60), sep="\n")
    return code if INSIDE in os.environ or is_left_as(found) else worst([code, FAILED])


def run(arguments: list[str]) -> int:
    rest = [word for word in arguments if word not in (THOROUGH, SLURM, WITH_SLURM)]
    if THOROUGH in arguments:
        rest, length = ["--hypothesis-profile", "thorough", *rest], ""
    else:
        rest, length = ["--touched", *rest], f" and {AT_LENGTH}"
    if SLURM in arguments:
        return stage("slurm", (), rest)
    first, last = ((f"{marks}{length}", more, rest) for marks, more in STAGES)
    code = stage(*first)
    if WITH_SLURM not in arguments:
        return worst([code, stage(*last)])
    with tempfile.TemporaryFile() as log:
        words = [sys.executable, __file__, SLURM, *(word for word in arguments if word != WITH_SLURM)]
        beside = subprocess.Popen(words, env=os.environ | {INSIDE: "1"}, stdout=log, stderr=subprocess.STDOUT)
        codes = [code, stage(*last), beside.wait()]
        log.seek(0)
        print(log.read().decode(errors="replace"))
    return worst(codes)


def engine_holds() -> set[str]:
    """Names of containers, volumes and networks; none without an engine."""
    if not os.environ.get("DOCKER_HOST"):
        return set()
    told = [
        subprocess.run(["docker", *words, "--quiet"], capture_output=True, text=True, check=True) for words in LISTS
    ]
    return {f"{words[0]} {name}" for words, one in zip(LISTS, told, strict=True) for name in one.stdout.split()}


def is_left_as(found: set[str]) -> bool:
    """Whether all that was started in the engine is gone, or goes in a moment."""
    until = time.monotonic() + GONE_S
    while (left := engine_holds() - found) and time.monotonic() < until:
        time.sleep(1)
    if left:
        print(f"the engine is not left as it was found: {', '.join(sorted(left))}")
    return not left


def worst(codes: list[int]) -> int:
    """The first that is bad; that there was nothing to do only where all say so."""
    return next((code for code in codes if code not in (PASSED, NOTHING_COLLECTED)), min(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
