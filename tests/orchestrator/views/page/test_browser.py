"""The page in a real browser: each view, live, by keyboard, small and large, light and dark, with hostile text."""

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.views.page.followed import Followed
from tests.orchestrator.views.campaign.builder import campaign
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.browsing import NARROW, VIEWS, WALL, Seen, browser, look, patient
from tests.orchestrator.views.page.conftest import TOKEN, Served, grow
from tests.orchestrator.views.page.stories import EVIL, proposed_by_models

pytestmark = pytest.mark.touching("page")

DOCS = Path(__file__).parents[4] / "docs"
__all__ = ["browser", "look"]  # fixtures


class Shown:
    """A campaign that nothing happens in, and a server that shows it to every test that only looks."""

    def __init__(self, folder: Path) -> None:
        self.stage = stage_of(folder)
        self.served = Served(folder)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    made = Shown(tmp_path_factory.mktemp("shown") / "task")
    yield made
    made.served.close()


def stage_of(folder: Path) -> Stage:
    """Attempts of two models and of each fate; their words are markup and scripts, escapes and turned writing."""
    made = Stage(folder)
    made.story = proposed_by_models(made.folder)
    made.write()
    return made


@pytest.fixture
def hostile(tmp_path: Path) -> Stage:
    return stage_of(tmp_path / "task")


def test_each_view_shows_and_nothing_acts(shown: Shown, look: Callable[..., Seen]) -> None:
    """Stored scripts, in descriptions, file names, differences, logs and answers, are text; no view makes an error."""
    seen = look(shown.served)
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


def test_small_and_large_light_and_dark(shown: Shown, look: Callable[..., Seen], tmp_path: Path) -> None:
    """No view is wider than its screen; what is read stands out from what is behind it."""
    started = shown.served
    for size, scheme in ((NARROW, "light"), (WALL, "dark")):
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
            expect(page).to_have_title("~77.25 · speedup - Blastdoor")
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


def test_what_is_older_than_the_last_change_is_asked_for_again(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
    """The server has just made it, and makes it again only after a while; nothing else happens until then."""
    page = look(served()).go("trust")
    verdicts = page.locator("#main dl.facts dd").first
    before = int(verdicts.inner_text().split()[0])
    written = len(hostile.story.events)
    hostile.story.attempt("1.1", 77.25, kept=True)
    grow(hostile, written)
    expect(verdicts).to_have_text(f"{before + 1} verdicts")


def test_a_fault_that_is_over_is_not_told_any_more(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that could not be read for a while: the line goes when it can, and what happened meanwhile is shown."""
    poll, broken = Followed.poll, [False]

    def polled(it: Followed) -> dict[str, Any] | None:
        if broken[0]:
            raise ValueError("a row of a later version")
        return poll(it)

    monkeypatch.setattr(Followed, "poll", polled)
    monkeypatch.setattr("orchestrator.views.page.streams._AGAIN_S", (0.05,))
    seen = look(served())
    page = seen.go("")
    written = len(hostile.story.events)
    hostile.story.attempt("1.1", 77.25, kept=True)
    broken[0] = True
    grow(hostile, written)
    expect(page.locator("#line.bad")).to_have_text("a row of a later version")
    broken[0] = False
    expect(page.locator(".tile-value").first).to_contain_text("77.25")
    expect(page.locator("#line")).to_have_text("")
    # The browser itself notes each answer that is a refusal.
    assert [it for it in seen.faults if "503" not in it] == []
    seen.faults.clear()


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


def test_the_keyboard_is_enough(shown: Shown, look: Callable[..., Seen]) -> None:
    """Sort, filter, move and open in the table; walk the plot and the tree; go back."""
    seen = look(shown.served)
    page = seen.go("")
    page.keyboard.press("/")
    page.keyboard.type("case hex")
    expect(page.locator(".attempts [role=status]")).not_to_contain_text(f"{len(shown.stage.story.state.nodes)} of")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{len(shown.stage.story.state.nodes)} of")
    page.click("text=best first")
    page.focus(".attempts .list")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    scored = [node for node in shown.stage.story.state.nodes.values() if node.verdict]
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
    kept = sum(node.kept or not node.parent for node in shown.stage.story.state.nodes.values())
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{kept} of")
    page = seen.go("tree")
    page.focus(".tree")
    rows = page.locator(".leaf").count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".leaf")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".leaf")).to_have_count(rows)


def test_a_brush_zooms_and_a_dot_opens(shown: Shown, look: Callable[..., Seen]) -> None:
    page = look(shown.served).go("")
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


# A browser tells of a pointer's moves, and draws, once a frame.
_TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


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
        page.evaluate(_TWO_FRAMES)
        if page.is_visible(".tip"):
            return box["x"] + right, box["y"] + down
    raise AssertionError("no dot was found")


# Of these views, in these files.
PICTURES = {"": "page.png", "node": "page-node.png", "tree": "page-tree.png"}
_MOST_BYTES = 150_000
# The share of tiles of two pictures that differ much: letters of another font move little, a card that is gone does.
_DIFFER = """
async (pictures) => {
  const drawn = await Promise.all(pictures.map(async (data) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(atob(data), (it) => it.charCodeAt(0))]));
    const made = new OffscreenCanvas(80, 50), context = made.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, 80, 50);
    return [image.width, image.height, context.getImageData(0, 0, 80, 50).data];
  }));
  const [[w, h, a], [v, g, b]] = drawn;
  if (w !== v || h !== g) return 1;
  let other = 0;
  for (let at = 0; at < a.length; at += 4) {
    const far = [0, 1, 2].reduce((sum, part) => sum + Math.abs(a[at + part] - b[at + part]), 0);
    if (far > 90) other += 1;
  }
  return other / (a.length / 4);
}
"""


def test_the_pictures_of_the_docs(tmp_path: Path, served: Callable[..., Served], look: Callable[..., Seen]) -> None:
    """They show what the page shows today; PICTURE=write makes them again, of a campaign that anybody can make."""
    made = Stage(tmp_path / "task")
    made.story = campaign(120, folder=made.folder)
    best = made.story.state.champion()
    assert best
    made.story.attempt(best.id, None, description="the outer ring first")
    made.write()
    with made.lock():  # it is at work, and the browser's clock stands at its last event
        seen = look(served(), (1120, 700))
        seen.page.clock.set_fixed_time(made.story.events[-1][0])
        for view, name in PICTURES.items():
            page = seen.go(f"node/{best.id}" if view == "node" else view)
            page.wait_for_selector({"": ".side .card:has-text('Winner')", "tree": ".tree .on-path"}.get(view, ".d-new"))
            page.evaluate(_TWO_FRAMES)
            assert page.inner_text("#where .pill") == "running"
            picture = page.screenshot()
            assert len(picture) < _MOST_BYTES
            if os.environ.get("PICTURE") == "write":
                (DOCS / name).write_bytes(picture)
            both = [base64.b64encode(it).decode() for it in (picture, (DOCS / name).read_bytes())]
            assert page.evaluate(_DIFFER, both) < 0.04, f"{name} shows something else; PICTURE=write makes it again"


def test_nobody_is_shown_anything_without_the_token(shown: Shown, browser: Browser) -> None:
    """Another page on this machine can neither read it, nor frame it, nor ask it for anything."""
    started = shown.served
    context = patient(browser)
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
