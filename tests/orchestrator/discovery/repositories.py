"""Small repositories written for these tests, and a place to run them that is no chamber: they are our own."""

import asyncio
import importlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.repository import Repository
from orchestrator.importing.source import Source
from orchestrator.judge.helpers import GUEST
from sandbox import Bundle, Ending, Job, Limits, Outcome, Usage

# Linear in its words: questions that are made of others are long, and one that takes a second is waited for.
WORDS = '''"""Small things with words."""

LIMIT = 64


class Counter:
    def __init__(self, words):
        self.counts = {}
        for word in words:
            self.counts[word] = self.counts.get(word, 0) + 1

    def count(self, word):
        return self.counts.get(word, 0)


def unique(words):
    found = {}
    for word in words:
        found[word] = True
    return list(found)


def top(words, most=3):
    if most < 0:
        raise ValueError("most")
    counter = Counter(words)
    return sorted(unique(words), key=lambda it: (-counter.count(it), it))[:most]


def shuffle(words):
    words.reverse()


def counter(words):
    return Counter(words)
'''
TESTS = """
import unittest

import words


class Tests(unittest.TestCase):
    def test_top(self):
        for size in range(1, 20):
            given = [f"w{i % (size + 1)}" for i in range(3 * size)]
            self.assertLessEqual(len(words.top(given)), 3)
            words.shuffle(list(given))
            words.counter(given).count("w1")
        self.assertEqual(words.top(["b", "a", "b"], most=1), ["b"])

    def test_errors(self):
        with self.assertRaises(ValueError):
            words.top([], most=-1)
"""
BROKEN = """
import unittest


class Broken(unittest.TestCase):
    def test_never(self):
        self.fail("as it is")
"""
UNITTEST = {"words.py": WORDS, "tests/__init__.py": "", "tests/test_words.py": TESTS}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def repository(folder: Path, files: dict[str, str]) -> Repository:
    return Repository.of(Source.of(write(folder, files)))


def decoded(data: bytes) -> Any:
    """Values as a judge reads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GUEST))
        return importlib.import_module("blastdoor_kinds").decode_exact(data)


def encoded_calls(calls: list[Any]) -> bytes:
    """Calls as a guest records them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(GUEST))
        exact = importlib.import_module("blastdoor_kinds").encode_exact
        data: bytes = importlib.import_module("blastdoor_values").encode([exact(it) for it in calls])
        return data


def _told(job: Job, bundle: Bundle) -> list[str]:
    """What is run: in the command itself, or in the plan of a guest."""
    return [*job.command, bundle.files.get(".blastdoor/plan.json", b"").decode()]


def laboratory(repository: Repository, wall_s: float = 300) -> Laboratory:
    """Runs jobs as processes of this machine."""

    def run(job: Job, bundle: Bundle) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, "src"), Path(folder, "out")
            out.mkdir()
            for name, data in bundle.files.items():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                (source / name).write_bytes(data)
            path = job.env["PYTHONPATH"].replace("/work/src", str(source))
            env = {**os.environ, **job.env, "PYTHONPATH": path, "BLASTDOOR_OUT": str(out), "TMPDIR": folder}
            env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            # Without the packages of this machine a Python begins in half the time; only pytest's own tests need them.
            python = [sys.executable, *([] if "pytest" in "".join(_told(job, bundle)) else ["-S"])]
            words = [one for it in job.command for one in (python if it == "python3" else [it])]
            ended = subprocess.run(words, cwd=source, env=env, capture_output=True, check=False, timeout=300)
            outputs = {it.name: it.read_bytes() for it in out.iterdir()}
        ending = Ending.FAILED if ended.returncode else Ending.COMPLETED
        return Outcome(ending, ended.returncode, outputs=outputs, log_tail=ended.stderr, usage=Usage(run_s=0.1))

    async def running(job: Job, bundle: Bundle) -> Outcome:
        return await asyncio.to_thread(run, job, bundle)

    return Laboratory(running, "none", repository.files, repository.roots, Limits(wall=wall_s))
