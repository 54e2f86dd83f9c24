"""`blastdoor serve` from outside: it says where it is, answers, and ends when it is told to."""

import json
import signal
import socket
import subprocess
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from orchestrator.views.cli import cli
from tests.clicking import runner
from tests.orchestrator.views.campaign.conftest import Stage
from tests.started import Started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_cleanly(tmp_path: Path, number: int) -> None:
    """An address with a token, a campaign, and exit code 0 by Ctrl-C, also while somebody listens."""
    made = Stage(tmp_path / "task")
    made.story.open()
    made.write()
    with Started("serve", "--port", "0", "--no-open", tmp_path, stdout=subprocess.PIPE) as started:
        address = started.said.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        base = address.partition("?")[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        assert b"<title>Blastdoor</title>" in browser.open(address).read()
        (row,) = json.load(browser.open(f"{base}api/campaigns"))
        assert row["name"] == "circle-packing"
        stream = browser.open(f"{base}api/campaign/{row['id']}/updates")
        assert stream.readline() == b"event: again\n"
        started.send_signal(number)
        assert started.wait() == 0


def test_what_cannot_be_is_one_line(tmp_path: Path) -> None:
    """A folder that is none, a port that somebody has."""
    (tmp_path / "file").write_text("x")
    ran = runner().invoke(cli, ["serve", str(tmp_path / "file")])
    assert (ran.exit_code, ran.output.strip().splitlines()[-1]) == (
        2,
        f"Error: {tmp_path / 'file'} is not a folder; name one with campaigns in it",
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = runner().invoke(cli, ["serve", "--port", str(port), str(tmp_path)])
    assert ran.exit_code == 2
    assert f"cannot listen on port {port}" in ran.output
