"""What the page asks of a campaign: the requests of the command line, by one who was let in to act alone (T94)."""

import asyncio
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.ledger import Ledger
from orchestrator.views.campaign.asking import person
from orchestrator.views.page.acting import ACTS, asked_by
from orchestrator.views.page.followed import Followed
from orchestrator.views.page.guard import KEY, LONGEST_BODY
from orchestrator.views.page.resuming import LOG, Resumer
from orchestrator.views.page.waking import Notices
from tests.orchestrator.views.campaign.builder import campaign
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage, stage
from tests.orchestrator.views.page.conftest import (
    CONTROL,
    HOST,
    ORIGIN,
    TOKEN,
    Answer,
    Headers,
    Site,
    Stream,
    asked,
    cookie_of,
    followed,
    grow,
)
from tests.orchestrator.views.page.stories import EVIL, proposed_by_models

__all__ = ["stage"]  # a fixture, of commands

DIFF = '--- a/params.json\n+++ b/params.json\n@@ -1 +1 @@\n-{}\n+{"rows": 9}\n'

INJECTED = {"text": DIFF, "on": "1", "description": "nine rows"}

Changed = dict[str, str | None]


class Hand:
    """One who acts through the page, as the browser sends it; `but` replaces or leaves out headers."""

    def __init__(self, site: Site, headers: Headers, key: str) -> None:
        self.site, self.headers, self.key = site, headers, key

    @classmethod
    async def at(cls, site: Site) -> "Hand":
        me = await site.get("/api/me")
        assert me["acts"] is True
        return cls(site, site.headers, me["key"])

    async def sees(self, campaign: str) -> str:
        board = await asked(self.site.app, f"/api/campaign/{campaign}/board", headers=self.headers)
        return str(board.json()["mark"])

    async def act(self, kind: str, body: Any = None, *, method: str = "POST", but: Changed | None = None) -> Answer:
        found = (await asked(self.site.app, "/api/campaigns", headers=self.headers)).json()
        if not isinstance(body, bytes):
            body = {"seen": await self.sees(found[0]["id"]), **(body or {})}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: Changed = {
            **dict(self.headers),
            "origin": ORIGIN,
            "content-type": "application/json",
            KEY: self.key,
            "content-length": str(len(data)),
            "sec-fetch-site": "same-origin",
        }
        sent |= {name.replace("_", "-"): value for name, value in (but or {}).items()}
        given = [(name, value) for name, value in sent.items() if value is not None]
        target = f"/api/campaign/{found[0]['id']}/ask/{kind}"
        return await asked(self.site.app, target, method=method, headers=given, body=data)


def inbox(stage: Stage) -> list[tuple[str, dict[str, Any]]]:
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        return [(request.kind, json.loads(request.body)) for request in ledger.requests()]


async def test_t99_nobody_acts_on_forged_rows(stage: Stage) -> None:
    """Rows that the chain does not seal are a reason, not a base to act on."""
    stage.write()
    async with Site(stage.folder, control=True) as site:
        hand = await Hand.at(site)
        with sqlite3.connect(stage.campaign / "ledger.sqlite3") as raw:
            raw.execute("""UPDATE projection SET body = replace(body, '"1.1"', '"1.2"') WHERE kind = 'run'""")
        for kind, body in (("pause", {}), ("accept", {"node": "1.1"}), ("resume", {})):
            answer = await hand.act(kind, body)
            assert answer.status == 409
            assert "changed beside its events" in answer.json()["error"]
    assert inbox(stage) == []


async def test_each_act_is_the_command_lines_request(tmp_path: Path) -> None:
    """The same kind and the same body, with who asked; the answer says what will happen and when."""
    made = Stage(tmp_path / "task")
    story = made.story = proposed_by_models(made.folder)
    at_work = next(iter(story.state.unfinished))
    stalled = story.attempt("1", None)
    story.tell(e.AttemptQuarantined(node=stalled, ending=Ending.STALLED, why="3 stalls"))
    waits = story.opened("1")
    story.score(waits, {"score": 9.0, "seconds": 1.0})
    story.tell(e.PromotionAsked(node=waits, over="1"))
    made.write()
    async with Site(made.folder, control=True) as site:
        hand = await Hand.at(site)
        injected = {"text": DIFF, "on": "1", "description": "nine rows"}
        acts: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
            ("pause", {}, "pause", {"paused": True}),
            ("go-on", {}, "pause", {"paused": False}),
            ("steer", {"text": " prefer numpy "}, "steer", {"text": "prefer numpy"}),
            ("inject", injected, "inject", injected),
            ("release", {"node": stalled}, "release", {"node": stalled}),
            ("requeue", {"node": stalled}, "requeue", {"node": stalled}),
            ("cancel", {"node": at_work}, "cancel", {"node": at_work}),
            ("accept", {"node": waits, "why": "good"}, "accept", {"node": waits, "why": "good"}),
            ("decline", {"node": waits}, "decline", {"node": waits, "why": ""}),
        ]
        assert {kind for kind, *_ in acts} == set(ACTS)
        with made.lock():
            for number, (kind, body, *_) in enumerate(acts, 1):
                answer = await hand.act(kind, {**body, "name": "ada"})
                assert answer.status == 200, (kind, answer.body)
                assert answer.json()["request"] == number
                assert "within a second; pid" in answer.json()["said"]
    by = {"by": f"ada, at the page of {person()}"}
    assert inbox(made) == [(asked, body | by) for *_, asked, body in acts]


async def test_without_the_flag_nobody_acts(stage: Stage) -> None:
    """There is no such address, no other method, and nothing that a page could be shown to act with."""
    stage.write()
    async with Site(stage.folder) as site:
        assert await site.get("/api/me") == {"acts": False, "key": ""}
        hand = Hand(site, site.headers, "")
        with stage.lock():
            assert (await hand.act("pause")).status == 405
            assert (await hand.act("pause", method="GET")).status == 404
        (row,) = await site.get("/api/campaigns")
        assert (await asked(site.app, f"/api/campaign/{row['id']}/acts", headers=site.headers)).status == 404
    assert inbox(stage) == []


async def test_one_who_looks_does_not_act(stage: Stage) -> None:
    """The token to look opens a session that cannot, whatever key it shows; so does a code."""
    stage.write()
    async with Site(stage.folder, control=True) as site:
        key = (await site.get("/api/me"))["key"]
        code = await asked(site.app, f"/?code={site.entrance.code()}")
        by_code: Headers = [("host", HOST), ("cookie", code.headers["set-cookie"].partition(";")[0])]
        for headers in (await cookie_of(site.app, TOKEN), by_code):
            me = (await asked(site.app, "/api/me", headers=headers)).json()
            assert me == {"acts": False, "key": ""}
            with stage.lock():
                assert (await Hand(site, headers, key).act("pause")).status == 403
        nobody = Hand(site, [("host", HOST)], key)
        nobody.headers = [("host", HOST), ("cookie", f"blastdoor_8420={CONTROL}")]
        answer = await asked(site.app, "/api/campaign/x/ask/pause", method="POST", headers=nobody.headers)
        assert answer.status == 401
    assert inbox(stage) == []


SENT_BY_OTHERS: list[tuple[int, Changed]] = [
    (403, {"origin": None}),
    (403, {"origin": "null"}),
    (403, {"origin": "http://evil.example"}),
    (403, {"origin": "http://127.0.0.1:9999"}),
    (403, {"origin": f"https://{HOST}"}),
    (403, {"origin": f"{ORIGIN}.evil.example"}),
    (403, {"origin": "http://localhost:8420"}),
    (421, {"host": "evil.example"}),
    (421, {"host": "127.0.0.1:9999"}),
    (403, {"sec_fetch_site": "cross-site"}),
    (403, {"sec_fetch_site": "same-site"}),
    (415, {"content_type": None}),
    (415, {"content_type": "application/x-www-form-urlencoded"}),
    (415, {"content_type": "multipart/form-data; boundary=x"}),
    (415, {"content_type": "text/plain"}),
    (403, {"x_blastdoor_key": None}),
    (403, {"x_blastdoor_key": ""}),
    (403, {"x_blastdoor_key": "another\xff"}),
    (411, {"content_length": None}),
    (411, {"content_length": "-1"}),
    (413, {"content_length": str(LONGEST_BODY + 1)}),
    (413, {"content_length": "9" * 30}),
]


async def test_another_site_does_not_act(stage: Stage) -> None:
    """Though the browser sends its cookie: each of these requests is refused before anything of it is read. Nothing is
    changed by another method, a GET above all; and no preflight is answered.
    """
    stage.write()
    async with Site(stage.folder, control=True) as site:
        hand = await Hand.at(site)
        with stage.lock():
            for status, but in SENT_BY_OTHERS:
                assert (await hand.act("pause", but=but)).status == status, but
            for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"):
                answer = await hand.act("pause", method=method)
                assert answer.status == 405
                assert not [name for name in answer.headers if name.startswith("access-control")]
            assert inbox(stage) == []
            assert (await hand.act("pause")).status == 200
    assert len(inbox(stage)) == 1


NO_REQUESTS: list[tuple[str, Any]] = [
    ("dance", {}),
    ("pause", b""),
    ("pause", b"[]"),
    ("pause", b"[" * 100_000),
    ("pause", b'{"paused": NaN, "name": 1}'),
    ("pause", {"paused": True}),
    ("pause", {"name": "x" * 61}),
    ("pause", {"by": "root"}),
    ("pause", b"{}"),
    ("pause", {"seen": 1}),
    ("cancel", {}),
    ("cancel", {"node": 1}),
    ("cancel", {"node": ["1.1"]}),
    ("steer", {"text": "half \ud800"}),
    ("steer", b'{"text": "\xff"}'),
    ("inject", {"text": DIFF}),
    ("resume", {"caps": {"attempts": 5}}),
]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("steer", {"text": "prefer numpy"}, "reads no instructions"),
    ("inject", {"text": "hello", "description": "x"}, "no change found"),
    ("inject", {"text": DIFF, "on": "1.9", "description": "x"}, "there is no node 1.9"),
    (
        "inject",
        {"text": DIFF.replace("params.json", "../../etc/passwd"), "on": "1", "description": "x"},
        "unsafe name",
    ),
    ("inject", {"text": "x" * 1_100_000, "description": "x"}, "at most 1MiB"),
    ("cancel", {"node": "1.1"}, "has ended already"),
    ("cancel", {"node": HOSTILE}, "node"),
    ("release", {"node": "1.1"}, "is not in quarantine"),
    ("accept", {"node": "1.1"}, "does not wait"),
    ("pause", {}, "nobody works on it"),
    ("resume", {"caps": {"attempts": "many"}}, "attempts"),
    ("resume", {"caps": {"proposer": "llm"}}, "is no cap"),
    ("resume", {"caps": {"usd": "--by=root"}}, "usd"),
]


async def test_what_is_refused_is_one_line(stage: Stage) -> None:
    """What is no request, and what the command line refuses, in the same words; nothing is left in the inbox."""
    stage.write()
    async with Site(stage.folder, control=True) as site:
        hand = await Hand.at(site)
        for kind, refused, line in REFUSED:
            answer = await hand.act(kind, refused)
            told = answer.json()["error"]
            assert (answer.status, line in told, told.isprintable()) == (409, True, True), (kind, told)
        with stage.lock():
            for kind, body in NO_REQUESTS:
                answer = await hand.act(kind, body)
                assert answer.status in (400, 404), (kind, body)
                assert answer.json()["error"].isprintable()
                assert len(answer.body) < 500
    assert inbox(stage) == []


async def test_hostile_words_are_kept_as_words(tmp_path: Path) -> None:
    """What somebody steers with, and what they call themselves, reaches the ledger and every page as text."""
    made = Stage(tmp_path / "task")
    made.story = proposed_by_models(made.folder)
    made.write()
    async with Site(made.folder, control=True) as site:
        answer = await (await Hand.at(site)).act(
            "steer", {"text": f"{EVIL}\u202e\x1b[2J", "name": "\x1b[31m<b>\n\u202e"}
        )
        assert answer.status == 200
        assert answer.body.isascii()
    ((_, body),) = inbox(made)
    assert body["text"] == f"{EVIL}\u202e\x1b[2J"
    assert body["by"].isprintable()
    assert body["by"].startswith("\\x1b[31m<b>")
    assert asked_by(" ") == f"somebody, at the page of {person()}"


async def test_two_at_once(stage: Stage) -> None:
    """Both are heard, each with a number of its own: what the second one comes to is for the orchestrator to say."""
    stage.write()
    async with Site(stage.folder, control=True) as site:
        one = await Hand.at(site)
        two = Hand(site, await cookie_of(site.app, CONTROL), "")
        two.key = (await asked(site.app, "/api/me", headers=two.headers)).json()["key"]
        assert one.key != two.key
        assert (await Hand(site, two.headers, one.key).act("cancel", {"node": "1.1.1"})).status == 403
        with stage.lock():
            acts = [hand.act("cancel", {"node": "1.1.1", "name": name}) for hand, name in ((one, "a"), (two, "b"))]
            answers = await asyncio.gather(*acts)
    assert [it.status for it in answers] == [200, 200]
    assert {it.json()["request"] for it in answers} == {1, 2}
    assert {body["by"].partition(",")[0] for _, body in inbox(stage)} == {"a", "b"}


async def test_a_campaign_that_stopped_meanwhile(stage: Stage) -> None:
    """Its page may be old: what is asked is checked against what is, and told when it will be done."""
    stage.write()
    async with Site(stage.folder, control=True) as site:
        hand = await Hand.at(site)
        with stage.lock():
            assert (await site.campaign("/acts"))["acts"] == ["pause", "inject"]
        assert "nobody works on it" in (await hand.act("pause")).json()["error"]
        assert (await site.campaign("/acts"))["acts"] == ["resume", "inject"]
        told = (await hand.act("cancel", {"node": "1.1.1"})).json()["said"]
        assert told == "request 1: 1.1.1 (open) is cancelled at the next blastdoor resume; nobody works on it now"
        assert (await site.campaign("/acts?node=1.1.1"))["acts"] == ["cancel"]
        written = len(stage.story.events)
        stage.story.end("1.1.1", Ending.CANCELLED)
        grow(stage, written)
        assert (await site.campaign("/acts?node=1.1.1"))["acts"] == ["requeue"]
        assert "has ended already" in (await hand.act("cancel", {"node": "1.1.1"})).json()["error"]
        await site.campaign("/acts?node=1.99", 404)


async def test_an_act_is_for_the_campaign_that_is_seen(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older look at the same campaign will do. Another one takes its place, with nodes of the same names: what was
    meant for the old one is refused, whether the server knows of the change already (nobody follows) or not (somebody
    does), and however new the page is.
    """
    monkeypatch.setattr(Notices, "watch", lambda *_: lambda: None)  # one who follows does not hear of the change
    stage.write()
    other = Stage(stage.folder.parent / "other")
    other.story = campaign(30, folder=other.folder)
    other.story.opened("1.1")
    other.write()
    async with Site(stage.folder, control=True) as site:
        hand = await Hand.at(site)
        (row,) = await site.get("/api/campaigns")
        older, written = await hand.sees(row["id"]), len(stage.story.events)
        stage.story.attempt("1", 3.0)
        grow(stage, written)
        old = await hand.sees(row["id"])
        assert old != older
        assert (await hand.act("inject", {**INJECTED, "seen": older})).status == 200
        stream = Stream(site, f"/api/campaign/{row['id']}/updates")
        await stream.next("again")
        stage.campaign.rename(stage.folder / "aside")
        other.campaign.rename(stage.campaign)
        acts: list[tuple[str, dict[str, Any]]] = [("cancel", {"node": "1.1.1"}), ("inject", INJECTED), ("resume", {})]
        for known in (False, True):
            for kind, body in acts:
                answer = await hand.act(kind, {**body, "seen": old})
                assert (answer.status, "another campaign is here now" in answer.json()["error"]) == (409, True), kind
            if not known:
                await stream.leave()
        for bad in ("", "1", "-", "1-", "x-y", f"{'9' * 30}-{'0' * 64}", f"0-{'0' * 64}", f"1-{'0' * 64}"):
            assert (await hand.act("inject", {**INJECTED, "seen": bad})).status == 409
        assert inbox(stage) == []
        assert (await hand.act("inject", INJECTED)).status == 200
    assert [kind for kind, _ in inbox(stage)] == ["inject"]


# Stand for `blastdoor resume`: one takes the campaign over and goes on, one cannot.
_TAKES = """
import os, sys, time
from pathlib import Path
from orchestrator.ledger import Ledger
with Ledger.open(Path(sys.argv[-1]) / ".blastdoor" / "ledger.sqlite3") as ledger:
    ledger.seize(f"pid {os.getpid()} on here")
    print(sys.argv[1:])
    sys.stdout.flush()
    time.sleep(600)
"""
_FAILS = "import sys; print('starting', file=sys.stderr); sys.exit('blastdoor: no engine \\x1b[2J answers')"


def resumed(it: Followed, code: str, caps: dict[str, str]) -> str:
    resumer = Resumer(None, (sys.executable, "-c", code))
    return resumer.resume(it.found, it.reading, caps, "ada, at the page")


def test_resume_starts_a_process_of_its_own(stage: Stage) -> None:
    """With the caps as the command line takes them and who asked; it is told once it has taken the campaign over. It is
    in no session of ours, so that it goes on when the server ends.
    """
    it = followed(stage)
    line = resumed(it, _TAKES, {"attempts": "40", "usd": " $5 ", "wall": ""})
    pid = int(line.rpartition(" ")[2])
    try:
        assert line == f"it goes on, as process {pid}"
        assert os.getsid(pid) == pid
        log = stage.campaign / LOG
        given = ["resume", "--attempts=40", "--usd=$5", "--by=ada, at the page", "--", str(stage.folder.resolve())]
        assert str(given) in log.read_text()
        assert stat.S_IMODE(log.stat().st_mode) == 0o600
    finally:
        os.kill(pid, signal.SIGKILL)
        it.close()


def test_a_resume_that_fails_says_why(stage: Stage) -> None:
    """In its own last line, and with what to type; so does one that cannot be begun."""
    it = followed(stage)
    with pytest.raises(click.UsageError) as refused:
        resumed(it, _FAILS, {"attempts": "9"})
    assert refused.value.message.startswith("no engine \\x1b[2J answers; blastdoor resume --attempts=9 ")
    (stage.campaign / LOG).unlink()
    (stage.campaign / LOG).symlink_to(stage.folder / "elsewhere")
    with pytest.raises(click.UsageError, match="cannot be written"):
        resumed(it, _TAKES, {})
    assert not (stage.folder / "elsewhere").exists()
    it.close()


def test_a_pipe_in_the_place_of_the_log_holds_nobody_up(stage: Stage) -> None:
    """In a folder of somebody else; also where they read from it."""
    it = followed(stage)
    os.mkfifo(stage.campaign / LOG)
    with ThreadPoolExecutor() as pool:
        told = pool.submit(resumed, it, _FAILS, {})
        try:
            with pytest.raises(click.UsageError, match="cannot be written"):
                told.result(60)
        finally:
            reader = os.open(stage.campaign / LOG, os.O_RDONLY | os.O_NONBLOCK)
        with pytest.raises(click.UsageError, match="cannot be written"):
            pool.submit(resumed, it, _FAILS, {}).result(60)
    os.close(reader)
    it.close()


def test_an_earlier_process_of_the_same_number_is_not_taken_for_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one that worked on it had that number, too, and died; the new one fails, and that is told."""
    it = followed(stage)
    process = subprocess.Popen(["sh", "-c", "sleep 0.5; exit 3"])
    with Ledger.open(stage.campaign / "ledger.sqlite3") as ledger:
        ledger.seize(f"pid {process.pid} on here")
    (stage.campaign / LOG).write_text("no engine answers\n")
    monkeypatch.setattr(Resumer, "start", lambda *_: process)
    with pytest.raises(click.UsageError, match="no engine answers"):
        resumed(it, "", {})
    it.close()


def test_two_who_resume_start_one(stage: Stage) -> None:
    """And one that is at work is not started a second time. A server that ends waits for none that it started: it goes
    on, only nobody waits for it to take the campaign over.
    """
    it = followed(stage)
    resumer = Resumer(None, (sys.executable, "-c", "import time; time.sleep(600)"))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(resumer.resume, it.found, it.reading, {}, "ada")
        try:
            while not (stage.campaign / LOG).exists() and not first.done():
                time.sleep(0.01)
            with pytest.raises(click.UsageError, match="somebody else lets it go on"):
                resumer.resume(it.found, it.reading, {}, "ada")
        finally:
            resumer.close()
        line = first.result(60)
    os.kill(int(line.partition("process ")[2].partition(",")[0]), signal.SIGKILL)
    assert "does not work on it yet" in line
    with stage.lock():
        it.run(Followed.poll)
        with pytest.raises(click.UsageError, match="works on it already"):
            resumer.resume(it.found, it.reading, {}, "ada")
    it.close()
