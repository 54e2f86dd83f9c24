"""A campaign at five attempts a second while viewers look on: what the server takes, and whether it slows the campaign.

The processor time of an attempt varies by a tenth from one moment to the next. So viewers that draw nothing come and go
every two seconds. Each four blocks, with viewers, without, without and with, or the other way round, are compared with
one another: what drifts touches both halves alike. A browser on the same processors takes its share of them, wherever
the server is: its blocks say nothing about the server.
"""

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.chance import interval, resampled
from benchmarks.figure import Figure
from benchmarks.served import Served

VIEWERS = 5
DRAWN, DRAWN_S = 4, 10.0
FOURS, BLOCK_S = 32, 2.0
# After viewers came or went: what that takes is no part of a block.
SETTLED_S, DRAWN_SETTLED_S = 0.3, 2.0

Open = Callable[[str], AbstractContextManager[tuple[Page, float]]]


@dataclass(frozen=True)
class Block:
    """`used` is the server's processor time in it."""

    begun: float
    ended: float
    used: float

    @property
    def took(self) -> float:
        return self.ended - self.begun


def figures(open_page: Open, folder: Path) -> list[Figure]:
    folder.mkdir()
    # More attempts than it can make: it must not be over before we are.
    campaign = subprocess.Popen([sys.executable, "-m", "benchmarks.paced_campaign", str(folder), "1000000"])
    try:
        while not (folder / "pace.txt").exists() or len(_paced(folder)) < 200:
            time.sleep(0.5)
        served = Served(folder)
        try:
            drawn, seen = _drawn(open_page, served)
            looked = turns(FOURS)
            bare = [_block(served, viewers) for viewers in looked]
        finally:
            most = served.most_mb
            served.close()
    finally:
        campaign.terminate()
        campaign.wait(60)
    lines = _paced(folder)
    written = {int(line[0]): line[1] for line in lines}
    delays = [(at / 1000 - written[seq]) * 1000 for seq, at in seen if seq in written]
    before, rest = (_cost(lines, drawn[at::2]) for at in (0, 1))
    ratios = ratios_of([_cost(lines, [block]) for block in bare], looked)
    low, high = interval(lambda rng: statistics.median(resampled(ratios, rng)))
    watched = [block for block, viewers in zip(bare, looked, strict=True) if viewers]
    return [
        Figure(f"attempts a second beside {VIEWERS} viewers that draw nothing", _rate(lines, watched), "/s"),
        Figure(
            f"update on the screen after the event is on disk, median of {len(delays)}",
            statistics.median(delays),
            "ms",
            "<= 300",
        ),
        Figure("the same, 95 of 100", statistics.quantiles(delays, n=20)[-1], "ms"),
        Figure(f"memory of the server at most, {VIEWERS} viewers", most, "MB", "<= 150"),
        Figure(f"processor of the server, {VIEWERS} viewers in a browser", _share(drawn[::2]), "% of a core", "<= 2"),
        Figure(f"processor of the server, {VIEWERS} that draw nothing", _share(watched), "% of a core", "<= 2"),
        Figure("processor of the campaign, with viewers in a browser / without", before / rest, "x"),
        Figure(
            f"the same, with viewers that draw nothing, median of {len(ratios)}",
            statistics.median(ratios),
            "x",
            "<= 1.01",
        ),
        Figure("the same, lower end of its 95 % interval", low, "x"),
        Figure("the same, upper end of its 95 % interval", high, "x"),
    ]


def turns(fours: int) -> list[bool]:
    """Whether viewers look on, block by block."""
    return [looked ^ bool(four % 2) for four in range(fours) for looked in (True, False, False, True)]


def ratios_of(costs: Sequence[float], looked: Sequence[bool]) -> list[float]:
    """With viewers to without, for each four blocks."""
    both = list(zip(costs, looked, strict=True))
    fours = [both[at : at + 4] for at in range(0, len(both), 4)]
    return [sum(cost for cost, it in four if it) / sum(cost for cost, it in four if not it) for four in fours]


def _drawn(open_page: Open, served: Served) -> tuple[list[Block], list[Any]]:
    """Blocks with pages in a browser and without, in turn, and what the first page showed when."""
    blocks, seen = [], []  # type: list[Block], list[Any]
    for number in range(DRAWN):
        with contextlib.ExitStack() as stack:
            viewers = VIEWERS if number % 2 == 0 else 0
            pages = [stack.enter_context(open_page(served.address))[0] for _ in range(viewers)]
            for page in pages[:1]:
                page.evaluate("bench.follow()")
            time.sleep(DRAWN_SETTLED_S)
            blocks.append(_waited(served, DRAWN_S))
            for page in pages[:1]:
                seen += page.evaluate("seenAt")
    return blocks, seen


def _block(served: Served, viewers: bool) -> Block:
    with contextlib.ExitStack() as stack:
        for _ in range(VIEWERS if viewers else 0):
            stack.enter_context(served.stream())
        time.sleep(SETTLED_S)
        return _waited(served, BLOCK_S)


def _waited(served: Served, seconds: float) -> Block:
    begun, used = time.time(), served.cpu_s()
    time.sleep(seconds)
    return Block(begun, time.time(), served.cpu_s() - used)


def _share(blocks: Sequence[Block]) -> float:
    """All of them together: the kernel counts in hundredths of a second."""
    return sum(block.used for block in blocks) / sum(block.took for block in blocks) * 100


def _paced(folder: Path) -> list[list[float]]:
    """Whole lines of what the campaign wrote down."""
    text = (folder / "pace.txt").read_text()
    return [[float(word) for word in line.split()] for line in text[: text.rfind("\n") + 1].splitlines()]


def _within(lines: Sequence[Sequence[float]], blocks: Sequence[Block]) -> Iterator[list[Sequence[float]]]:
    return ([line for line in lines if block.begun <= line[1] <= block.ended] for block in blocks)


def _rate(lines: Sequence[Sequence[float]], blocks: Sequence[Block]) -> float:
    ended = sum(bool(line[3]) for found in _within(lines, blocks) for line in found)
    return ended / sum(block.took for block in blocks)


def _cost(lines: Sequence[Sequence[float]], blocks: Sequence[Block]) -> float:
    """Seconds of the campaign's processor time for each event: an attempt is ten, and blocks begin within one."""
    found = list(_within(lines, blocks))
    return sum(it[-1][2] - it[0][2] for it in found) / sum(len(it) - 1 for it in found)
