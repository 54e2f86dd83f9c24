"""What `blastdoor serve` costs and how quick its page is in a real browser, beside optuna-dashboard in the same run.

Paint is the time from the navigation until the plot and the rows of the table are on the screen, in Debian's Chromium
on this machine. An interaction is the time from the event until its frame is painted.
"""

import asyncio
import contextlib
import http.client
import math
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as Late

from benchmarks.figure import Figure
from benchmarks.long_campaign import make_long
from benchmarks.optuna_dashboard import PAINTED as OPTUNA_PAINTED
from benchmarks.optuna_dashboard import Optuna, install
from orchestrator.views.page.finding import find_campaigns

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
LOOKS = 5
SIZES = {10_000: ("<= 500", "<= 100"), 100_000: ("<= 2000", "<= 200")}
BLOCKS, BLOCK_S, VIEWERS = 8, 10.0, 5
PATIENCE_MS = 90_000
# A new window loads the browser's own start page, on the same processors: that is over before ours is asked for.
SETTLED_MS = 2_000

PAINTED = "document.querySelector('.plot canvas')?.style.width && document.querySelector('.attempts .row:not(.heads)')"
IN_BROWSER = Path(__file__).with_name("page.js")


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)  # a browser is driven without a loop


def _measure() -> list[Figure]:
    sys.path.insert(0, str(SCRIPTS))  # where the tests' browser comes from, too
    from distribution import program, require

    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        require("chromium", log=folder / "apt.log")
        python = install(folder / "optuna")
        for nodes in SIZES:
            (folder / str(nodes)).mkdir()
            asyncio.run(make_long(folder / str(nodes), nodes))  # before the browser's own loop
        with sync_playwright() as driver:
            # No other address is there for the browser. To ask us about each request would be most of the time.
            arguments = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
            browser = driver.chromium.launch(executable_path=program("chromium"), args=arguments)
            for nodes, goals in SIZES.items():
                figures += _long(browser, folder / str(nodes), nodes, goals)
                figures += _beside(browser, python, nodes, figures[-1].value)
            figures += _loaded(browser, folder / "paced")
            browser.close()
    return figures


class Served:
    """`blastdoor serve` as a process of its own."""

    def __init__(self, folder: Path) -> None:
        (found,) = find_campaigns([folder])
        words = [str(Path(sys.executable).with_name("blastdoor")), "serve", "--no-open", "--port", "0", str(folder)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        address = self._process.stdout.readline().strip() if self._process.stdout else ""
        self.address = f"{address}#/c/{found}"
        self.process = psutil.Process(self._process.pid)

    @property
    def most_mb(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def cpu_s(self) -> float:
        used = self.process.cpu_times()
        return used.user + used.system

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@contextlib.contextmanager
def _page(browser: Browser, address: str, painted: str = PAINTED) -> Iterator[tuple[Page, float]]:
    """A page in a browser without a cache, and how long it took to be painted; infinite where it never was."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.wait_for_timeout(SETTLED_MS)
    page.add_init_script(path=IN_BROWSER)
    page.add_init_script(f"bench.watch(() => {painted})")
    try:
        page.goto(address, timeout=PATIENCE_MS, wait_until="commit")
        took = math.inf
        with contextlib.suppress(Late):
            took = float(page.wait_for_function("() => window.paintedAt", timeout=PATIENCE_MS).json_value())
        yield page, took
    finally:
        context.close()


def _long(browser: Browser, folder: Path, nodes: int, goals: Sequence[str]) -> list[Figure]:
    served = Served(folder)
    try:
        idle_s = served.cpu_s()
        with _page(browser, served.address) as (_, first):
            pass
        first_s = served.cpu_s() - idle_s
        paints = []
        for _ in range(LOOKS):
            with _page(browser, served.address) as (page, took):
                paints.append(took)
                sent = page.evaluate("bench.sent()") / 1000
        later_s = (served.cpu_s() - idle_s - first_s) / LOOKS
        with _page(browser, served.address) as (page, _):
            acts: dict[str, list[float]] = page.evaluate(f"bench.acts({LOOKS})")
            frames = page.evaluate("bench.frames(3)")
        slowest = max(acts, key=lambda name: statistics.median(acts[name]))
        of = f"{nodes:,} nodes"
        return [
            Figure(f"first paint of a server that has just begun, {of}", first, "ms", goals[0]),
            Figure(
                f"interaction, slowest of {len(acts)} ({slowest}), {of}",
                statistics.median(acts[slowest]),
                "ms",
                goals[1],
            ),
            Figure(f"zooming, {of}", frames, "frames/s", ">= 50" if nodes == 10_000 else ""),
            Figure(f"transferred bytes of a first view, {of}", sent, "kB", "<= 500" if nodes == 10_000 else ""),
            Figure(f"memory of the server at most, {of}", served.most_mb, "MB"),
            Figure(f"processor of the server for its first view, {of}", first_s, "s"),
            Figure(f"processor of the server for each later one, {of}", later_s, "s"),
            Figure(f"paint, {of}", statistics.median(paints), "ms", goals[0]),
        ]
    finally:
        served.close()


def _beside(browser: Browser, python: Path, nodes: int, ours: float) -> list[Figure]:
    """The same number of trials in memory, which spares the other a database."""
    other = Optuna(python, nodes)
    try:
        paints, sent = [], math.nan
        for _ in range(2):
            with _page(browser, other.address, OPTUNA_PAINTED) as (page, took):
                paints.append(took)
                if took == math.inf:  # it is still busy, and would not answer
                    break
                sent = page.evaluate("bench.sent()") / 1000
    finally:
        other.close()
    late = "" if min(paints) < math.inf else f" (not within {PATIENCE_MS // 1000} s)"
    return [
        Figure(f"paint of optuna-dashboard's history, {nodes:,} trials{late}", min(paints), "ms"),
        Figure(f"transferred bytes of its view, {nodes:,} trials", sent, "kB"),
        Figure(f"paint, ours / optuna-dashboard's, {nodes:,}", ours / min(paints), "x", "<= 1"),
    ]


def _loaded(browser: Browser, folder: Path) -> list[Figure]:
    """Blocks with five viewers in a browser, with none, with five that draw nothing, and with none, in turn, beside one
    campaign: a browser on the same processors takes its share of them, wherever the server is.
    """
    folder.mkdir()
    # More attempts than it can make: it must not be over before we are.
    campaign = subprocess.Popen([sys.executable, "-m", "benchmarks.paced_campaign", str(folder), "1000000"])
    try:
        while not (folder / "pace.txt").exists() or len(_paced(folder)) < 200:
            time.sleep(0.5)
        served = Served(folder)
        try:
            blocks, shares, seen = _watched(browser, served)
        finally:
            most = served.most_mb
            served.close()
    finally:
        campaign.terminate()
        campaign.wait(60)
    lines = _paced(folder)
    written = {int(line[0]): line[1] for line in lines}
    delays = [(at / 1000 - written[seq]) * 1000 for seq, at in seen if seq in written]
    costs = [_cost(lines, begun, ended) for begun, ended in blocks]
    ended = [sum(bool(it[3]) for it in lines if begun <= it[1] <= until) / (until - begun) for begun, until in blocks]
    drawn, bare = (_ratio([cost for at, cost in enumerate(costs) if at % 4 in pair]) for pair in ((0, 1), (2, 3)))
    return [
        Figure(f"attempts a second beside {VIEWERS} viewers", statistics.median(ended[::2]), "/s"),
        Figure(
            f"update on the screen after the event is on disk, median of {len(delays)}",
            statistics.median(delays),
            "ms",
            "<= 300",
        ),
        Figure("the same, 95 of 100", statistics.quantiles(delays, n=20)[-1], "ms"),
        Figure(f"memory of the server at most, {VIEWERS} viewers", most, "MB", "<= 150"),
        Figure(f"processor of the server, {VIEWERS} viewers", statistics.median(shares) * 100, "% of a core", "<= 2"),
        Figure("processor of an attempt, with viewers / without", drawn, "x", "<= 1.01"),
        Figure("the same, with viewers that draw nothing", bare, "x", "<= 1.01"),
    ]


@contextlib.contextmanager
def _stream(address: str) -> Iterator[None]:
    """One who is told of every update, and draws nothing."""
    opened, _, campaign = address.partition("#/c/")
    parts = urllib.parse.urlsplit(opened)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("GET", f"/?{parts.query}")
    let_in = connection.getresponse()
    let_in.read()
    cookie = (let_in.getheader("set-cookie") or "").partition(";")[0]
    target = f"{let_in.getheader('location')}api/campaign/{campaign}/updates"
    connection.request("GET", target, headers={"cookie": cookie})
    told = connection.getresponse()
    if told.status != 200:
        raise RuntimeError(f"no stream: {told.status}")
    reading = threading.Thread(target=_read_on, args=(told,))
    reading.start()
    try:
        yield
    finally:
        connection.sock.shutdown(socket.SHUT_RDWR)
        reading.join(60)


def _read_on(told: http.client.HTTPResponse) -> None:
    with contextlib.suppress(http.client.HTTPException, OSError):  # it is cut off in the middle
        while told.readline():
            pass


def _watched(browser: Browser, served: Served) -> tuple[list[tuple[float, float]], list[float], list[Any]]:
    """When each block began and ended, the server's share of a processor while it was looked at, and what was seen."""
    blocks, shares, seen = [], [], []  # type: list[tuple[float, float]], list[float], list[Any]
    for number in range(BLOCKS):
        with contextlib.ExitStack() as open_pages:
            pages = []
            for _ in range(VIEWERS if number % 4 == 0 else 0):
                page, _ = open_pages.enter_context(_page(browser, served.address))
                pages.append(page)
            for _ in range(VIEWERS if number % 4 == 2 else 0):
                open_pages.enter_context(_stream(served.address))
            for page in pages[:1]:
                page.evaluate("bench.follow()")
            time.sleep(2)
            begun, used = time.time(), served.cpu_s()
            time.sleep(BLOCK_S)
            blocks.append((begun, time.time()))
            if number % 2 == 0:
                shares.append((served.cpu_s() - used) / (time.time() - begun))
            if pages:
                seen += pages[0].evaluate("seenAt")
    return blocks, shares, seen


def _paced(folder: Path) -> list[list[float]]:
    """Whole lines of what the campaign wrote down."""
    text = (folder / "pace.txt").read_text()
    return [[float(word) for word in line.split()] for line in text[: text.rfind("\n") + 1].splitlines()]


def _cost(lines: Sequence[Sequence[float]], begun: float, ended: float) -> float:
    """Seconds of processor for each attempt that ended in a time."""
    found = [line for line in lines if begun <= line[1] <= ended and line[3]]
    return (found[-1][2] - found[0][2]) / (len(found) - 1)


def _ratio(costs: Sequence[float]) -> float:
    """Each block is compared with the next: what drifts touches both."""
    return statistics.median(looked / alone for looked, alone in zip(costs[::2], costs[1::2], strict=True))
