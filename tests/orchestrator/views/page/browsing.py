"""A real browser for the tests of a file, and one who looks with it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from distribution import program, require
from tests.orchestrator.views.page.conftest import TOKEN, Served

HANG_MS = 120_000
WIDE, NARROW, WALL = (1280, 800), (360, 740), (2560, 1440)
VIEWS = (
    "",
    "tree",
    "node/1.1",
    "compare?nodes=1,1.1,1.2",
    "parameters",
    "money",
    "agents",
    "credit",
    "trust",
    "report",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's own, installed where it is missing; nothing is downloaded by the library that drives it."""
    require("chromium", log=tmp_path_factory.mktemp("browser") / "apt.log")
    expect.set_options(timeout=HANG_MS)
    with sync_playwright() as driver:
        # A container has no user namespaces to spare: the pages are ours, and nothing else is opened.
        made = driver.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"], timeout=HANG_MS
        )
        yield made
        made.close()


def patient(browser: Browser, **wanted: Any) -> BrowserContext:
    """One that is given up only where it hangs; by itself it waits for half a minute, however busy the machine is."""
    made = browser.new_context(**wanted)
    made.set_default_timeout(HANG_MS)
    return made


class Seen:
    """One browser of its own, let in; `faults` is all that went wrong in it, and all that it asked of others."""

    def __init__(self, context: BrowserContext, served: Served, token: str = TOKEN) -> None:
        self.faults: list[str] = []
        self.address = served.address
        self.page = context.new_page()
        self.page.on("console", lambda it: self.faults.append(it.text) if it.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda it: self.faults.append(str(it)))
        self.page.on("dialog", self._alerted)
        self.page.on("request", self._requested)
        self.page.goto(f"{served.address}?token={token}")
        self.page.wait_for_selector("main > *")
        self.id = self.page.evaluate("() => fetch('api/campaigns').then((it) => it.json())")[0]["id"]

    def _alerted(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(self.address):
            self.faults.append(f"asked {request.url}")

    def go(self, view: str) -> Page:
        before = self.page.evaluate("() => document.documentElement.dataset.ready")
        self.page.evaluate("(it) => { location.hash = it; }", f"/c/{self.id}/{view}")
        self.page.wait_for_function("(it) => document.documentElement.dataset.ready !== it", arg=before)
        return self.page


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Seen]]:
    opened: list[tuple[BrowserContext, Seen]] = []

    def open_one(served: Served, size: tuple[int, int] = WIDE, scheme: Any = "light", token: str = TOKEN) -> Seen:
        context = patient(browser, viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        opened.append((context, Seen(context, served, token)))
        return opened[-1][1]

    yield open_one
    for context, seen in opened:
        context.close()
        assert seen.faults == []
