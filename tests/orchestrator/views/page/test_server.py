"""Requests and answers, as a browser or somebody worse sends them."""

import asyncio
import contextlib
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.ledger.lock import CampaignLock
from orchestrator.settings import Settings
from orchestrator.views.page import overview, server, streams
from orchestrator.views.page.finding import Found, find_campaigns
from orchestrator.views.page.followed import Followed
from orchestrator.views.page.pages import VIEWS
from orchestrator.views.page.streams import Audience, TooMany, Viewer, written
from orchestrator.views.page.summary import Standing, read_standing
from orchestrator.views.page.waking import Notices
from orchestrator.wiring.ledgers import FILE
from tests.orchestrator.views.campaign.conftest import Stage, stage
from tests.orchestrator.views.page.conftest import HOST, Site, Stream, asked, grow

__all__ = ["stage"]  # a fixture, of commands

# Everything that the page asks for of a campaign whose nodes are 1, 1.1 and 1.2.
TARGETS = (
    "",
    "/board",
    "/board?run=1",
    "/rows?nodes=1.1,1.2,9.9",
    "/search?text=ROWS",
    "/node/1.2",
    "/live",
    "/chain",
    *(f"/view/{name}" for name in (*VIEWS, "credit", "report")),
    "/compare?nodes=1,1.1",
    "/parameters",
    "/diff?node=1.1",
    "/diff?node=1.2&from=1.1",
    "/text?what=trial&name=1.1-1",
)


async def test_everything_that_the_page_asks_for_is_answered(stage: Stage) -> None:
    """By a server that has just begun several at once: the second is not told that there is no campaign while the first
    searches. The ledger's own bytes, and the files beside it, are what they were.
    """
    stage.write()
    before = _bytes(stage.campaign)
    (name,) = find_campaigns([stage.folder])
    async with Site(stage.folder) as site:
        assert all(await asyncio.gather(*(site.get(f"/api/campaign/{name}{target}") for target in ("", "/board"))))
        for target in TARGETS:
            assert await site.get(f"/api/campaign/{name}{target}"), target
        assert (await site.campaign("/search?text=ROWS"))["places"] == [1]
    assert _bytes(stage.campaign) == before


def _bytes(folder: Path) -> dict[str, bytes]:
    # What readers share among themselves is no part of the ledger.
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


NOT_THERE = (
    "/board?run=2",
    "/board?run=-1",
    "/board?run=1e9",
    "/board?run=٣",
    "/node/1.99",
    "/node/..%2f..%2fetc",
    "/node/1'--",
    "/compare?nodes=",
    f"/compare?nodes={','.join(['1'] * 9)}",
    "/diff?node=",
    "/diff?node=1.1&page=x",
    "/text?what=trial&name=../../../etc/passwd",
    "/text?what=../..&name=1",
    "/text?what=trial&name=1.1-1&start=99999999999999999999",
    "/text?what=draft&name=1.1%231",
    "/view/nothing",
    "/view/__class__",
    "/nothing",
)


async def test_what_is_not_there_is_one_line(stage: Stage) -> None:
    """Bad names, numbers and paths get a 404 and a line; nothing of a path is made of them."""
    stage.write()
    async with Site(stage.folder) as site:
        address = await site.at()
        for target in NOT_THERE:
            answer = await asked(site.app, f"{address}{target}", headers=site.headers)
            assert (answer.status, len(answer.body) < 300) == (404, True), target


async def test_files_are_those_that_are_served(tmp_path: Path) -> None:
    async with Site(tmp_path) as site:
        for name in ("../server.py", "..%2fserver.py", "index.html/..", "page.css\0", "", "static/page.css"):
            assert (await asked(site.app, f"/static/{name}", headers=site.headers)).status in (404, 307), name
        found = await asked(site.app, "/static/page.css", headers=[*site.headers, ("accept-encoding", "gzip")])
    assert (found.status, found.headers["content-encoding"]) == (200, "gzip")
    assert found.headers["content-type"].startswith("text/css")


async def test_one_that_cannot_be_read_is_told_beside_the_others(stage: Stage, tmp_path: Path) -> None:
    """A damaged ledger is a row with a reason, and the page of it a line; the others are not touched by it."""
    stage.write()
    broken = tmp_path / "broken" / ".blastdoor"
    broken.mkdir(parents=True)
    (broken / "ledger.sqlite3").write_bytes(b"no ledger" * 200)
    async with Site(tmp_path) as site:
        rows = await site.get("/api/campaigns")
        assert {row["name"]: row["status"] for row in rows} == {"circle-packing": "died", "broken": "not readable"}
        (bad,) = (row["id"] for row in rows if row["status"] == "not readable")
        assert "error" in await site.get(f"/api/campaign/{bad}", 503)
        assert (await asked(site.app, f"/api/campaign/{bad}/updates", headers=site.headers)).status == 503


def new_best(stage: Stage) -> None:
    before = len(stage.story.events)
    stage.story.attempt("1.1", 3.0, kept=True)
    grow(stage, before)


NEW_BEST = '"best":{"value":3.0'


async def test_an_update_comes_by_itself(stage: Stage) -> None:
    """To everybody who looks, when it is on disk; one that comes back is sent what it missed. A server that ends ends
    its streams.
    """
    stage.write()
    async with Site(stage.folder) as site:
        before = (await site.campaign("/board"))["mark"]
        address = await site.at("/updates")
        one, two = Stream(site, f"{address}?after={before}"), Stream(site, f"{address}?after={before}")
        overview = Stream(site, "/api/updates")
        await overview.next("rows")
        new_best(stage)
        for stream in (one, two):
            await stream.until("update", '"champion":')
        await overview.until("rows", NEW_BEST)
        late = Stream(site, f"{address}?after={before}")
        assert '"champion":' in await late.next("update")
        lost = Stream(site, f"{address}?after=-5")
        await lost.next("again")
        await late.leave()
    async with asyncio.timeout(60):
        for stream in (one, two, overview, lost):
            await stream.over


async def test_one_that_is_begun_again_in_its_place_is_followed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells of a folder, not of its name: another one there is watched again."""
    monkeypatch.setattr(overview, "GAP_S", 0.01)
    monkeypatch.setattr(overview, "LOOK_AGAIN_S", 0.05)
    stage.write()
    old = stage.campaign.with_name("old")
    async with Site(stage.folder) as site:
        stream = Stream(site, "/api/updates")
        await stream.next("rows")
        shutil.copytree(stage.campaign, old)
        shutil.rmtree(stage.campaign)
        old.rename(stage.campaign)
        await asyncio.sleep(0.5)
        new_best(stage)
        await stream.until("rows", NEW_BEST)
        await stream.leave()


async def test_a_notice_that_comes_before_what_it_tells_of(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells of a commit's bytes before others can see it: the overview looks once more."""
    stage.write()
    tells: list[Callable[[str], None]] = []

    def watch(_: Notices, __: Path, tell: Callable[[str], None]) -> Callable[[], None]:
        tells.append(tell)
        return lambda: None

    monkeypatch.setattr(Notices, "watch", watch)
    monkeypatch.setattr(overview, "GAP_S", 0.2)
    async with Site(stage.folder) as site:
        stream, looked = Stream(site, "/api/updates"), asyncio.Queue[None]()
        await stream.next("rows")
        loop = asyncio.get_running_loop()

        @contextlib.contextmanager
        def seen(found: Found, settings: Settings | None) -> Iterator[Standing]:
            with read_standing(found, settings) as standing:
                yield standing
            loop.call_soon_threadsafe(looked.put_nowait, None)

        monkeypatch.setattr(overview, "read_standing", seen)
        for tell in tells:
            tell(f"{FILE}-wal")
        await looked.get()
        new_best(stage)
        await stream.until("rows", NEW_BEST)
        await stream.leave()


async def test_a_campaign_in_which_nothing_happens_is_read_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading opens and closes the files beside a ledger: that is no news. The end of a holder is."""
    stage.write()
    read: list[Found] = []

    @contextlib.contextmanager
    def counted(found: Found, settings: Settings | None) -> Iterator[Standing]:
        read.append(found)
        with read_standing(found, settings) as standing:
            yield standing

    monkeypatch.setattr(overview, "GAP_S", 0.01)
    async with Site(stage.folder) as site:
        await site.get("/api/campaigns")  # the first reader of all makes files
        monkeypatch.setattr(overview, "read_standing", counted)
        stream = Stream(site, "/api/updates")
        await stream.next("rows")
        await asyncio.sleep(0.5)
        assert len(read) == 1
        lock = CampaignLock(stage.campaign / "lock")
        lock.acquire()
        assert '"holder":"pid' in await stream.next("rows")
        lock.release()
        assert '"holder":""' in await stream.next("rows")
        await stream.leave()


async def test_one_that_cannot_be_read_for_a_while_is_followed_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Viewers are told, answers are no old ones, and what happened meanwhile is on the page once it can be read."""
    stage.write()
    poll, broken = Followed.poll, [False]

    def polled(it: Followed) -> dict[str, Any] | None:
        if broken[0]:
            raise ValueError("a row of a later version")
        return poll(it)

    monkeypatch.setattr(Followed, "poll", polled)
    monkeypatch.setattr(streams, "AGAIN_S", (0.01,))
    async with Site(stage.folder) as site:
        before = (await site.campaign("/board"))["mark"]
        stream = Stream(site, f"{await site.at('/updates')}?after={before}")
        broken[0] = True
        assert "a row of a later version" in await stream.next("failed")
        await stream.next("failed")
        assert "error" in await site.campaign("/board", 503)
        new_best(stage)
        broken[0] = False
        await stream.next("again")
        assert (await site.campaign("/board"))["seq"] > int(before.partition("-")[0])
        await stream.leave()


async def test_streams_are_bounded(stage: Stage) -> None:
    """The next one is refused and told to come back; when one leaves there is room."""
    stage.write()
    async with Site(stage.folder, most_viewers=2) as site:
        address = await site.at("/updates")
        held = [Stream(site, address), Stream(site, "/api/updates")]
        await held[0].next("again")
        await held[1].next("rows")
        answer = await asked(site.app, address, headers=site.headers)
        assert (answer.status, answer.headers["retry-after"]) == (503, "30")
        assert (await site.campaign("/board"))["count"] == 5
        await held.pop().leave()
        held.append(Stream(site, address))
        await held[1].next("again")
        for stream in held:
            await stream.leave()


async def test_one_who_asks_while_the_server_ends_is_answered(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign that is being read then is closed again, and nobody who waits for it waits for ever."""
    stage.write()
    begun, goes_on, closed = asyncio.Event(), threading.Event(), []
    loop, read, close = asyncio.get_running_loop(), Followed.read, Followed.close

    def slow(it: Followed) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(60)
        read(it)

    def noted(it: Followed) -> None:
        closed.append(it)
        close(it)

    monkeypatch.setattr(Followed, "read", slow)
    monkeypatch.setattr(Followed, "close", noted)
    async with asyncio.timeout(60):
        site = await Site(stage.folder).__aenter__()
        name = next(iter(find_campaigns([stage.folder])))
        waiting = [asyncio.create_task(site.get(f"/api/campaign/{name}", 404)) for _ in range(2)]
        await begun.wait()
        ending = asyncio.create_task(site.server.close())
        await asyncio.sleep(0)
        goes_on.set()
        await ending
        assert [(await it)["error"] for it in waiting] == ["the server ends"] * 2
    assert len(closed) == 1


async def test_a_viewer_that_does_not_keep_up_starts_again() -> None:
    """What waits for it is bounded, whatever happens."""
    viewer = Viewer()
    for number in range(1000):
        viewer.give(written("update", {"seq": number}))
    viewer.give(None)
    found = [message async for message in viewer.messages()]
    assert len(found) <= 64
    assert any(b"event: again" in message for message in found)


def test_an_audience_has_an_end() -> None:
    audience = Audience(1)
    with audience.seat(Viewer()), pytest.raises(TooMany), audience.seat(Viewer()):
        pass
    with audience.seat(Viewer()):
        assert audience.count == 1


async def test_t103_of_a_full_room_goes_who_has_most_of_it() -> None:
    """By address, then by session, the newest first; one who is alone is never sent away, nor comes in above others."""
    audience, seats = Audience(4), contextlib.ExitStack()
    viewers = [Viewer("a", "alone"), *(Viewer("b", name) for name in ("x", "x", "y"))]
    for viewer in viewers:
        seats.enter_context(audience.seat(viewer))
    assert not audience.has_room(Viewer("b", "x"))
    assert audience.has_room(Viewer("c", "z"))
    seats.enter_context(audience.seat(Viewer("c", "z")))
    assert (audience.count, audience.has_room(Viewer("c", "z"))) == (4, False)
    for viewer in viewers:
        viewer.give(b"still here")
        viewer.give(None)
    heard = [[message async for message in viewer.messages()] for viewer in viewers]
    assert heard == [[b"still here"], [b"still here"], [], [b"still here"]]
    seats.close()
    assert audience.count == 0


async def test_t103_who_looks_takes_no_stream_of_who_acts(stage: Stage) -> None:
    """Nor all those of another one who looks; and who acts leaves streams to others, too."""
    stage.write()
    async with Site(stage.folder, most_viewers=3, control=True) as site:
        greedy, other = [await site.enter() for _ in range(2)]
        address = await site.at("/updates")
        held = [Stream(site, address, greedy) for _ in range(3)]
        for stream in held:
            await stream.next("again")
        acting = Stream(site, address)
        await acting.next("again")
        assert (await asked(site.app, address, headers=greedy)).status == 503
        late = Stream(site, address, other)
        await late.next("again")
        async with asyncio.timeout(60):
            await held[2].over
        for stream in (acting, late, *held[:2]):
            await stream.leave()


@pytest.fixture
def goes_on(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until it is set, a look at what is live hangs."""
    event, run = threading.Event(), Followed.live

    def live(it: Followed) -> Any:
        assert event.wait(60)
        return run(it)

    monkeypatch.setattr(Followed, "live", live)
    return event


async def test_t103_who_looks_takes_no_turn_of_who_acts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, goes_on: threading.Event
) -> None:
    """Requests that take long wait among their own kind, and are refused where very many wait."""
    monkeypatch.setattr(server, "WAITING", 100)
    stage.write()
    async with asyncio.timeout(100), Site(stage.folder, control=True) as site:
        greedy, address = await site.enter(), await site.at("/live")
        slow = [asyncio.create_task(asked(site.app, address, headers=greedy)) for _ in range(100)]
        refused = [await it for it in itertools.islice(asyncio.as_completed(slow), 36)]
        assert {it.status for it in refused} == {503}
        assert (await site.campaign("/acts"))["acts"]
        goes_on.set()
        assert sorted(it.status for it in await asyncio.gather(*slow)) == [200] * 64 + [503] * 36


async def test_t103_a_campaign_that_hangs_takes_no_place_of_others(stage: Stage, goes_on: threading.Event) -> None:
    """However often it is asked for, all else is answered to those who look."""
    stage.write()
    async with asyncio.timeout(100), Site(stage.folder, control=True) as site:
        looks, address = await site.enter(), await site.at("/live")
        hung = [asyncio.create_task(asked(site.app, address, headers=looks)) for _ in range(60)]
        refused = [await it for it in itertools.islice(asyncio.as_completed(hung), 51)]
        assert {(it.status, it.headers["retry-after"]) for it in refused} == {(503, "2")}
        among = [asked(site.app, "/api/campaigns", headers=looks) for _ in range(50)]
        assert {it.status for it in await asyncio.gather(*among)} == {200}
        goes_on.set()
        assert [it.status for it in await asyncio.gather(*hung)].count(200) == 9
        assert (await asked(site.app, address, headers=looks)).status == 200


def test_no_text_ends_a_message() -> None:
    """Lines of others, their ends and their direction stay inside one line of ASCII."""
    message = written("update", {"text": "a\n\nevent: again\r\ndata: x\u2028\u202e"}, "7-a")
    assert message.count(b"\n") == 4
    assert message.isascii()


async def test_the_kernel_tells_of_writes(tmp_path: Path) -> None:
    """Of those in the folder, until nobody wants to hear of it; a folder that is not there is none."""
    notices = Notices(asyncio.get_running_loop())
    heard: asyncio.Queue[str] = asyncio.Queue()
    end = notices.watch(tmp_path, heard.put_nowait)
    assert end
    assert notices.watch(tmp_path / "nothing", heard.put_nowait) is None
    (tmp_path / "file").write_text("x")
    async with asyncio.timeout(60):
        assert await heard.get() == "file"
    end()
    notices.close()


async def test_live_news_go_on_after_a_fault(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever one look at the logs fails with: the viewer is told, and the next look is made."""
    stage.write()
    (stage.campaign / "live").mkdir()
    faults: list[Exception] = [KeyError("a node"), OSError("a disk")]
    live = Followed.live

    def failing(it: Followed) -> dict[str, Any]:
        if faults:
            raise faults.pop()
        return live(it)

    monkeypatch.setattr(Followed, "live", failing)
    monkeypatch.setattr(streams, "LIVE_GAP_S", 0.01)
    async with Site(stage.folder) as site:
        stream = Stream(site, await site.at("/updates"))
        await stream.next("again")
        for number, told in enumerate(("a disk", "KeyError", "1.1.1-1")):
            (stage.campaign / "live" / "1.1.1-1.log").write_text("x" * number)
            assert told in await stream.next("live" if number == 2 else "failed")
        await stream.leave()


async def test_one_that_is_put_out_hears_no_more(stage: Stage) -> None:
    """A code that was shown twice ends the stream of the one that was faster, too."""
    stage.write()
    async with Site(stage.folder) as site:
        address, code = await site.at("/updates"), site.entrance.code()
        answer = await asked(site.app, f"/?code={code}")
        stream = Stream(site, address, [("host", HOST), ("cookie", answer.headers["set-cookie"].partition(";")[0])])
        await stream.next("again")
        assert (await asked(site.app, f"/?code={code}")).status == 401
        new_best(stage)
        async with asyncio.timeout(60):
            await stream.over
        assert stream.sent.empty()
