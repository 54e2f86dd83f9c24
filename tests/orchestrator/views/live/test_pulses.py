"""The line of an attempt that a model works on, whatever lies where its pulse should be."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Role, Spent
from orchestrator.views.live.attempt import amount, attempt_lines
from orchestrator.views.live.picture import Picture, pulses_of
from orchestrator.views.live.pulses import OLD_S, Pulse, Pulses, parse_pulse
from orchestrator.views.live.scene import Work, seconds
from tests.orchestrator.views.campaign.builder import Story, campaign
from tests.orchestrator.views.campaign.conftest import HOSTILE
from tests.orchestrator.views.live.test_picture import scene_of

MARK = ("> ", "")
PULSE = {"tokens": 12_345, "rate": 41.23, "floor": 2.0, "state": "streaming", "usd": 0.0312, "phase": "thinking"}


def asked() -> tuple[Story, str]:
    """A campaign in which a model has just been asked."""
    story = campaign(8)
    return story, story.opened("1")


def lines(story: Story, folder: Path, width: int = 120, later: float = 100.0) -> list[str]:
    scene, now = scene_of(story), seconds(story.events[-1][0]) + later
    for path in folder.glob("*.pulse"):
        os.utime(path, (now, now))
    found = Picture().lines(scene, width, 30, now, pulses_of(Pulses(folder), scene, now))
    assert all(line.cell_len <= width for line in found)
    return [line.plain for line in found if line.plain.startswith("▸ 1.")]


def write(folder: Path, node: str, content: dict[str, Any] | bytes) -> None:
    (folder / f"{node}.pulse").write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def drawn(story: Story, width: int = 100, later: float = 0.0) -> list[str]:
    return [line.plain for line in Picture().lines(scene_of(story), width, 30, seconds(story.events[-1][0]) + later)]


def test_what_it_tells(tmp_path: Path) -> None:
    """Phase, times, tokens, tokens a second against the floor, dollars, and the detector's word; an attempt that no
    model works on has the line that it always had. In a narrow terminal what matters most stays: the rate, then
    dollars, then tokens.
    """
    story, node = asked()
    assert lines(story, tmp_path) == [f"▸ {node}  proposing       1m42s   1m42s in all"]
    write(tmp_path, node, PULSE)
    for width, words in (
        (120, "thinking        1m42s   1m42s in all   12.3k tokens    41.2/s (floor 2)   $0.0312"),
        (80, "thinking        1m42s   12.3k tokens    41.2/s (floor 2)   $0.0312"),
        (60, "thinking        1m42s    41.2/s   $0.0312"),
        (40, "thinking        1m42s    41.2/s"),
        (30, "thinking        1m42"),
    ):
        [line] = lines(story, tmp_path, width)
        assert line.startswith(f"▸ {node}  {words}"), width


def test_columns_stay_columns(tmp_path: Path) -> None:
    """What does not fit on one line is left out on all, so that figures stand below each other; one that no model
    works on has the line that it always had.
    """
    story, node = asked()
    held, trial = story.opened("1"), story.attempt("1")
    write(tmp_path, node, {**PULSE, "rate": 0.4, "tokens": 7})
    write(tmp_path, held, {**PULSE, "rate": None, "state": "held"})
    first, second, third = lines(story, tmp_path, 80)
    assert first.index(" tokens") == second.index(" tokens")
    assert first.index("$") == second.index("$")
    assert ("0.4/s (floor 2)" in first, "held" in second, "in all" in first + second) == (True, True, False)
    assert third.startswith(f"▸ {trial}  running")
    assert third.endswith("in all")


def test_below_the_floor() -> None:
    """A rate under the floor is marked; while none is asked for, only the detector's word is there."""
    work = Work("1.1", Role.SEARCH, "proposing", 0.0, 0.0)
    [slow] = attempt_lines([work], MARK, 200, 5.0, {"1.1": Pulse(rate=0.4, floor=2.0)})
    assert [span.style for span in slow.spans if slow.plain[span.start : span.end].strip() == "0.4/s"] == [
        "bold yellow"
    ]
    [held] = attempt_lines([work], MARK, 200, 5.0, {"1.1": Pulse(tokens=9, floor=2.0, state="held")})
    assert held.plain.endswith("9 tokens      held               $0.00")


def test_what_is_booked(tmp_path: Path) -> None:
    """Once calls have ended, tokens and dollars come from the ledger; of two figures the later, larger one counts."""
    story, node = asked()
    story.tell(
        e.ModelCallIntended(node=node, call="c", role=ModelRole.USER, model="m", worst=Spent(tokens=9)),
        e.ModelCallEnded(
            node=node,
            call="c",
            role=ModelRole.USER,
            model="m",
            ending=CallEnding.COMPLETE,
            tokens=Tokens(input=20_000, output=5_000),
            spent=Spent(microdollars=75_000, tokens=25_000),
        ),
    )
    assert lines(story, tmp_path)[0].endswith("25k tokens   $0.0750")
    write(tmp_path, node, PULSE)
    assert "25k tokens    41.2/s (floor 2)   $0.0750" in lines(story, tmp_path)[0]


HOSTILE_PULSES = [
    b"",
    b"{",
    json.dumps(PULSE).encode()[:40],
    b"null",
    b"[1, 2]",
    b"\xff\xfe\x00",
    b"[" * 3000,
    b'{"tokens": ' + b"9" * 3000 + b"}",
    b'{"state": "' + b"x" * 5000 + b'"}',
    *(b"{%s}" % it for it in (b'"rate": NaN', b'"rate": 1e999', b'"rate": -1', b'"usd": -0.5', b'"tokens": 1.5')),
    *(b"{%s}" % it for it in (b'"tokens": true', b'"tokens": "12"', b'"phase": 3')),
]


def test_hostile_content(tmp_path: Path) -> None:
    """What is no pulse, half of one or far too much is as if it were not there; words in one are escaped and cut."""
    story, node = asked()
    for content in HOSTILE_PULSES:
        write(tmp_path, node, content)
        assert lines(story, tmp_path) == [f"▸ {node}  proposing       1m42s   1m42s in all"], content
    write(tmp_path, node, {**PULSE, "state": HOSTILE, "phase": HOSTILE})
    [line] = lines(story, tmp_path, 200)
    assert line.isprintable()
    assert "evil" in line


def test_odd_files(tmp_path: Path) -> None:
    """A folder, a link or a pipe in its place is not read, and nobody hangs on it; an old one tells nothing."""
    _, node = asked()
    path, other = tmp_path / f"{node}.pulse", tmp_path / "other"
    other.write_text(json.dumps(PULSE))
    for lay, away in (
        (Path.mkdir, Path.rmdir),
        (lambda it: it.symlink_to(other), Path.unlink),
        (os.mkfifo, Path.unlink),
    ):
        lay(path)
        assert Pulses(tmp_path).read([node], 0.0) == {}
        away(path)
    write(tmp_path, node, PULSE)
    os.utime(path, (1000.0, 1000.0))
    assert node in Pulses(tmp_path).read([node], 1000.0 + OLD_S)
    assert Pulses(tmp_path).read([node], 1001.0 + OLD_S) == {}


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.binary(max_size=200) | st.from_type(dict).map(repr).map(str.encode))
def test_any_bytes(data: bytes) -> None:
    """Nothing raises, and what is a pulse fits its line."""
    pulse = parse_pulse(data)
    work = Work("1.1", Role.CONTROL, "proposing", 0.0, 0.0)
    [line] = attempt_lines([work], MARK, 60, 5.0, {"1.1": pulse} if pulse else {})
    assert line.plain.isprintable()


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(
    st.builds(
        Pulse,
        tokens=st.integers(0, 2**53),
        rate=st.none() | st.floats(0, 2**53),
        floor=st.floats(0, 1e5),
        state=st.text(max_size=40),
        usd=st.floats(0, 1e9),
        phase=st.text(max_size=40),
    ),
    st.integers(40, 250),
)
def test_any_pulse_fits(pulse: Pulse, width: int) -> None:
    """However large its numbers are."""
    work = Work("1.1", Role.CONTROL, "proposing", 0.0, 0.0)
    [line] = attempt_lines([work], MARK, width, 5.0, {"1.1": pulse})
    assert line.cell_len <= width
    assert line.plain.isprintable()


def test_amounts() -> None:
    """Few digits, never an exponent."""
    shown = [amount(it) for it in (0, 940, 1000, 12_345, 99_960, 999_999, 1_250_000, 123_456_789, 2**53)]
    assert shown == ["0", "940", "1k", "12.3k", "100k", "1,000k", "1.25M", "123M", "9,007,199,255M"]


def test_who_waits_is_said_first() -> None:
    """Below the first line stands who waits for a person and what to type; its own line says so, too."""
    story, node = asked()
    story.score(node, {"score": 9.0})
    story.tell(e.PromotionAsked(node=node, over="1"))
    found = drawn(story, later=61)
    typed = f"blastdoor accept {node}, or decline; blastdoor diff {node}"
    assert found[1] == f"{node} score=9 (best 0.96) waits for your word: {typed}"
    assert any(line.startswith(f"▸ {node}  waits for you   1m01s") for line in found)
    other = story.opened("1")
    story.score(other, {"score": 9.5})
    story.tell(e.PromotionAsked(node=other, over="1"))
    assert " ".join(drawn(story, 120)[1:3]).endswith(f"blastdoor diff {node} (1 more wait; blastdoor status)")
    narrow = drawn(story, 60)
    assert all(len(line) <= 60 for line in narrow)
    assert typed in " ".join(narrow)


@pytest.mark.parametrize(
    ("begins", "ends", "word", "line"),
    [
        (
            e.BreakerOpened(providers=("modal",), why="it does not answer", wait_s=5),
            e.BreakerClosed(),
            "waits",
            "modal is waited for: it does not answer; blastdoor pause --off tries at once",
        ),
        (
            e.PauseSet(paused=True, why="3 of 4 agents stalled within 5 minutes"),
            e.PauseSet(paused=False, why="one attempt is tried"),
            "paused",
            "paused: 3 of 4 agents stalled within 5 minutes; blastdoor pause --off goes on",
        ),
    ],
)
def test_t86_why_nothing_is_opened(begins: e.Event, ends: e.Event, word: str, line: str) -> None:
    """The picture says which provider is away and why, or why it pauses though nobody asked, and how to go on."""
    story = campaign(3).tell(begins)
    found = drawn(story)
    assert found[0].startswith(f"circle-packing  {word}  ")
    assert found[1] == line
    assert not any(it in text for text in drawn(story.tell(ends)) for it in (word, "modal", "tried"))
