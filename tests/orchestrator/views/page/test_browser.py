"""The page in a real browser: each view and kind of campaign, live, by keyboard, small and large, light and dark, with
hostile text, and as a file; and acting in it.
"""

import base64
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.domain import events as e
from orchestrator.views.page import streams
from orchestrator.views.page.exported import export_page
from orchestrator.views.page.followed import Followed
from tests.orchestrator.views.campaign.builder import Story, campaign
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.campaign.kinds import KINDS, OTHERS
from tests.orchestrator.views.page.browsing import NARROW, VIEWS, WALL, Seen, browser, look, patient
from tests.orchestrator.views.page.conftest import CONTROL, PLACE, TOKEN, Served, grow
from tests.orchestrator.views.page.stories import EVIL, comparison, proposed_by_models
from tests.orchestrator.views.page.test_acting import inbox

pytestmark = pytest.mark.touching("page")

DOCS = Path(__file__).parents[4] / "docs"
__all__ = ["browser", "look"]  # fixtures
_ALL: list[Callable[..., Story]] = [*KINDS, *OTHERS, proposed_by_models]
_BAD = ("serious", "critical")

Start = Callable[..., Served]
Look = Callable[..., Seen]


def stage_of(folder: Path, kind: Callable[..., Story]) -> Stage:
    made = Stage(folder)
    made.story = kind(made.folder)
    made.write()
    return made


class Shown:
    """Campaigns that nothing happens in, and a server that shows them to every test that only looks. The one that is
    looked at most has attempts of two models and of each fate, and words that are markup, scripts, escapes and turned
    writing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stages = {kind.__name__: stage_of(folder / kind.__name__, kind) for kind in _ALL}
        self.stage = self.stages["proposed_by_models"]
        comparison(folder / "compared")
        self.served = Served(folder)

    def at(self, seen: Seen, kind: str = "proposed_by_models") -> Seen:
        rows = seen.page.evaluate("() => fetch('api/campaigns').then((it) => it.json())")
        seen.id = {Path(row["folder"]).name: row["id"] for row in rows}[kind]
        return seen


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    made = Shown(tmp_path_factory.mktemp("shown"))
    yield made
    made.served.close()


@pytest.fixture
def hostile(tmp_path: Path) -> Stage:
    return stage_of(tmp_path / "task", proposed_by_models)


@pytest.mark.parametrize(("size", "scheme"), [(WALL, "dark"), (NARROW, "light")])
def test_each_view(shown: Shown, look: Look, size: tuple[int, int], scheme: str) -> None:
    """Stored scripts, in descriptions, file names, differences, logs and answers, are text; no view makes an error or
    is wider than its screen. Axe finds nothing serious, in light and in dark.
    """
    seen = shown.at(look(shown.served, size, scheme))
    page = seen.page
    assert "token" not in page.url
    page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text())
    bad = _violations(page, "overview")
    for view in VIEWS:
        seen.go(view)
        assert page.evaluate("() => document.querySelectorAll('main > *').length"), view
        assert not page.query_selector_all("main .notice"), view
        assert not page.query_selector_all("main script, main img, main iframe, [onerror]"), view
        assert page.evaluate("() => window.evil") is None
        assert page.evaluate("() => document.documentElement.scrollWidth") <= size[0], view
        bad += _violations(page, view)
    assert bad == []
    assert page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    colours = "() => { const it = getComputedStyle(document.documentElement); return [it.color, it.backgroundColor]; }"
    before = page.evaluate(colours)
    page.click("#theme")
    assert page.evaluate(colours) != before
    page.emulate_media(media="print")
    assert not page.is_visible("#views")


def _violations(page: Page, view: str) -> list[str]:
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    nodes = [(it, node) for it in found if it["impact"] in _BAD for node in it["nodes"][:3]]
    return [f"{view}: {it['id']}: {node['html'][:150]} {node['failureSummary'][:200]}" for it, node in nodes]


def test_words_of_others_are_shown_as_they_are(shown: Shown, look: Look) -> None:
    page = shown.at(look(shown.served)).go("node/1.1")
    page.wait_for_selector(".d-new")
    assert EVIL in page.inner_text("main")
    page.click("summary:has-text('as it was answered')")
    expect(page.locator(".log", has_text="answer of a model")).to_contain_text(EVIL)
    expect(page.locator(".log").first).to_contain_text("\\x1b[31m")
    expect(page.locator(".log").first).to_contain_text("\\u202e")


def test_each_kind(shown: Shown, look: Look) -> None:
    """Nothing is refused, nothing is an error; what is special of a kind is shown: islands and combinations in the
    tree, the parts of a winner, held-out queries, what a comparison comes to.
    """
    seen = look(shown.served, NARROW)
    for kind in (*shown.stages, "01a", "01b"):
        shown.at(seen, kind)
        for view in ("", "tree", "parameters", "trust", "report"):
            page = seen.go(view)
            assert not page.query_selector_all("main .notice"), (kind, view, page.inner_text("main"))
            assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW[0], (kind, view)
    for kind, view, wanted in (
        ("islands", "tree", "island 2"),
        ("combination", "tree", "combination"),
        ("minimised", "node/1.1", "ballast"),
        ("minimised", "node/1.1.1", "ballast"),
        ("pruned_and_held_out", "trust", "2 asked"),
        ("judged_in_one_chamber", "trust", "shared"),
        ("models_and_roles", "money", "verifier"),
        ("01b", "report", f"proposer={EVIL}"),
        ("noisy_scores", "trust", "Verified up to record"),
    ):
        expect(shown.at(seen, kind).go(view).locator("main")).to_contain_text(wanted)


def test_it_follows_a_campaign_at_work(hostile: Stage, served: Start, look: Look) -> None:
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


def test_what_is_older_than_the_last_change_is_asked_for_again(hostile: Stage, served: Start, look: Look) -> None:
    """The server has just made it, and makes it again only after a while; nothing else happens until then."""
    page = look(served()).go("trust")
    verdicts = page.locator("#main dl.facts dd").first
    before = int(verdicts.inner_text().split()[0])
    written = len(hostile.story.events)
    hostile.story.attempt("1.1", 77.25, kept=True)
    grow(hostile, written)
    expect(verdicts).to_have_text(f"{before + 1} verdicts")


def test_a_fault_that_is_over_is_not_told_any_more(
    hostile: Stage, served: Start, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that could not be read for a while: the line goes when it can, and what happened meanwhile is shown."""
    poll, broken = Followed.poll, [False]

    def polled(it: Followed) -> dict[str, Any] | None:
        if broken[0]:
            raise ValueError("a row of a later version")
        return poll(it)

    monkeypatch.setattr(Followed, "poll", polled)
    monkeypatch.setattr(streams, "AGAIN_S", (0.05,))
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


def test_a_log_is_followed_while_it_grows(hostile: Stage, served: Start, look: Look) -> None:
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


def test_the_keyboard_is_enough(shown: Shown, look: Look) -> None:
    """Sort, filter, move and open in the table; walk the plot and the tree; go back."""
    seen, state = shown.at(look(shown.served)), shown.stage.story.state
    page = seen.go("")
    page.keyboard.press("/")
    page.keyboard.type("case hex")
    expect(page.locator(".attempts [role=status]")).not_to_contain_text(f"{len(state.nodes)} of")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{len(state.nodes)} of")
    page.click("text=best first")
    page.focus(".attempts .list")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    scored = [node for node in state.nodes.values() if node.verdict]
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
    kept = sum(node.kept or not node.parent for node in state.nodes.values())
    expect(page.locator(".attempts [role=status]")).to_contain_text(f"{kept} of")
    page = seen.go("tree")
    page.focus(".tree")
    rows = page.locator(".leaf").count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".leaf")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".leaf")).to_have_count(rows)


def test_a_brush_zooms_and_a_dot_opens(shown: Shown, look: Look) -> None:
    page = shown.at(look(shown.served)).go("")
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


def test_the_pictures_of_the_docs(tmp_path: Path, served: Start, look: Look) -> None:
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


def test_the_page_as_a_file(shown: Shown, browser: Browser, tmp_path: Path) -> None:
    """It opens from a disk with the same views, asks nobody for anything, runs nothing that it tells."""
    folder, file = tmp_path / "away", tmp_path / "page.html"
    for kind in ("proposed_by_models", "noisy_scores"):
        shutil.copytree(shown.folder / kind, folder / kind)
    file.write_text(export_page([folder], None))
    assert len(file.read_bytes()) < 1_000_000
    shutil.rmtree(folder)
    context = patient(browser, offline=True)
    page, faults = context.new_page(), []  # type: Page, list[str]
    page.on("console", lambda it: faults.append(it.text) if it.type in ("error", "warning") else None)
    page.on("pageerror", lambda it: faults.append(str(it)))
    page.on(
        "request",
        lambda it: None if it.url == file.as_uri() or it.url.startswith(("data:", "blob:")) else faults.append(it.url),
    )
    page.goto(file.as_uri())
    page.click(".overview a:has-text('speedup')")
    page.wait_for_selector(".plot")
    base = page.evaluate("() => location.hash")
    for view in VIEWS:
        before = page.evaluate("() => document.documentElement.dataset.ready")
        page.evaluate("(it) => { location.hash = it; }", f"{base}/{view}")
        page.wait_for_function("(it) => document.documentElement.dataset.ready !== it", arg=before)
        assert not page.query_selector_all("main .notice"), (view, page.inner_text("main"))
        assert page.evaluate("() => window.evil") is None
    page.evaluate("(it) => { location.hash = it; }", f"{base}/node/1.1")
    page.wait_for_selector(".d-new")
    assert EVIL in page.inner_text("main")
    page.fill("input[aria-label='Another node to compare with']", "1.2")
    page.press("input[aria-label='Another node to compare with']", "Enter")
    page.wait_for_selector("main .notice:has-text('not in the file')")
    page.evaluate("(it) => { location.hash = it; }", base)
    page.wait_for_selector(".attempts .row:has-text('case')")
    counted = page.inner_text(".attempts [role=status]")
    page.keyboard.press("/")
    page.keyboard.type("case hex")
    expect(page.locator(".attempts [role=status]")).not_to_have_text(counted)
    context.close()
    assert faults == []


def test_buttons_and_forms(hostile: Stage, served: Start, look: Look) -> None:
    """Pause, steer and cancel by keyboard; what became of a request is told when the orchestrator has answered it."""
    at_work = next(iter(hostile.story.state.unfinished))
    seen = look(served(control=True), token=CONTROL)
    with hostile.lock():
        page = seen.go("")
        said = page.locator(".act-said")
        page.get_by_label("your name").fill("ada <b>")
        page.get_by_role("button", name="Pause").focus()
        page.keyboard.press("Enter")
        expect(said).to_contain_text("request 1: no new attempt is opened")
        page.get_by_label("Instruction to every later proposal").fill(f"numpy {EVIL}")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(said).to_contain_text("request 2: all who propose from now on are told")
        expect(page.get_by_label("Instruction to every later proposal")).to_have_value("")
        page = seen.go(f"node/{at_work}")
        page.get_by_role("button", name="Cancel…").click()
        page.keyboard.press("Escape")
        assert len(inbox(hostile)) == 2
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name=f"Cancel {at_work}").click()
        expect(page.locator(".act-said")).to_contain_text(f"request 3: {at_work} (open) is cancelled")
        assert [kind for kind, _ in inbox(hostile)] == ["pause", "steer", "cancel"]
        assert inbox(hostile)[0][1]["by"].startswith("ada <b>, at the page of ")
        written = len(hostile.story.events)
        hostile.story.tell(e.RequestTaken(request=3, asked="cancel", answer="refused: it is over", by="ada <b>"))
        grow(hostile, written)
        expect(page.locator(".act-said.bad")).to_have_text("request 3, cancel by ada <b>: refused: it is over")
    assert page.evaluate("() => window.evil") is None


def test_what_is_refused_is_one_line(hostile: Stage, served: Start, look: Look) -> None:
    """A change that cannot be, a cap that is none; what was written stays. A small screen has room for all of it."""
    seen = look(served(control=True), (360, 740), token=CONTROL)
    page = seen.go("")
    said = page.locator(".act-said.bad")
    page.click("summary:has-text('Inject a change')")
    page.get_by_label("Diff, search/replace").fill("no change")
    page.get_by_role("button", name="Inject").click()
    expect(said).to_contain_text("no change found")
    assert page.get_by_label("Diff, search/replace").input_value() == "no change"
    page.get_by_label("Maximum number of attempts.").fill("many")
    page.get_by_role("button", name="Resume").click()
    expect(said).to_contain_text("attempts")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    assert inbox(hostile) == []
    # The browser itself notes each answer that is a refusal.
    assert [it for it in seen.faults if "409" not in it] == []
    seen.faults.clear()


def test_one_who_looks_is_offered_nothing(hostile: Stage, served: Start, look: Look) -> None:
    """Neither with the token to look, nor where nobody can act."""
    at_work = next(iter(hostile.story.state.unfinished))
    for started in (served(control=True), served()):
        seen = look(started)
        for view in ("", f"node/{at_work}"):
            page = seen.go(view)
            assert page.locator(".control, form, textarea").count() == 0


class Other(BaseHTTPRequestHandler):
    """A server of somebody else on this host, whose page may do what it wants."""

    seen: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("cookie", "")))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<form id=f method=post enctype=text/plain><input name=a value=b></form>")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def other() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever).start()
    Other.seen.clear()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


_ASK = """([url, mode, kind]) =>
    fetch(url, {method: 'POST', mode, body: '{}', credentials: 'include', headers: {'content-type': kind}})
    .then((it) => it.status, () => 'refused')"""


def test_another_server_on_this_host(hostile: Stage, served: Start, browser: Browser, other: str) -> None:
    """In the browser of one who may act, whatever its page does: it is sent no cookie, and its requests and forms
    change nothing, even where it knows all addresses.
    """
    started = served(control=True)
    context = patient(browser)
    page = context.new_page()
    page.goto(f"{started.address}?token={CONTROL}")
    campaign = page.evaluate("() => fetch('api/campaigns').then((it) => it.json())")[0]["id"]
    target = f"{started.address}{PLACE}/api/campaign/{campaign}/ask/pause"
    page.goto(other)
    assert [cookie for path, cookie in Other.seen if path == "/"] == [""]
    with hostile.lock():
        for mode, kind in (("cors", "application/json"), ("cors", "text/plain"), ("no-cors", "text/plain")):
            assert page.evaluate(_ASK, [target, mode, kind]) == "refused"
        with page.expect_navigation():
            page.evaluate(
                "(it) => { const form = document.getElementById('f'); form.action = it; form.submit(); }", target
            )
        assert page.inner_text("body").strip() == "another site asked for this"
    assert inbox(hostile) == []
    context.close()
