"""Acting in a real browser: by keyboard, with a question before a cancel, and with what is wrong in one line."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from playwright.sync_api import Browser, expect

from orchestrator.domain import events as e
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.browsing import Seen, browser, look, patient
from tests.orchestrator.views.page.conftest import CONTROL, PLACE, Served, grow
from tests.orchestrator.views.page.stories import EVIL
from tests.orchestrator.views.page.test_acting import inbox
from tests.orchestrator.views.page.test_browser import hostile

pytestmark = pytest.mark.touching("page")

__all__ = ["browser", "hostile", "look"]  # fixtures


def test_buttons_and_forms(hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]) -> None:
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


def test_what_is_refused_is_one_line(hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]) -> None:
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


def test_one_who_looks_is_offered_nothing(
    hostile: Stage, served: Callable[..., Served], look: Callable[..., Seen]
) -> None:
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


def test_another_server_on_this_host(
    hostile: Stage, served: Callable[..., Served], browser: Browser, other: str
) -> None:
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
