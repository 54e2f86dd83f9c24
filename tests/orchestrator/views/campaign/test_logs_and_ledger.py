"""What was printed, what happens, and what is recorded."""

import json
import random
from pathlib import Path

import pytest

from orchestrator.ledger import Artifacts, Entry, Ledger
from orchestrator.text import printable_lines
from orchestrator.views.campaign import logs
from orchestrator.views.campaign.ledger import referenced
from orchestrator.views.campaign.live import LiveLogs
from orchestrator.views.campaign.tail import Tail, Told, follow
from tests.clicking import runner
from tests.orchestrator.views.campaign.conftest import Stage


def test_the_log_of_a_node(stage: Stage) -> None:
    """The stored log of its last trial, whole or its last lines; colours and bytes that are no text are written out
    (T57). Without a node it is the last events, one line for each, the newest last.
    """
    assert stage.run("logs", "1.1") == "step 1\nstep 2\nstep 3\n"
    assert stage.run("logs", "1.1", "--lines", "1") == "step 3\n"
    assert stage.json("logs", "1.1")["lines"] == ["step 1", "step 2", "step 3"]
    assert stage.run("logs", "1.2") == "\\x1b[31mred\\x1b[0m\n\\xff\\xfe\n"
    _, last = stage.run("logs", "--lines", "2").splitlines()
    assert "trial 1.1.1-1 starts (submit, draft 1)" in last
    assert json.loads(stage.run("logs", "--lines", "1", "--json"))["node"] == "1.1.1"


def test_no_log_yet(stage: Stage) -> None:
    """Nothing to print is no error: a line beside the output says why, and how to follow a node at work."""
    assert stage.run("logs", "1.1.1") == ""
    assert stage.json("logs", "1.1.1")["lines"] == []
    said = "no log of 1.1.1 is stored: {}\n"
    with stage.lock():
        told = runner().invoke(logs.command, ["1.1.1", str(stage.folder)])
    assert (told.stdout, told.stderr) == ("", said.format("it runs; logs -f follows it"))
    told = runner().invoke(logs.command, ["1.1.1", str(stage.folder)])
    assert told.stderr == said.format("it is not done, and nobody works on it now")


def test_following_events_and_chambers(stage: Stage) -> None:
    """Events and live lines come as they are written; a chamber that vanishes leaves its last words."""
    stage.write()
    live = stage.campaign / "live"
    live.mkdir()
    log = live / "1.1.1-1.log"
    log.write_text("early\n")
    seen: list[str] = []
    moments = iter(["append", "event", "vanish", "end"])

    def sleep(_: float) -> None:
        match next(moments):
            case "append":
                log.write_text("early\nmore\nhalf")
            case "event":
                writer.append(
                    [Entry("pause set", '{"kind":"pause set","paused":true}')], {}, "2025-03-01T10:00:00+00:00"
                )
            case "vanish":
                with log.open("a") as stream:
                    stream.write(" a line\x1b[2J\n")
                log.unlink()
            case "end":
                raise KeyboardInterrupt

    with Ledger.open(stage.campaign / "ledger.sqlite3") as writer, LiveLogs(live) as chambers:
        writer.seize("a test")

        def show(told: Told) -> None:
            seen.append(told.text)

        with pytest.raises(KeyboardInterrupt):
            follow(Tail(writer, chambers), 1, show, sleep)
    assert [line.rpartition("  ")[2] for line in seen] == [
        "trial 1.1.1-1 starts (submit, draft 1)",
        "1.1.1-1 | early",
        "1.1.1-1 | more",
        "paused",
        "1.1.1-1 | half a line\\x1b[2J",
    ]


def test_following_one_node(stage: Stage) -> None:
    """Only what is about it, however long ago that was."""
    stage.write()
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger, LiveLogs(stage.campaign) as live:
        told = Tail(ledger, live, node="1").begin(3)
    assert len(told) == 3
    assert all(line.record["node"] == "1" for line in told)


def test_live_files_come_and_go(tmp_path: Path) -> None:
    """A file of the same name that is new is read from its start; links and folders are left alone. A program that
    never ends its line cannot fill the memory.
    """
    live = LiveLogs(tmp_path)
    assert live.poll() == []
    (tmp_path / "a.log").write_text("1\n")
    (tmp_path / "b.log").symlink_to(tmp_path / "a.log")
    (tmp_path / "c.log").mkdir()
    assert live.poll() == [("a", "1")]
    (tmp_path / "new").write_text("2\n")
    (tmp_path / "new").rename(tmp_path / "a.log")
    assert live.poll() == [("a", "2")]
    live.close()
    assert LiveLogs(tmp_path / "nowhere").poll() == []
    (tmp_path / "a.log").write_bytes(b"x" * 1_000_000)
    with LiveLogs(tmp_path) as live:
        lines = [line for _ in range(10) for _, line in live.poll()]
    assert 0 < sum(map(len, lines)) <= 1_000_000


def test_ledger_list(stage: Stage) -> None:
    """Every event is a line, from any record on; JSON has the records as they are. One of a later version is shown by
    its kind, and does not stop the list.
    """
    everything = stage.run("ledger", "list").splitlines()
    assert len(everything) == len(stage.story.events)
    assert len(stage.run("ledger", "list", "--after", "10").splitlines()) == len(everything) - 10
    first = json.loads(stage.run("ledger", "list", "--json").splitlines()[0])
    assert (first["seq"], first["kind"]) == (1, "campaign opened")
    with Ledger.open(stage.campaign / "ledger.sqlite3") as writer:
        writer.seize("later")
        writer.append([Entry("moon landed", '{"kind":"moon landed"}')], {}, "2025-03-01T10:00:00+00:00")
    assert "moon landed (not known to this version)" in stage.run("ledger", "list")
    assert "1.1  ● kept" in stage.run("show", "1.1")


def test_ledger_head_and_verify(stage: Stage, tmp_path: Path) -> None:
    """A head that was kept is found again on the chain; one of another ledger is not."""
    kept = tmp_path / "head.json"
    assert str(kept) in stage.run("ledger", "head", "--out", str(kept))
    assert "without --head its end is not proven" in stage.run("ledger", "verify")
    assert "is the one that was kept" in stage.run("ledger", "verify", "--head", str(kept))
    head = json.loads(kept.read_text())
    kept.write_text(kept.read_text().replace(head["hash"], "0" * 64))
    assert "the chain was written again" in stage.run("ledger", "verify", "--head", str(kept), code=1)
    assert stage.json("ledger", "verify", "--head", str(kept), code=1)["good"] is False


def test_gc_removes_only_what_nothing_names(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stray artifact goes, every other one stays; a dry run only counts. While somebody works it is refused: bytes
    that an event is about to name must not vanish.
    """
    monkeypatch.setattr("orchestrator.views.campaign.ledger.YOUNG_S", -60.0)
    stage.write()
    artifacts = Artifacts(stage.campaign / "artifacts")
    stray = artifacts.put(b"stray")
    count = artifacts.usage().count
    with stage.lock():
        assert "works on this campaign" in stage.refused("ledger", "gc")
    assert stage.json("ledger", "gc", "--dry-run")["removed"] == 1
    assert artifacts.get(stray) == b"stray"
    assert sorted(path.name for path in stage.campaign.iterdir() if "rehearsal" in path.name) == []
    assert stage.json("ledger", "gc")["removed"] == 1
    assert artifacts.usage().count == count - 1
    assert stage.run("logs", "1.1").startswith("step 1")
    assert "+{" in stage.run("diff", "1.1")


def test_referenced_covers_every_field_that_names_an_artifact(stage: Stage) -> None:
    """Task, diff, outputs and log of every node are among them."""
    stage.write()
    state = stage.story.state
    wanted = {state.run.task}
    for node in state.nodes.values():
        wanted |= {node.diff or ""}
    for trial in state.trials.values():
        wanted |= {trial.log or "", trial.outputs or ""}
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        assert wanted - {""} <= referenced(ledger)


def test_the_last_lines_are_those_of_the_whole(tmp_path: Path) -> None:
    artifacts, dice = Artifacts(tmp_path), random.Random(1)
    for ends in (b"", b"\n"):
        text = b"\n".join(b"a" * dice.randrange(100) for _ in range(9000)) + ends
        digest, whole = artifacts.put(text), list(printable_lines(text))
        for lines in (0, 1, 20, 3000, len(whole), len(whole) + 5):
            assert logs.last_lines(artifacts, digest, lines) == whole[max(0, len(whole) - lines) :]
    assert logs.last_lines(artifacts, artifacts.put(b""), 5) == []


@pytest.mark.parametrize("end", [b"\nlast\n", b"last"])
def test_of_a_gigabyte_little_is_read(tmp_path: Path, end: bytes) -> None:
    """Its bytes are not compared with the digest, as on the page."""
    artifacts, digest = Artifacts(tmp_path, longest=1 << 20), "ab" * 32
    path = tmp_path / digest[:2] / digest[2:]
    path.parent.mkdir()
    with path.open("wb") as file:
        file.seek(1 << 30)
        file.write(end)
    (found,) = logs.last_lines(artifacts, digest, 1)
    assert found.endswith("last")
    assert len(found) < 1 << 25
