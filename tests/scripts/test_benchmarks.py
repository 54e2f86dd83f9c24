"""`make bench` finds all that it measures with."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_benchmarks_are_found() -> None:
    """Its own process has no path of the tests."""
    words = [sys.executable, "-m", "benchmarks", "--help"]
    ran = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--exchanges" in ran.stdout
