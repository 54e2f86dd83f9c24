"""The picture: what it tells, and that it fits whatever there is to draw on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Role
from orchestrator.views.live.pace import Pace
from orchestrator.views.live.picture import Picture, shared
from orchestrator.views.live.scene import Caps, Scene, seconds
from orchestrator.views.live.stair import stair
from orchestrator.views.live.tally import Tally
from orchestrator.views.render.model import Step
from tests.orchestrator.views.campaign.builder import Story, campaign
from tests.orchestrator.views.campaign.conftest import HOSTILE

RANKING = Ranking([Metric()])


def scene_of(story: Story, **caps: float) -> Scene:
    """As somebody sees it who comes late."""
    wanted = Caps(2, caps.get("wall_s"), int(caps["patience"]) if "patience" in caps else None)
    return Tally(story.state, story.accounts, RANKING, wanted).scene()


def drawn(story: Story, width: int = 100, height: int = 40, later: float = 3.0, **caps: float) -> list[str]:
    now = seconds(story.events[-1][0]) + later
    return [line.plain for line in Picture().lines(scene_of(story, **caps), width, height, now)]


def busy() -> Story:
    """Two at work, one waiting, one in quarantine, one of the control's."""
    story = campaign(20)
    story.attempt("1", description=HOSTILE)
    node = story.attempt("1", role=Role.CONTROL)
    story.tell(e.TrialEnded(trial=f"{node}-1", ending=None), e.JudgingIntended(trial=f"{node}-1", judging="j"))
    waits, lost = story.attempt("1"), story.attempt("1")
    story.tell(e.AttemptRequeued(node=waits, ending=Ending.STALLED, why=HOSTILE, not_before=""))
    story.tell(e.AttemptQuarantined(node=lost, ending=Ending.STALLED, why="x"))
    return story


def test_what_it_tells() -> None:
    """State, spend against every cap, the best with baseline and control, phases with times, counts, last endings."""
    story = busy()
    lines = drawn(story, wall_s=3600.0, patience=50)
    champion = story.state.champion()
    assert champion
    text = "\n".join(lines)
    assert lines[0].startswith("circle-packing  ")
    assert "2 of 2 at work, 1 waiting, 1 in quarantine  run 1, random beside grid" in lines[0]
    assert [line.split()[0] for line in lines[1:7]] == ["attempts", "best", "control", "usd", "clock", "patience"]
    for at, part in ((1, " of 40"), (4, "of $6.00"), (5, "of 1h00m")):
        assert part in lines[at]
    for part in (f"at {champion.id} (+", "control 0.", "baseline 0.96"):
        assert part in lines[2]
    assert [line.split()[2] for line in lines if "in all" in line] == ["running", "judging"]
    for part in ("in all  control", "● kept", "┤"):
        assert part in text


def test_time_goes_on_between_events() -> None:
    """Nobody has to record anything for a clock to run; before the first score nothing breaks."""
    early, late = drawn(busy(), later=1.0), drawn(busy(), later=61.0)
    assert early[0] != late[0]
    assert "1m" in next(line for line in late if "in all" in line)
    assert any("nothing yet" in line for line in drawn(Story().open()))


@pytest.mark.parametrize(
    ("event", "word"),
    [
        (e.PauseSet(paused=True), "paused"),
        (e.KillIntended(node="1", why="the session ends"), "ending what runs"),
        (e.CampaignStopped(reason="40 of 40 attempts are used"), "stopped: 40 of 40 attempts are used"),
    ],
)
def test_states(event: e.Event, word: str) -> None:
    """A pause, an end that has begun, and an end are said in the first line."""
    story = campaign(5)
    tally = Tally(story.state, story.accounts, RANKING, Caps(2))
    story.tell(event)
    tally.on_event(event, story.events[-1][0])
    first = Picture().lines(tally.scene(), 100, 20, seconds(story.events[-1][0]))[0]
    assert f"circle-packing  {word}" in first.plain


@settings(deadline=None)
@given(st.integers(1, 220), st.integers(1, 70), st.booleans())
def test_it_fits_any_size(width: int, height: int, unicode: bool) -> None:
    """No line is wider, there are not more of them, none has a control character; in ASCII there is nothing else."""
    lines = Picture(unicode).lines(SCENE, width, height, SCENE.at + 5)
    assert len(lines) <= height
    for line in lines:
        assert line.cell_len <= width
        assert line.plain.isprintable()
        assert unicode or line.plain.isascii()


def test_a_crowd_gives_way() -> None:
    """Where there is no room for all that are at work, it says how many are not shown; the best stays."""
    story = campaign(20, spare=60)
    for _ in range(40):
        story.attempt("1")
    lines = drawn(story, 60, 12)
    assert any(line.strip().endswith("more at work") for line in lines)
    assert any(line.startswith("best") for line in lines)
    assert "  40 at work" in drawn(story, 60, 7)


def test_coming_late_shows_the_same() -> None:
    """Whoever follows every event sees what somebody sees who comes at the end."""
    story = busy()
    again = Story().tell(*[event for _, event in story.events[:4]])
    tally = Tally(again.state, again.accounts, RANKING, Caps(2))
    for _, event in story.events[4:]:
        again.tell(event)
        tally.on_event(event, again.events[-1][0])
    mine, late = tally.scene(), scene_of(story)
    for name in ("points", "steps", "gauges", "best", "best_node", "gain", "baseline", "control", "waiting"):
        assert getattr(mine, name) == getattr(late, name), name
    assert [(it.node, it.phase) for it in mine.work] == [(it.node, it.phase) for it in late.work]
    followed = [it.plain for it in mine.endings if "queued" not in it.plain and "quar" not in it.plain]
    assert followed == [it.plain for it in late.endings][-18:]


def test_pace() -> None:
    """Attempts a minute over the last minutes, and the time to a cap; silence makes it slower, and an hour of waiting
    for a raised cap is not counted for ever.
    """
    pace = Pace(1000.0)
    for number in range(1, 31):
        pace.note(1000.0 + 2 * number, {Account.ATTEMPTS: number, Account.USD: 10 * number})
    assert pace.per_second(Account.ATTEMPTS, 1060.0) == pytest.approx(0.5)
    assert pace.until(Account.ATTEMPTS, 15, 1060.0) == pytest.approx(30.0)
    assert pace.until(Account.USD, 100, 1060.0) == pytest.approx(20.0)
    assert pace.until(Account.TOKENS, 100, 1060.0) is None
    assert (pace.per_second(Account.ATTEMPTS, 1120.0) or 9) < 0.3
    assert Pace(0.0).per_second(Account.ATTEMPTS, 60.0) is None
    for number in range(1, 601):
        pace.note(4600.0 + number, {Account.ATTEMPTS: 30 + number})
    assert pace.per_second(Account.ATTEMPTS, 5200.0) == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(
    ("steps", "count", "width", "shown"),
    [
        ([(1, 0.0), (3, 7.0)], 4, 10, "▁▁██"),
        ([(1, 7.0), (3, 0.0)], 4, 10, "██▁▁"),
        ([(1, 1.0)], 3, 10, "▁▁▁"),
        ([(1, 0.0), (50, 7.0)], 100, 4, "▁███"),
        ([(1, -1.7e308), (3, 1.7e308)], 4, 4, "▁▁██"),
        ([(1, 0.0), (3, 5e-324)], 4, 4, "▁▁██"),
        ([], 5, 10, ""),
        ([(1, 0.0)], 5, 0, ""),
    ],
)
def test_stair(steps: list[tuple[int, float]], count: int, width: int, shown: str) -> None:
    """Up where the best score goes up, as wide as there is room."""
    assert (
        stair([Step(order, score, "1", fresh=at == 0) for at, (order, score) in enumerate(steps)], count, width)
        == shown
    )


def test_a_new_cohort_begins_a_new_stair() -> None:
    """Scores of another cohort would bend it."""
    steps = [Step(1, 100.0, "1", fresh=True), Step(3, 1.0, "1", fresh=True), Step(4, 2.0, "1.1", fresh=False)]
    assert stair(steps, 5, 10, unicode=False) == "_##"


@given(
    st.dictionaries(st.sampled_from(["work", "endings", "gauges", "counts", "stair"]), st.integers(0, 60)),
    st.integers(0, 80),
)
def test_lines_are_shared_out(wants: dict[str, int], room: int) -> None:
    """Nobody gets more than they can use, and all together not more than there is."""
    whole = {"work": 0, "endings": 0, "gauges": 0, "counts": 0, "stair": 0, "gaps": 2, **wants}
    given_lines = shared(whole, room)
    assert sum(given_lines.values()) <= room
    assert all(given_lines[name] <= whole[name] for name in whole)


def hostile() -> Scene:
    story = Story(task={"name": "x"}).open(beside="random", attempts=500)
    story.baseline(1.0)
    for number in range(30):
        wide = "模型" * 40 + HOSTILE + "\u0301" * 20 + "\t\r\x00"
        story.attempt("1", 1.0 + number, kept=number % 3 == 0, description=wide)
    story.attempt("1", description=HOSTILE)
    story.tell(e.GuardIntended(node="1.31", guard=HOSTILE))
    story.tell(e.CampaignStopped(reason=HOSTILE))
    return scene_of(story, wall_s=10.0, patience=3)


SCENE = hostile()
