"""What is in the file that is handed on, and what is not."""

import base64
import gzip
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from orchestrator.views.page.exported import export_page
from orchestrator.wiring.ledgers import FILE
from tests.orchestrator.views.campaign.conftest import Stage, stage

__all__ = ["stage"]  # a fixture, of commands

_BLOCK = re.compile(r'<script type="text/plain" data-part="[^"]*">([^<]*)</script>')
VALUE = "q8Zr2Lw9vXk4TyB7nJ3d"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
PEM = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----\n"


def recorded(*folders: Path) -> list[Any]:
    """The index, then the answers."""
    return [json.loads(gzip.decompress(base64.b64decode(it))) for it in _BLOCK.findall(export_page(folders, None))]


@pytest.mark.parametrize(
    "log",
    [
        f"key = sk-ant-api03-{VALUE}{VALUE}\n",
        f"begins\nAPI_KEY={VALUE}\nends\n",
        f"API_KEY={VALUE}",
        f"begins\n{PEM}ends\n",
        "token\n" * 10_000 + f"API_KEY={VALUE}\n",
    ],
)
def test_a_log_with_a_secret_is_left_out(stage: Stage, log: str) -> None:
    """Of a known form, given to a name without quotes, over many lines, after very many lines with the word."""
    stage.story.attempt("1", 0.1, log=log.encode())
    stage.write()
    text = json.dumps(recorded(stage.folder))
    assert [it in text for it in (VALUE, BODY, "left out: it looks like", "step 2")] == [False, False, True, True]


def test_a_secret_in_words_of_a_candidate(stage: Stage) -> None:
    """A description, a difference, the name of a case."""
    stage.story.attempt("1", 0.1, description=f"uses API_KEY={VALUE}")
    stage.story.attempt("1", 0.1, files={"key.pem": PEM})
    stage.story.attempt("1", 0.1, verdict={"tasks": {f"API_KEY={VALUE}": 1.0}})
    stage.write()
    text = json.dumps(recorded(stage.folder))
    assert VALUE not in text
    assert BODY not in text


def test_a_secret_in_the_list_of_campaigns(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why one cannot be read is somebody's text, too."""
    row = {"id": "x", "status": "not readable", "why": f"cannot connect to postgresql://me:{VALUE}@db/x"}
    monkeypatch.setattr("orchestrator.views.page.exported.row_of", lambda *_: row)
    stage.write()
    (index,) = recorded(stage.folder)
    assert index["campaigns"] == [{**row, "why": "(left out: it looks like a password in an address)"}]


@pytest.mark.parametrize("body", ["{}", "[]", "no JSON"])
def test_one_that_cannot_be_read_spoils_no_other(tmp_path: Path, body: str) -> None:
    """One node of it is nonsense: it becomes a row that says why, and the others are in the file as a whole."""
    for name in ("bad", "good"):
        made = Stage(tmp_path / name)
        made.story.open().baseline(1.0)
        made.story.attempt("1", 0.5)
        made.story.attempt("1", 0.6)
        made.write()
    with sqlite3.connect(tmp_path / "bad" / ".blastdoor" / FILE) as database:
        database.execute("UPDATE projection SET body = ? WHERE kind = 'node' AND id = '1.1'", (body,))
    index, *blocks = recorded(tmp_path)
    rows = {Path(row["folder"]).name: row for row in index["campaigns"]}
    assert rows["bad"]["status"] == "not readable"
    assert rows["bad"]["why"].isprintable()
    paths = {path for block in blocks for path in block}
    assert all(path.startswith(f"campaign/{rows['good']['id']}") for path in paths)
    assert f"campaign/{rows['good']['id']}/node/1" in paths
