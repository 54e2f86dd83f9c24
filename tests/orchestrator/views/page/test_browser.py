"""The page in a real browser: each view, live, by keyboard, small and large, light and dark, with hostile text."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from distribution import program, require
from tests.orchestrator.views.campaign.builder import campaign
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.conftest import TOKEN, Served, grow
from tests.orchestrator.views.page.stories import EVIL, proposed_by_models

HANG_MS = 120_000
PICTURE = Path(__file__).parents[4] / "docs" / "page.png"
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
_WIDE, _NARROW, _WALL = (1280, 800), (360, 740), (2560, 1440)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's own, installed where it is missing; nothing is downloaded by the library that drives it."""
    require("chromium", log=tmp_path_factory.mktemp("browser") / "apt.log")
    expect.set_options(timeout=HANG_MS)
    with sync_playwright() as driver:
        # A container has no user namespaces to spare: the pages are ours, and nothing else is opened.
        made = driver.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


class Seen:
    """One browser of its own, let in; `faults` is all that went wrong in it, and all that it asked of others."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        self.faults: list[str] = []
        self.address = served.address
        self.page = context.new_page()
        self.page.set_default_timeout(HANG_MS)
        self.page.on("console", lambda it: self.faults.append(it.text) if it.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda it: self.faults.append(str(it)))
        self.page.on("dialog", self._alerted)
        self.page.on("request", self._requested)
        self.page.goto(f"{served.address}?token={TOKEN}")
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

    def open_one(served: Served, size: tuple[int, int] = _WIDE, scheme: Any = "light") -> Seen:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        opened.append((context, Seen(context, served)))
        return opened[-1][1]

    yield open_one
    for context, seen in opened:
        context.close()
        assert seen.faults == []


@pytest.fixture
def hostile(tmp_path: Path) -> Stage:
    """Attempts of two models and of each fate; their words are markup and scripts, escapes and turned writing."""
    made = Stage(tmp_path / "task")
    made.story = proposed_by_models(made.folder)
    made.write()
    return made


def test_each_view_shows_and_nothing_acts(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
    """Stored scripts, in descriptions, file names, differences, logs and answers, are text; no view makes an error."""
    seen = look(served())
    assert "token" not in seen.page.url
    for view in VIEWS:
        page = seen.go(view)
        assert page.evaluate("() => document.querySelectorAll('main > *').length"), view
        assert not page.query_selector_all("main .notice"), view
        assert (
            page.evaluate("() => document.querySelectorAll('main script, main img, main iframe, [onerror]').length")
            == 0
        )
        assert page.evaluate("() => window.evil") is None
    page = seen.go("node/1.1")
    page.wait_for_selector(".d-new")
    assert EVIL in page.inner_text("main")
    page.click("summary:has-text('as it was answered')")
    expect(page.locator(".log", has_text="answer of a model")).to_contain_text(EVIL)
    expect(page.locator(".log").first).to_contain_text("\\x1b[31m")
    expect(page.locator(".log").first).to_contain_text("\\u202e")


def test_small_and_large_light_and_dark(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen], tmp_path: Path
) -> None:
    """No view is wider than its screen; what is read stands out from what is behind it."""
    started = served()
    for size, scheme in ((_NARROW, "light"), (_WALL, "dark")):
        seen = look(started, size, scheme)
        for view in VIEWS:
            page = seen.go(view)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= size[0], f"{view} is {wide} wide on a screen of {size[0]}"
        assert page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    ink, back = page.evaluate(
        "() => { const it = getComputedStyle(document.documentElement); return [it.color, it.backgroundColor]; }"
    )
    page.click("#theme")
    turned = page.evaluate(
        "() => { const it = getComputedStyle(document.documentElement); return [it.color, it.backgroundColor]; }"
    )
    assert (ink, back) != tuple(turned)
    page.emulate_media(media="print")
    assert not page.is_visible("#views")


def test_it_follows_a_campaign_at_work(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
    """A new best is on the page, in its title, its table and its plot, without a hand laid on it; two look on."""
    started = served()
    seens = [look(started), look(started)]
    pages = [seen.go("") for seen in seens]
    counted = pages[0].inner_text(".attempts [role=status]")
    written = len(hostile.story.events)
    with hostile.lock():
        hostile.story.attempt("1.1", 77.25, kept=True, description="the new best")
        grow(hostile, written)
        for page in pages:
            expect(page.locator(".tile-value").first).to_contain_text("77.25")
            expect(page).to_have_title("77.25 · speedup - Blastdoor")
            expect(page.locator("#where .pill")).to_have_text("running")
            expect(page.locator(".attempts .row.champion")).to_contain_text("the new best")
        assert pages[0].inner_text(".attempts [role=status]") != counted
        page = pages[0]
        page.click("a.brand")
        expect(page.locator(".overview tbody tr")).to_contain_text("77.25")
        written = len(hostile.story.events)
        hostile.story.attempt("1.1", 78.5, kept=True)
        grow(hostile, written)
        expect(page.locator(".overview tbody tr")).to_contain_text("78.5")
    expect(page.locator(".overview .pill")).to_have_text("died")


def test_a_log_is_followed_while_it_grows(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
    live = hostile.campaign / "live"
    live.mkdir()
    node = next(iter(hostile.story.state.unfinished))
    log = live / f"{node}-1.log"
    log.write_text("first line\n")
    page = look(served()).go(f"node/{node}")
    expect(page.locator(".log", has_text="first line")).to_be_visible()
    with log.open("a") as file:
        file.write(f"second {EVIL}\n")
    expect(page.locator(".log", has_text="second")).to_contain_text(EVIL)


def test_the_keyboard_is_enough(hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]) -> None:
    """Sort, filter, move and open in the table; walk the plot and the tree; go back."""
    seen = look(served())
    page = seen.go("")
    page.keyboard.press("/")
    page.keyboard.type("case hex")
    expect(page.locator(".attempts [role=status]")).not_to_contain_text(f"{len(hostile.story.state.nodes)} of")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{len(hostile.story.state.nodes)} of")
    page.click("text=best first")
    page.focus(".attempts .list")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    scored = [node for node in hostile.story.state.nodes.values() if node.verdict]
    best = max(scored, key=lambda node: node.verdict.metrics["score"] if node.verdict else 0.0)
    expect(page.locator("h1")).to_contain_text(f"Node {best.id} ")
    page.go_back()
    page.wait_for_selector(".plot")
    page.focus(".plot")
    for key in ("ArrowRight", "ArrowRight", "+"):
        page.keyboard.press(key)
    expect(page.locator(".tip")).to_contain_text("1.1")
    expect(page.locator("text=show all")).to_be_visible()
    page.keyboard.press("0")
    expect(page.locator("text=show all")).to_be_hidden()
    page.click(".legend button:has-text('kept')")
    kept = sum(node.kept or not node.parent for node in hostile.story.state.nodes.values())
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{kept} of")
    page = seen.go("tree")
    page.focus(".tree")
    rows = page.locator(".leaf").count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".leaf")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".leaf")).to_have_count(rows)


def test_a_brush_zooms_and_a_dot_opens(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
    page = look(served()).go("")
    box = page.locator(".plot").bounding_box()
    assert box
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 120, steps=4)
    page.mouse.up()
    expect(page.locator("text=show all")).to_be_visible()
    page.click("text=show all")
    x, y = _dots(page)
    page.mouse.move(x, y)
    expect(page.locator(".tip")).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("h1")).to_contain_text("Node 1")


def _dots(page: Page) -> tuple[float, float]:
    """Where the first node is drawn: found by moving along until the page tells of one."""
    box = page.locator(".plot").bounding_box()
    assert box
    count = len(
        page.evaluate(
            "() => [...document.querySelectorAll('.legend .faint')].flatMap((it) => Array(+it.textContent).fill(0))"
        )
    )
    right = 58 + 0.5 / count * (box["width"] - 72)
    for down in range(10, int(box["height"]) - 40, 8):
        page.mouse.move(box["x"] + right, box["y"] + down)
        page.wait_for_timeout(20)
        if page.is_visible(".tip"):
            return box["x"] + right, box["y"] + down
    raise AssertionError("no dot was found")


def test_the_picture_of_the_docs(tmp_path: Path, served: Callable[..., Served], look: Callable[..., Seen]) -> None:
    """PICTURE=write makes it again; it is of a campaign that anybody can make, on a screen of the usual size."""
    made = Stage(tmp_path / "task")
    made.story = campaign(120, folder=made.folder)
    made.write()
    page = look(served()).go("")
    page.wait_for_selector(".side .card:has-text('Winner')")
    picture = page.screenshot()
    if os.environ.get("PICTURE") == "write":
        PICTURE.write_bytes(picture)
    assert PICTURE.read_bytes()[:24] == picture[:24], "not of this size; PICTURE=write makes it again"


def test_nobody_is_shown_anything_without_the_token(
    hostile: Stage, served: Callable[..., Served], browser: Browser
) -> None:
    """Another page on this machine can neither read it, nor frame it, nor ask it for anything."""
    started = served()
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(started.address)
    assert answer
    assert answer.status == 401
    page.goto("about:blank")
    page.set_content(f'<iframe src="{started.address}?token={TOKEN}"></iframe>')
    page.wait_for_timeout(300)
    assert all("Campaign" not in frame.content() for frame in page.frames)
    refused = page.evaluate("(it) => fetch(it).then(() => 'read', () => 'refused')", f"{started.address}api/campaigns")
    assert refused == "refused"
    context.close()
