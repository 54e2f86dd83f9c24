"""What it costs to write candidates for good, one at a time and sixteen at a time, beside libgit2's own way.

libgit2 writes one file for each object and one for a branch, and syncs each with its folder. The ways take turns on one
disk, that of the working directory, because a disk that others use is faster at one time than at another.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from statistics import median

import pygit2
from pygit2.enums import ObjectType

from benchmarks.figure import Figure
from orchestrator.change import Tree
from orchestrator.git import Candidates

ROUNDS, EACH, TOGETHER = 12, 32, 16
_AT = datetime(2026, 1, 2, tzinfo=UTC)
_MAIN = "print('hello')\n" * 20


class Way:
    """One way to write, in a repository of its own, and what its rounds took."""

    def __init__(self, name: str, folder: Path, write: "Callable[[Candidates, list[str]], None]") -> None:
        self.name = name
        self.folder = folder / f"{name.replace(' ', '-')}.git"
        self._candidates = Candidates(self.folder)
        self._write = write
        self._numbers = count(1)
        self.clock: list[float] = []
        self.processor: list[float] = []
        self.gaps: list[float] = []

    def round(self) -> None:
        nodes = [f"1.{next(self._numbers)}" for _ in range(EACH)]
        used = time.process_time()
        with _ticking() as ticker:
            started = time.perf_counter()
            self._write(self._candidates, nodes)
            self.clock.append((time.perf_counter() - started) / EACH)
        self.processor.append((time.process_time() - used - ticker.used) / EACH)
        self.gaps += ticker.gaps

    @property
    def files(self) -> float:
        return sum(len(names) for _, _, names in os.walk(self.folder)) / (ROUNDS * EACH)


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".candidates-") as name:
        folder = Path(name)
        libgit2 = Way("by libgit2", folder, _by_libgit2)
        ways = [libgit2, Way("alone", folder, _alone), Way(f"{TOGETHER} together", folder, _together)]
        for _ in range(ROUNDS):
            for way in ways:
                way.round()
        return [figure for way in ways for figure in _figures(way, libgit2)]


def _figures(way: Way, base: Way) -> Iterator[Figure]:
    """Ratios are of rounds that followed one another."""
    what = f"a candidate written {way.name}"
    yield Figure(f"{what}: time", 1000 * median(way.clock), "ms")
    yield Figure(f"{what}: processor", 1000 * median(way.processor), "ms")
    yield Figure(f"{what}: another thread has its turn, p90", 1000 * sorted(way.gaps)[len(way.gaps) * 9 // 10], "ms")
    yield Figure(f"{what}: files", way.files, "")
    if way is not base:
        of = "of libgit2's"
        goal = "" if way.name == "alone" else "<= 0.5"
        clock, processor = (
            median(ours / theirs for ours, theirs in zip(one, other, strict=True))
            for one, other in ((way.clock, base.clock), (way.processor, base.processor))
        )
        yield Figure(f"{what}: time, {of}", clock, "x", goal)
        yield Figure(f"{what}: processor, {of}", processor, "x", goal)


def _tree(node: str) -> Tree:
    return Tree.of({"main.py": _MAIN, "params.json": f'{{"x": "{node}"}}\n'})


def _by_libgit2(candidates: Candidates, nodes: list[str]) -> None:
    """Syncing each file is an option of libgit2's, which is on for the whole process."""
    repository = candidates._repository
    for node in nodes:
        builder = repository.TreeBuilder()
        for path, file in _tree(node).items():
            builder.insert(path, repository.odb.write(ObjectType.BLOB, file.data), 0o100644)
        who = pygit2.Signature("a", "a@localhost", int(_AT.timestamp()), 0)
        repository.references.create(
            f"refs/heads/{node}", repository.create_commit(None, who, who, node, builder.write(), [])
        )


def _alone(candidates: Candidates, nodes: list[str]) -> None:
    for node in nodes:
        candidates.write(node, _tree(node), None, node, _AT)


def _together(candidates: Candidates, nodes: list[str]) -> None:
    for start in range(0, len(nodes), TOGETHER):
        batch = [candidates.prepare(node, _tree(node), None, node, _AT) for node in nodes[start : start + TOGETHER]]
        for done in [candidates.submit(candidate) for candidate in batch]:
            done.result()


@dataclass
class Ticker:
    """A thread that wants the interpreter every half millisecond: how long it waited for its turn, each time, and what
    it used of a processor itself.
    """

    gaps: list[float] = field(default_factory=list)
    used: float = 0.0

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            before = time.perf_counter()
            time.sleep(0.0005)
            self.gaps.append(time.perf_counter() - before)
        self.used = time.thread_time()


@contextmanager
def _ticking() -> Iterator[Ticker]:
    ticker, over = Ticker(), threading.Event()
    thread = threading.Thread(target=ticker.run, args=[over])
    thread.start()
    try:
        yield ticker
    finally:
        over.set()
        thread.join()
