"""T99: rows that were changed beside an intact chain are found by verify, and by whoever would act on them."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from orchestrator.ledger import Forged
from orchestrator.settings import Settings
from orchestrator.views.failing import explained
from tests.clicking import every_command, runner
from tests.orchestrator.views.campaign.conftest import Stage

pytestmark = pytest.mark.usefixtures("on_disk")

FORGED = {
    "champion": """UPDATE projection SET body = replace(body, '"1.1"', '"1.2"') WHERE kind = 'run'""",
    "score": "UPDATE projection SET body = replace(body, '2.0', '9.0') WHERE kind = 'node' AND id = '1.1'",
    "kept": """UPDATE projection SET body = replace(body, '"kept":true', '"kept":false') WHERE id = '1.1'""",
    "commit": "UPDATE projection SET body = (SELECT body FROM projection WHERE id = '1.2') WHERE id = '1.1'",
    "description": "UPDATE projection SET body = replace(body, 'more rows', 'x\\u001b[2J') WHERE kind = 'node'",
    "outputs": "UPDATE projection SET body = replace(body, '\"log\":\"', '\"log\":\"0') WHERE kind = 'trial'",
    "money": "UPDATE projection SET body = replace(body, '5000000', '6000000') WHERE kind = 'accounts'",
    "campaign": "UPDATE projection SET body = replace(body, '\"openings\"', '\"openingz\"') WHERE kind = 'campaign'",
    "census": "DELETE FROM projection WHERE kind = 'census'",
    "another node": "INSERT INTO projection SELECT 'node', '1.9', body FROM projection WHERE kind || id = 'node1.1'",
    "nonsense": "UPDATE projection SET body = '{' WHERE kind = 'node' AND id = '1.1'",
    "no text": "UPDATE projection SET body = CAST(x'ff00' AS TEXT) WHERE kind = 'node' AND id = '1.1'",
    "another kind": "INSERT INTO projection VALUES ('mischief', '1', '{}')",
}


def forge(stage: Stage, statement: str) -> None:
    stage.write()
    with closing(sqlite3.connect(stage.campaign / "ledger.sqlite3", isolation_level=None)) as raw:
        assert raw.execute(statement).rowcount > 0
        assert raw.execute("SELECT count(*) FROM events").fetchone() != (0,)


@pytest.mark.parametrize("statement", FORGED.values(), ids=FORGED)
def test_t99_verify_compares_every_row(stage: Stage, tmp_path: Path, statement: str) -> None:
    """The chain and a kept head are whole, and a row is not what its events add up to."""
    kept = str(tmp_path / "head")
    stage.run("ledger", "head", "--out", kept)
    assert stage.json("ledger", "verify", "--head", kept)["good"]
    forge(stage, statement)
    assert "rows are not what the events add up to" in stage.run("ledger", "verify", "--head", kept, code=1)
    found = stage.json("ledger", "verify", "--head", kept, code=1)
    assert (found["good"], found["record"]) == (False, None)


def append(stage: Stage, rows: str | None) -> None:
    """One more of the last record, whole in itself, as who can write the file can: no trigger is in the way."""
    with closing(sqlite3.connect(stage.campaign / "ledger.sqlite3", isolation_level=None)) as raw:
        last_one = "SELECT seq, at, kind, body, epoch, hash FROM events ORDER BY seq DESC LIMIT 1"
        ((seq, at, kind, body, epoch, last),) = raw.execute(last_one)
        texts = (last, str(seq + 1), at, kind, body, str(epoch), *(() if rows is None else (rows,)))
        sealed = sha256(b"blastdoor ledger 1\n" + b"".join(f"{len(it)}:{it}".encode() for it in texts)).hexdigest()
        record = (seq + 1, at, kind, body, epoch, last, sealed, rows)
        raw.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", record)


def test_t99_no_record_takes_the_seal_away(stage: Stage, tmp_path: Path) -> None:
    """One that says nothing of the rows is refused by the database, and one that says so in an empty text, by all."""
    kept = str(tmp_path / "head")
    stage.run("ledger", "head", "--out", kept)
    forge(stage, FORGED["champion"])
    with pytest.raises(sqlite3.IntegrityError):
        append(stage, None)
    append(stage, "")
    assert not stage.json("ledger", "verify", "--head", kept, code=1)["good"]
    for words in (("status",), ("show", "best"), ("apply", "best")):
        assert "were changed beside its events" in " ".join(stage.run(*words, code=2).split()), words


def files(folder: Path) -> dict[Path, bytes]:
    """All but the database, which even a look at it opens."""
    found = (path for path in folder.rglob("*") if path.is_file() and "ledger.sqlite3" not in path.name)
    return {path: path.read_bytes() for path in found}


ACTS = (
    ("apply", "best"),
    ("export", "--csv", "-"),
    ("export", "--artifact", "out", "best"),
    ("inject", "--file", "params.json", "--as", "params.json"),
    ("release", "1.1"),
    ("requeue", "1.1"),
    ("accept", "1.1"),
    ("decline", "1.1"),
    ("cancel", "1.1.1"),
    ("pause",),
    ("steer", "do better"),
    ("resume",),
    ("minimise", "1.1"),
    ("replay", "1.1"),
    ("ledger", "gc"),
    ("report",),
)
LOOKS = (("status",), ("show", "best"), ("tree",), ("diff", "best"), ("logs", "1.1"), ("chart",))


@pytest.mark.parametrize("words", [*ACTS, *LOOKS], ids=" ".join)
def test_t99_nobody_acts_on_forged_rows(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> None:
    """One line with the exit code of bad input, and nothing is written; who acts looks at long ledgers, too."""
    monkeypatch.chdir(tmp_path)
    if words in ACTS:
        monkeypatch.setattr("orchestrator.wiring.reading.SHORT_LEDGER", 0)
    (tmp_path / "params.json").write_text("{}")
    forge(stage, FORGED["champion"])
    before = files(tmp_path)
    result = runner().invoke(every_command(), [*words, str(stage.folder)], obj=Settings())
    told = explained(result.exception) if isinstance(result.exception, Forged) else (result.output, result.exit_code)
    assert told is not None
    assert (told[1], "were changed beside its events" in " ".join(told[0].split())) == (2, True), told
    assert files(tmp_path) == before
    with closing(sqlite3.connect(stage.campaign / "ledger.sqlite3")) as raw:
        assert raw.execute("SELECT count(*) FROM requests").fetchone() == (0,)
