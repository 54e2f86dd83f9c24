"""What the page is told: boards, updates, views, texts; and that it is what commands say."""

import gzip
import math
import os
import random
import sqlite3
from array import array
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose, Role
from orchestrator.ledger import CampaignLock, Entry, Ledger, LedgerError
from orchestrator.views.campaign.diff import diff_of
from orchestrator.views.campaign.opening import material_of, open_campaign
from orchestrator.views.campaign.points import points_of, stair_of
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.page import board as boards
from orchestrator.views.page import pages, texts
from orchestrator.views.page.board import COLUMNS
from orchestrator.views.page.columns import packed, unpacked
from orchestrator.views.page.finding import find_campaigns
from orchestrator.views.page.followed import Followed, NotThere
from orchestrator.views.page.importance import importance
from orchestrator.views.page.row_state import RowState
from orchestrator.views.page.sparing import LEAST_S, REST, Sparing
from orchestrator.views.page.summary import read_standing, summary_of
from orchestrator.views.render.values import section_values
from tests.orchestrator.views.campaign.builder import Story, campaign
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage, stage
from tests.orchestrator.views.campaign.test_forged import FORGED, append, forge
from tests.orchestrator.views.page.conftest import followed, grow

__all__ = ["stage"]  # a fixture, of commands


def long_stage(folder: Path, count: int = 40) -> Stage:
    made = Stage(folder)
    made.story = campaign(count, folder=folder)
    return made


def test_a_board_has_what_a_chart_has(tmp_path: Path) -> None:
    """The same nodes in the same order, with the same looks, scores and stair."""
    made = long_stage(tmp_path / "task")
    it = followed(made)
    told = it.board.whole()
    with open_campaign(made.folder) as reading:
        metric = it.reading.stored.criteria.order.metrics[0]
        points = points_of(reading.state, metric)
        steps = stair_of(reading.state, points, metric)
        champion = reading.state.champion()
    names = names_of(told)
    assert names == [point.node for point in points]
    assert told["columns"]["metric 0"] == [point.score for point in points]
    assert [told["looks"][at]["word"] for at in told["columns"]["look"]] == [point.look.word for point in points]
    assert [(at + 1, score, names[node]) for at, score, node, _ in told["steps"]] == [
        (step.order, step.score, step.node) for step in steps
    ]
    assert champion
    assert names[told["champion"]] == champion.id


def test_columns_are_the_same_in_bytes(tmp_path: Path) -> None:
    """What a browser unpacks is what the board has: scores to the last bit, times, and what is missing. A column takes
    what its numbers need.
    """
    made = long_stage(tmp_path / "task")
    made.story.attempt("1", 1 / 3)
    it = followed(made)
    told = unpacked(gzip.decompress(it.packed_board(it.reading.state.run)))
    whole = it.board.whole()
    assert told["columns"] == whole["columns"]
    assert {**told, "columns": 0} == {**whole, "columns": 0, "seq": it.seq, "mark": it.mark, "present": True}
    for most in (0, 127, 128, 40_000, 2**31, 2**52):
        values, times = [-1, 0, most], [0.0, -1.0, most / 10]
        data = packed({"count": 3}, {"n": (array("q", values), False), "t": (array("d", times), True)})
        assert unpacked(data)["columns"] == {"n": values, "t": times}


def names_of(told: dict) -> list[str]:  # type: ignore[type-arg]  # as JSON
    """As the page makes them, of parents and numbers."""
    names: list[str] = []
    for parent, child in zip(told["columns"]["parent"], told["columns"]["child"], strict=True):
        names.append(str(child) if parent < 0 else f"{names[parent]}.{child}")
    return names


def test_updates_add_up_to_the_board(tmp_path: Path) -> None:
    """One who takes every update has what one who comes later is told."""
    made = long_stage(tmp_path / "task", 12)
    it = followed(made)
    mine = it.board.whole()
    words: dict[int, str] = {}
    draw = random.Random(4)
    for _ in range(6):
        written = len(made.story.events)
        made.story.attempt("1", round(draw.uniform(0, 4), 3), kept=True, operator=f"op {draw.randint(1, 3)}")
        made.story.attempt("1", None, ending=Ending.FAILED)
        made.story.attempt("1")
        grow(made, written)
        update = it.poll()
        assert update
        words |= dict(update["words"])
        for name, more in update["names"].items():
            mine[name] = [*mine[name], *more][: len(it.board.lists()[name])]
        columns = list(mine["columns"].values())
        for place, *row in update["rows"]:
            for column, value in zip(columns, row, strict=True):
                column[place : place + 1] = [value]
        mine |= {key: update[key] for key in ("steps", "champion") if key in update}
    late = followed_again(made)
    theirs = late.board.whole()
    assert mine["columns"] == theirs["columns"]
    assert len(words) == 18
    told = {late.board.place_of(name): row for name, row in pages.rows(late, late.board.names()).items()}
    assert words == {place: told[place]["description"] or told[place]["why"] for place in words}
    assert (mine["steps"], mine["champion"]) == (theirs["steps"], theirs["champion"])
    assert it.poll() is None
    assert it.summary() | {"last": ""} == late.summary() | {"last": ""}


def followed_again(made: Stage) -> Followed:
    (found,) = find_campaigns([made.folder]).values()
    return Followed(found, None)


def test_views_are_those_of_the_commands(stage: Stage) -> None:
    """The overview says the same from a few rows, sections are those of the report from rows that are read when they
    are asked for, a difference is that of the command, against the parent or any other; nothing in any of them moves a
    cursor, turns the direction of writing or hides, and markup stays the text that it is.
    """
    it = followed(stage)
    with read_standing(it.found, None) as standing:
        assert summary_of(standing) == it.summary()
    with open_campaign(stage.folder) as reading:
        theirs = section_values(sections(material_of(reading), Place.STATUS))
        difference = diff_of(reading, reading.state.nodes["1.2"], reading.state.nodes["1.1"]).splitlines()
    assert section_values(sections(material_of(it.reading), Place.STATUS)) == theirs
    assert texts.diff_page(it, "1.2", "1.1", 0)["lines"] == difference
    assert texts.diff_page(it, "1.2", None, 0)["from"] == "1"
    for beside, page in (("1.99", 0), (None, 7)):
        with pytest.raises(NotThere):
            texts.diff_page(it, "1.2", beside, page)
    views = [pages.view(it, name, None) for name in (*pages.VIEWS, "credit", "report")]
    assert all("sections" in one for one in views)
    told = [it.summary(), pages.node_page(it, "1.2"), pages.rows(it, ["1.2"]), pages.compare(it, ["1.2", "1"])]
    assert all(str(one).isprintable() for one in (*views, *told))
    assert "<b>" in str(told[2])
    assert texts.log_page(it, "trial", "1.2-1", 0)["lines"] == ["\\x1b[31mred\\x1b[0m", "\\xff\\xfe"]


def test_a_holder_that_goes_is_told_without_an_event(stage: Stage) -> None:
    """A process that is killed writes nothing."""
    it = followed(stage)
    with CampaignLock(stage.campaign / "lock"):
        told = it.poll()
        assert told
        assert told["summary"]["status"] == "running"
    told = it.poll()
    assert told
    assert told["summary"]["status"] == "died"


def test_a_new_run_starts_again(stage: Stage) -> None:
    """Its task may have other metrics, so nothing is carried over; the run before stays to be seen."""
    it = followed(stage)
    written = len(stage.story.events)
    stage.story.open(2)
    stage.story.baseline(7.0, run=2)
    grow(stage, written)
    assert it.poll() == it.start_again()
    assert it.board.whole()["run"] == 2
    assert names_of(it.board_of(it.run_numbered(1)).whole())[:2] == ["1", "1.1"]
    with pytest.raises(NotThere):
        it.run_numbered(3)


def test_repeats_of_a_champion_beside_another_count_for_it(tmp_path: Path) -> None:
    """A reference is a trial of the challenger's, and changes what the champion is shown with."""
    made = Stage(tmp_path / "task")
    made.story = Story(made.folder, task={"certify": {"rule": "noisy", "repeats": 5, "champion": 5}}).open()
    made.story.baseline(1.0)
    made.story.attempt("1", 2.0)
    it = followed(made)
    assert it.board.whole()["columns"]["screened"] == [1, 1]
    written = len(made.story.events)
    made.story.score("1.1", {"score": 5.0}, purpose=Purpose.REFERENCE, subject="1")
    made.story.state.set_node("1", measured=("1.1-2",))
    grow(made, written)
    assert it.poll()
    assert it.board.whole()["columns"]["metric 0"][0] == 5.0


def test_an_event_of_a_later_version_is_told_by_its_kind(stage: Stage) -> None:
    it = followed(stage)
    later = Entry("\x1b[2Jdreamt", '{"kind":"\\u001b[2Jdreamt","node":"1.1"}')
    with Ledger.open(stage.campaign / "ledger.sqlite3") as ledger:
        ledger.seize("a later version")
        ledger.append([later], {}, "2030-01-01T00:00:00+00:00")
    told = it.poll()
    assert told
    assert told["said"][0][1] == "\\x1b[2Jdreamt (not known to this version)"


def test_an_event_is_read_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what it says, for the nodes that it is about, and for the last ending."""
    stage.write()
    it, before = followed(stage), len(stage.story.events)
    read, read_event = list[str](), e.read_event

    def noted(body: str) -> e.Event:
        read.append(body)
        return read_event(body)

    monkeypatch.setattr(e, "read_event", noted)
    monkeypatch.setattr("orchestrator.views.page.followed.json", None)
    stage.story.attempt("1.1", 3.0, kept=True)
    grow(stage, before)
    update = it.poll()
    assert update
    assert len(read) == len(update["said"]) == len(stage.story.events) - before
    it.close()


def test_missing_scores_are_none_and_not_zero(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """And parameters leave out what has none. Where there are too many nodes, how many are missing is told."""
    it = followed(stage)
    told = it.board.whole()["columns"]
    assert len(told) == len(COLUMNS) + 1
    assert told["metric 0"] == [1.0, 2.0, 0.5, None, None]
    parameters = pages.parameters(it, None)
    assert parameters["nodes"] == ["1.1", "1.2"]
    assert {it["name"]: it["values"] for it in parameters["parameters"]} == {"rows": [3, 3], "rate": [0.1, 0.1]}
    assert all(math.isfinite(score) for score in parameters["scores"])
    monkeypatch.setattr(boards, "MOST_NODES", 3)
    few = followed_again(stage).board.whole()
    assert (few["count"], few["missing"]) == (3, 2)


def test_a_log_of_a_gigabyte_costs_a_page(stage: Stage) -> None:
    """A page is some bytes from anywhere; its end is found without what is before it. As a whole it is refused."""
    stage.write()
    digest = "ab" * 32
    path = stage.campaign / "artifacts" / digest[:2] / digest[2:]
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek((1 << 30) - 12)
        file.write(b"\nlast\nwords\n")
    it = followed(stage)
    with pytest.raises(LedgerError, match=r"1GiB, more than are read at once"):
        it.reading.artifacts.get(digest)
    object.__setattr__(it.reading.state.trials["1.1-1"], "log", digest)
    first = texts.log_page(it, "trial", "1.1-1", 0)
    assert (first["start"], first["end"], first["size"]) == (0, texts.PAGE, 1 << 30)
    assert len(str(first)) < 10_000
    last = texts.log_page(it, "trial", "1.1-1", 0, last=True)
    assert (last["lines"][-2:], last["end"]) == (["last", "words"], 1 << 30)


def test_pages_of_a_log_are_all_of_it(tmp_path: Path) -> None:
    """Cut where lines end, none left out and none twice."""
    made = Stage(tmp_path / "task")
    made.story.open()
    made.story.baseline(1.0)
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(6000)]
    made.story.attempt("1", 2.0, log="\n".join(lines).encode() + b"\n")
    it, found = followed(made), list[str]()
    page: dict[str, Any] = {"end": 0, "size": 1}
    while page["end"] < page["size"]:
        page = texts.log_page(it, "trial", "1.1-1", page["end"])
        found += page["lines"]
    assert found == lines


def test_a_live_log_is_followed_and_leads_nowhere_else(stage: Stage, tmp_path: Path) -> None:
    """A link, a pipe or a name with a path in it is none."""
    it = followed(stage)
    live = stage.campaign / "live"
    live.mkdir()
    (live / "1.1.1-1.log").write_bytes(b"one\n")
    (tmp_path / "secret").write_text("secret\n")
    (live / "1.1.1-2.log").symlink_to(tmp_path / "secret")
    os.mkfifo(live / "1.1.1-3.log")
    assert it.live()["logs"] == {"1.1.1-1": 4}
    assert texts.log_page(it, "live", "1.1.1-1", 0)["lines"] == ["one"]
    for name in ("1.1.1-2", "1.1.1-3", "../../../../secret", "1-1/../../x", "", "1.1.1-1.log\0"):
        with pytest.raises(NotThere):
            texts.log_page(it, "live", name, 0)


def test_campaigns_are_found_where_they_are(tmp_path: Path) -> None:
    """In tasks, in folders of their own, at some depth; not behind links or in hidden places, and each once."""
    for name in ("a", "deep/er/b", ".hidden/c"):
        Stage(tmp_path / name).story.open().write()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = find_campaigns([tmp_path, tmp_path / "a"])
    assert [it.named.name for it in found.values()] == ["a", "b"]
    assert [it.folder.name for it in found.values()] == [".blastdoor"] * 2
    (own,) = find_campaigns([tmp_path / "a" / ".blastdoor"])
    assert own in found
    assert find_campaigns([tmp_path / "nothing"]) == {}


def test_importance_tells_what_explains_a_score() -> None:
    """Nearly all for what makes it, nearly nothing for chance, nothing said of too few."""
    draw = random.Random(2)
    made = [draw.uniform(0, 1) for _ in range(400)]
    chance = [draw.uniform(0, 1) for _ in range(400)]
    scores = [value * value + draw.gauss(0, 0.02) for value in made]
    assert (importance(made, scores) or 0) > 0.9
    assert (importance(chance, scores) or 0) < 0.05
    words = [("a", "b", "c")[number % 3] for number in range(400)]
    assert (importance(words, [float(ord(word)) for word in words]) or 0) == pytest.approx(1.0)
    assert importance(made[:5], scores[:5]) is None
    assert importance([None] * 400, scores) is None
    assert importance(made, [1.0] * 400) == 0.0
    for scale in (1e300, 1e-300):
        assert importance(words, [scale * ord(word) for word in words]) == pytest.approx(1.0)
    assert importance(made, [*scores[:-1], -1.7e308]) is not None


def test_what_takes_long_is_made_seldom() -> None:
    """While nothing came it is not made again; else no sooner than a hundred times what it took."""
    now = [0.0]
    sparing = Sparing(lambda: now[0])
    made: list[float] = []

    def make(_: object) -> dict[str, int]:
        made.append(now[0])
        now[0] += 2.0
        return {"number": len(made)}

    def ask(seq: int) -> int:
        return int(sparing.made(("report", None), seq, make)["number"])

    assert (ask(1), ask(1), ask(2)) == (1, 1, 1)
    now[0] += REST * 2.0 - 0.1
    assert ask(3) == 1
    assert sparing.made(("report", None), 3, make)["older_s"] == pytest.approx(0.1)
    now[0] += 0.2
    assert ask(3) == 2
    assert "older_s" not in sparing.made(("report", None), 3, make)
    now[0] += LEAST_S + REST * 2.0
    assert ask(3) == 2


def test_findings_name_what_cannot_be_believed(tmp_path: Path) -> None:
    made = Stage(tmp_path / "task")
    made.story.open()
    made.story.baseline(1.0)
    made.story.attempt("1", 9.0, verdict={"suspect": ("score",)})
    made.story.attempt("1", None, ending=Ending.TAMPERED)
    made.story.attempt("1", 1.0, role=Role.CONTROL)
    made.story.tell(e.Steered(text=HOSTILE))
    told = pages.view(followed(made), "trust", None)
    assert [it["node"] for it in told["findings"]] == ["1.1", "1.2"]


def test_the_chain_is_walked_and_a_break_is_found(stage: Stage) -> None:
    it = followed(stage)
    told = it.walk()
    assert told["verified"] == told["head"] == it.seq
    assert told["rows"] is True
    it.close()
    with sqlite3.connect(stage.campaign / "ledger.sqlite3") as raw:
        raw.execute("DROP TRIGGER events_keep")
        raw.execute("UPDATE events SET body = '{}' WHERE seq = 4")
    broken = followed_again(stage).walk()
    assert ("4" in broken["broken"], broken["verified"]) == (True, 3)


def test_t99_forged_rows_are_found_at_the_end_of_the_chain(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that a record seals the rows only where it compared them."""
    it = followed(stage)
    with sqlite3.connect(stage.campaign / "ledger.sqlite3") as raw:
        raw.execute("DELETE FROM projection WHERE id = '1.2'")
    told = it.walk()
    assert (told["verified"], told["rows"]) == (told["head"], False)
    assert "changed beside its events" in told["broken"]
    monkeypatch.setattr("orchestrator.views.page.followed.SHORT_LEDGER", 1)
    told = followed_again(stage).walk()
    assert (told["verified"], told["rows"], told["broken"]) == (told["head"], False, "")


@pytest.mark.parametrize("rows", [None, ""])
def test_t99_a_record_that_seals_no_rows_breaks_the_chain(stage: Stage, rows: str | None) -> None:
    """The page does not say that every row is sealed once somebody appended a record without a seal."""
    it = followed(stage)
    forge(stage, FORGED["champion"])
    with sqlite3.connect(stage.campaign / "ledger.sqlite3") as raw:
        raw.execute("CREATE TABLE other AS SELECT * FROM events")  # one that takes anything
        raw.execute("DROP TABLE events")
        raw.execute("ALTER TABLE other RENAME TO events")
    append(stage, rows)
    it.run(Followed.poll)
    told = it.walk()
    assert told["rows"] is False
    assert told["broken"]


def test_what_was_read_before_a_change_is_not_kept_after_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread looks, while another hears that the record changed: the next look reads it again."""
    stage.write()
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        state, row, name = RowState(ledger), Ledger.row, "1.1"

        def changed_meanwhile(it: Ledger, kind: str, asked_for: str) -> str | None:
            body = row(it, kind, asked_for)
            state.forget("node", [asked_for])
            return body and body.replace('"description":"', '"description":"old ')

        with monkeypatch.context() as while_it_changes:
            while_it_changes.setattr(Ledger, "row", changed_meanwhile)
            assert state.nodes[name].description.startswith("old ")
        assert not state.nodes[name].description.startswith("old ")
        assert state.nodes[name] is state.nodes[name], "one that did not change is kept"
