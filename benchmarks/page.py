"""What `blastdoor serve` costs and how quick its page is in a real browser, beside optuna-dashboard in the same run.

Paint is the time from the navigation until the plot and the rows of the table are on the screen, in Debian's Chromium
on this machine. An interaction is the time from the event until its frame is painted.
"""

import asyncio
import contextlib
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as Late

from benchmarks import watched
from benchmarks.figure import Figure
from benchmarks.long_campaign import make_long
from benchmarks.optuna_dashboard import PAINTED as OPTUNA_PAINTED
from benchmarks.optuna_dashboard import Optuna, install
from benchmarks.served import Served

LOOKS = 5
SIZES = {10_000: ("<= 500", "<= 100"), 100_000: ("<= 2000", "<= 200")}
PATIENCE_MS = 90_000
# A new window loads the browser's own start page, on the same processors: that is over before ours is asked for.
SETTLED_MS = 2_000

PAINTED = "document.querySelector('.plot canvas')?.style.width && document.querySelector('.attempts .row:not(.heads)')"
IN_BROWSER = Path(__file__).with_name("page.js")


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)  # a browser is driven without a loop


def _measure() -> list[Figure]:
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
            figures += watched.figures(partial(_page, browser), folder / "paced")
            browser.close()
    return figures


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
