"""`blastdoor stalls`, as a person and as a program read it."""

import json
from pathlib import Path

import pytest
from click.testing import Result

from benchmarks.stream_ranges import TUNING
from benchmarks.streams import drawn
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Spent
from orchestrator.views.campaign.stalls import command, replay_command
from orchestrator.watch import Config, floor_warnings
from orchestrator.watch.recording import stream_lines
from tests.clicking import runner
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage
from tests.orchestrator.views.judging.stage import write_task


def invoke(*words: str) -> Result:
    return runner().invoke(command, words)


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    """A folder with a healthy stream, a drip and a loop."""
    for label in ("healthy", "drip", "looping"):
        (tmp_path / f"{label}.jsonl").write_text(recorded(label))
    return tmp_path


def recorded(label: str = "healthy") -> str:
    return "".join(stream_lines(drawn(label, TUNING, 7).stream))


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """A task whose floor no stream holds, with a healthy one that its campaign recorded."""
    task = write_task(tmp_path / "strict", "[stall]\nfloor = 500\n")
    folder = task / ".blastdoor" / "streams"
    folder.mkdir(parents=True)
    (folder / "1.1-1.jsonl").write_text(recorded())
    return task


def test_stalls_of_a_campaign(stage: Stage) -> None:
    """Stall rate, losses and savings for each agent, model and configuration; names cannot act on the screen."""
    story = stage.story
    lost = Spent(microdollars=120_000, tokens=4_500)
    for number in range(4):
        node = story.opened("1")
        story.tell(e.AgentIntended(node=node, agent="claude-code", configuration=HOSTILE[:40]))
        if number == 0:
            found = e.StallFound(
                node=node,
                agent="claude-code",
                model="large",
                configuration=HOSTILE[:40],
                cause="silent",
                after_s=75.2,
                saved_s=1124.8,
                lost=lost,
            )
            back = e.AttemptRequeued(node=node, ending=Ending.STALLED, why="silent", not_before="")
            story.tell(found, e.Refunded(hold=f"{node}#1", node=node, spent={}), back)
        else:
            story.end(node, Ending.INVALID)
    said = stage.run("stalls")
    assert "1 of 4 goes at attempts stalled (25 %); lost: $0.1200, 4,500 tokens." in said
    assert "would have waited at least 18m45s longer" in said
    assert "1 silent" in said
    assert "\x1b" not in said
    [stalled, well] = stage.json("stalls")["agents"]
    assert (stalled["stalls"], stalled["attempts"], stalled["saved_s"]) == (1, 1, 1124.8)
    assert (well["model"], well["attempts"]) == ("", 3)


def test_a_worst_case_is_said_to_be_one(stage: Stage) -> None:
    """A call that was cut is booked at its worst case, so what the stall lost is the most that it can have been. A
    campaign that asked no model yet has nothing that could stall.
    """
    bare = Stage(stage.folder.with_name("bare"))
    bare.story.open()
    assert bare.run("stalls") == "No attempt asked a model yet, so none could stall.\n"
    assert bare.json("stalls") == {"agents": []}
    story, node = stage.story, stage.story.opened("1")
    lost = Spent(microdollars=120_000, tokens=4_500)
    call = {"node": node, "call": "c", "role": ModelRole.USER, "model": "large"}
    story.tell(
        e.ModelCallIntended(**call, worst=lost),
        e.ModelCallEnded(**call, ending=CallEnding.CUT, tokens=Tokens(), spent=lost),
        e.StallFound(node=node, agent="llm", model="large", configuration="", cause="silent", lost=lost),
        e.AttemptRequeued(node=node, ending=Ending.STALLED, why="silent", not_before=""),
    )
    said = stage.run("stalls")
    assert "lost: at most $0.1200, 4,500 tokens." in said
    assert "of 1 the most that was lost: cut off, so booked at the worst case" in " ".join(said.split())
    assert stage.json("stalls")["agents"][0]["lost_at_most"] is True


@pytest.mark.parametrize("columns", ["40", "60", "90", "200"])
def test_no_word_is_broken(stage: Stage, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """A table where it fits, else a block for each agent; both hold every word whole."""
    monkeypatch.setenv("COLUMNS", columns)
    words = ["claude-code", "claude-sonnet-5-5", "blocks-and-more", "1 silent", "found after", "tokens lost", "12,345"]
    node = stage.story.opened("1")
    stage.story.tell(e.AgentIntended(node=node, agent=words[0], configuration=words[2]))
    lost = Spent(microdollars=1, tokens=12_345)
    found = e.StallFound(
        node=node, agent=words[0], model=words[1], configuration=words[2], cause="silent", after_s=7, lost=lost
    )
    back = e.AttemptRequeued(node=node, ending=Ending.STALLED, why="silent", not_before="")
    stage.story.tell(found, e.Refunded(hold=f"{node}#1", node=node, spent={}), back)
    said = stage.run("stalls")
    assert all(word in said for word in words)
    shown = said.splitlines()[2:]
    assert max(map(len, shown)) <= int(columns)
    assert ("  model: claude-sonnet-5-5" in shown) == (columns != "200")


def test_replay(streams: Path) -> None:
    """A table of what the watch makes of each stream, and how many of those that ended well it would end."""
    result = invoke("--replay", str(streams))
    assert result.exit_code == 0
    assert "2 of 3 streams would have been ended; 0 of the 1 that ended well." in result.output
    [_, *rows] = [line.split() for line in result.output.splitlines()[:4]]
    assert [row[:2] for row in rows] == [["drip", "(tuning)"], ["healthy", "(tuning)"], ["looping", "(tuning)"]]
    assert ["below" in rows[0], "well" in rows[1][-1:], "loop" in rows[2]] == [True, True, True]
    assert "A floor up to " in result.output


def test_replay_with_another_floor(streams: Path) -> None:
    """A floor that is too high is seen to end a healthy stream; --json has the figures."""
    result = invoke("--replay", str(streams / "healthy.jsonl"), "--floor", "500", "--window", "20s", "--json")
    [found] = json.loads(result.output)["streams"]
    assert (found["label"], found["outcome"], found["stalled"]) == ("healthy", "ended well", True)
    assert found["cause"] == "below the floor"
    assert 0 < found["at_s"] < found["ended_s"]
    assert found["saved_s"] == pytest.approx(found["ended_s"] - found["at_s"])
    assert 0 < found["lowest"] < 500


def test_replay_with_the_task(tmp_path: Path, strict: Path) -> None:
    """The [stall] of a task counts: of the one that is named, else of the one whose campaign recorded it."""
    folder, copy = strict / ".blastdoor" / "streams", tmp_path / "copy.jsonl"
    copy.write_text(recorded())
    ended = "1 of 1 stream would have been ended"
    inside = invoke("--replay", str(folder)).output
    assert ended in inside
    assert f"The watch had [stall] of {strict}: floor 500 tokens/s." in inside
    assert ended in invoke("--replay", str(copy), str(strict)).output
    assert "The watch had the defaults of [stall]: floor 1 " in invoke("--replay", str(copy)).output
    assert "with the flags given: floor 2 " in invoke("--replay", str(folder), "--floor", "2").output


def test_the_command_of_a_warning(strict: Path) -> None:
    """What the warning says to type gives what it warned of, also where the floor was learnt."""
    config = Config(floor=500)
    typed = replay_command(strict, config)
    assert typed == f"blastdoor stalls --replay {strict / '.blastdoor' / 'streams'} {strict}"
    [line] = floor_warnings(strict / ".blastdoor", config, typed)
    assert f"{typed} shows all" in line
    assert "1 of 1 stream would have been ended" in invoke(*typed.split()[2:]).output
    assert replay_command(strict, Config(floor=2.5)).endswith(f"{strict} --floor 2.5")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--replay", "{}/none.jsonl"], "none.jsonl' does not exist"),
        (["--replay", "{}/bad.jsonl"], "bad.jsonl, line 1: not JSON; it is no recorded stream"),
        (["--replay", "{}/empty"], "there is no recorded stream (*.jsonl) in"),
        (["--floor", "3"], "--floor is for --replay FILE; the task file has [stall]"),
        (["--first-token", "3s"], "--first-token is for --replay FILE"),
        (["--replay", "{}/empty", "--floor", "-1"], "-1.0 is not in the range"),
        (["--replay", "{}/empty", "--window", "soon"], "'soon' is not a duration"),
        (["--replay", "{}/empty", "{}/no-task"], "no-task: is not a folder"),
        (["--replay", "{}/empty", "--window", "0s"], "window must be a number of at least 1, not 0"),
    ],
)
def test_bad_input(words: list[str], why: str, tmp_path: Path) -> None:
    """One clear line each."""
    (tmp_path / "bad.jsonl").write_text("\x1b[2Jhello\n")
    (tmp_path / "empty").mkdir()
    result = invoke(*(word.format(tmp_path) for word in words))
    assert result.exit_code == 2
    assert why in result.output.replace("\n", " ")
    assert "\x1b" not in result.output
