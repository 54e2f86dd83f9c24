"""The page that acts, as its user meets it: a campaign that was over goes on by a click, in a process of its own."""

import json
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import read_campaign
from orchestrator.domain import events as e
from orchestrator.views.campaign.history import read_moments
from orchestrator.views.page.columns import unpacked
from tests.started import Started, completed

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.touching("page", "recovery")]

HANG_S = 600


class Page:
    """One who opened the acting address."""

    def __init__(self, address: str) -> None:
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._base = self._browser.open(address).geturl()
        self._key = self.get("me")["key"]
        self.id = self.get("campaigns")[0]["id"]

    def get(self, target: str) -> Any:
        return json.load(self._browser.open(f"{self._base}api/{target}"))

    def act(self, kind: str, **body: Any) -> tuple[int, dict[str, Any]]:
        headers = {"content-type": "application/json", "x-blastdoor-key": self._key}
        headers["origin"] = self._base[: self._base.index("/", 8)]
        board = self._browser.open(f"{self._base}api/campaign/{self.id}/board").read()
        seen = unpacked(board)["mark"]
        target = f"{self._base}api/campaign/{self.id}/ask/{kind}"
        data = json.dumps({"seen": seen, **body}).encode()
        try:
            answer = self._browser.open(urllib.request.Request(target, data, headers))  # noqa: S310  our own address
        except urllib.error.HTTPError as error:
            answer = error
        return answer.status, json.load(answer)


def test_a_campaign_goes_on_by_a_click(tmp_path: Path) -> None:
    """With another cap, in a process that outlives the server; who asked is on record. What cannot go on says why."""
    folder = tmp_path / "curve"
    for words in (("init", folder), ("run", folder, "--attempts", "2", "--seed", "3")):
        ran = completed(*words)
        assert ran.returncode == 0, ran.stderr
    with Started("serve", "--port", "0", "--no-open", "--control", tmp_path, stdout=-1) as served:
        served.said.readline()
        page = Page(served.said.readline().split()[0])
        status, told = page.act("resume", name="ada", caps={"attempts": "4"})
        assert status == 200, told
        assert "as process" in told["said"] or "attempts" in told["said"]
        served.send_signal(15)
        assert served.wait() == 0
    until = time.monotonic() + HANG_S
    while True:
        with read_campaign(folder) as reading:
            state, holder = reading.state, reading.holder
            started = [event for _, event in read_moments(reading.ledger) if isinstance(event, e.SessionStarted)]
        if len(started) == 2 and not holder:
            break
        assert time.monotonic() < until, "it does not go on"
        time.sleep(0.3)
    assert len([node for node in state.nodes.values() if node.ending]) == 5
    assert started[1].by.startswith("ada, at the page of ")
    assert "attempts 4" in (folder / ".blastdoor" / "resumed.log").read_text()
