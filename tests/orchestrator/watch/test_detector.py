"""When an agent counts as stalled, and when it does not."""

import pytest

from orchestrator.watch import Cause, Config, Hold, Kind, Life
from tests.orchestrator.watch.teller import Teller


def test_a_healthy_stream() -> None:
    """Tokens above the floor, for as long as one likes, are no stall."""
    teller = Teller().say(Kind.REQUESTED).after(3).stream(7200, 40)
    pulse = teller.pulse()
    assert pulse.state is Life.WORKING
    assert pulse.rate == pytest.approx(40, rel=0.05)
    assert pulse.tokens == 7200 * 40


@pytest.mark.parametrize("asked", [True, False])
def test_no_first_token(asked: bool) -> None:
    """A first token is due by its deadline, whether a request was made or not; pings and a start are none."""
    teller = Teller(Config(first_token_s=30))
    if asked:
        teller.say(Kind.REQUESTED).say(Kind.STARTED)
    assert teller.pings(29, every=1).pulse().state is Life.STARTING
    pulse = teller.after(2).pulse()
    assert (pulse.cause, pulse.at, pulse.since) == (Cause.NO_FIRST_TOKEN, 30, 0)


def test_the_deadline_of_the_first_request() -> None:
    """An agent that takes a while to start has its whole deadline from its first request on, but only once."""
    teller = Teller(Config(first_token_s=30)).after(20).say(Kind.REQUESTED).after(20)
    assert teller.pulse().state is Life.STARTING
    teller.say(Kind.CUT).say(Kind.REQUESTED, "b").after(10)
    assert teller.pulse().at == 50


def test_grace() -> None:
    """Right after the first token the rate does not count yet."""
    teller = Teller(Config(grace_s=100)).say(Kind.REQUESTED).stream(100, 0.5)
    assert teller.pulse().state is Life.WORKING
    assert teller.stream(40, 0.5).pulse().cause is Cause.BELOW_FLOOR


def test_low_for_a_moment() -> None:
    """A dip that is over before patience is, is no stall."""
    teller = Teller().say(Kind.REQUESTED).stream(60, 20).after(62)
    assert teller.pulse().state is Life.LOW
    assert teller.stream(200, 20).pulse().state is Life.WORKING


def test_around_the_floor() -> None:
    """A rate that wavers around the floor is called low once, not well and low in turn, and is no stall."""
    teller = Teller(Config(window_s=10, floor=2)).say(Kind.REQUESTED).stream(40, 10)
    seen, rates = [], []
    for _ in range(40):
        for rate in (1.0, 3.0):
            pulse = teller.stream(2, rate).pulse()
            seen.append(pulse.state)
            rates.append(pulse.rate or 0.0)
    assert min(rates) < 2 < max(rates[10:])
    assert seen[10:] == [Life.LOW] * 70
    assert teller.stream(20, 6).pulse().state is Life.WORKING


@pytest.mark.parametrize(
    ("kind", "hold", "cap", "cause"),
    [
        (Kind.THINKING, Hold.THINKING, 300, Cause.THINKING),
        (Kind.WAITING, Hold.QUEUED, 240, Cause.WAITING),
        (Kind.REQUESTED, Hold.FIRST_TOKEN, 120, Cause.NO_FIRST_TOKEN),
    ],
)
def test_holds_of_a_call(kind: Kind, hold: Hold, cap: float, cause: Cause) -> None:
    """What a stream itself says it waits for holds until its cap, with or without pings, and then is a stall."""
    teller = Teller().call().say(kind, "b").pings(cap - 10)
    assert (teller.pulse().state, teller.pulse().hold) == (Life.HELD, hold)
    assert (teller.after(20).pulse().cause, teller.pulse().at) == (cause, cap)


def test_time_under_a_hold_does_not_count() -> None:
    """After four minutes of hidden thinking, the rate is what it was before."""
    teller = Teller().say(Kind.REQUESTED).stream(60, 40).say(Kind.THINKING).pings(240)
    assert teller.pulse().rate is None
    assert teller.stream(1, 40).pulse().rate == pytest.approx(40, rel=0.05)


def test_thinking_that_is_shown_in_part() -> None:
    """Summaries that come in bursts keep a hold young; one word now and then does not."""
    shown, dripped = Teller(), Teller()
    for teller in (shown, dripped):
        teller.say(Kind.REQUESTED).say(Kind.THINKING)
    for _ in range(30):
        shown.after(30).say(Kind.TOKENS, tokens=40, hold=Hold.THINKING)
        dripped.after(30).say(Kind.TOKENS, tokens=1, hold=Hold.THINKING)
    assert shown.pulse().state is Life.HELD
    assert dripped.pulse().cause is Cause.THINKING
    assert dripped.pulse().at <= 310


def test_tool_with_cpu() -> None:
    """Between two calls, processor time in the chamber is a tool at work, up to its cap."""
    teller = Teller().call().cpu(500)
    assert (teller.pulse().state, teller.pulse().hold) == (Life.HELD, Hold.TOOL)
    assert teller.cpu(200).pulse().cause is Cause.TOOL


def streaming() -> Teller:
    return Teller().say(Kind.REQUESTED).after(2).stream(100, 50)


def with_tool() -> Teller:
    called = Teller().say(Kind.REQUESTED).say(Kind.TOKENS, tokens=100).say(Kind.TOOL_CALLED, digest="t")
    return called.say(Kind.FINISHED)


@pytest.mark.parametrize(
    "teller",
    [
        streaming().after(100),
        streaming().cpu(100),
        with_tool().cpu(100, 0.0),
        with_tool().cpu(100, 0.01),
        Teller().call().cpu(100).after(100),
        Teller().call().after(100),
    ],
    ids=["a stream", "a stream beside a tool", "a tool", "a tool that does little", "a tool that ended", "a gap"],
)
def test_silence(teller: Teller) -> None:
    """A stream that dies, or an agent that asks for nothing, is found when the window is all but empty, and told with
    its last token's time; processor time counts between calls only, where it is used, and for as long.
    """
    pulse = teller.pulse()
    assert pulse.cause is Cause.SILENT


def test_silence_is_told_from_its_last_token() -> None:
    pulse = streaming().after(100).pulse()
    assert (pulse.cause, pulse.since) == (Cause.SILENT, 102)
    assert pulse.at <= 102 + 60 * 1.25


@pytest.mark.parametrize("before", [0, 300])
def test_drip(before: int) -> None:
    """One token every few seconds is below the floor, from the start or after a good while."""
    pulse = Teller().say(Kind.REQUESTED).stream(before, 50).stream(600, 0.3).pulse()
    assert pulse.cause is Cause.BELOW_FLOOR
    assert pulse.at < before + 90
    assert pulse.detail.endswith("the floor is 1")


@pytest.mark.parametrize("hold", [Hold.TRIAL, Hold.JUDGING, Hold.QUEUED])
def test_holds_of_the_orchestrator(hold: Hold) -> None:
    """What the orchestrator itself does for the agent is no silence of the agent; it has a cap too."""
    config = Config(trial_s=900, judging_s=900, waiting_s=900)
    teller = Teller(config).call().hold(hold).hold(hold).after(600).release(hold).after(600)
    assert (teller.pulse().state, teller.pulse().hold) == (Life.HELD, hold)
    assert teller.after(400).pulse().stalled


def test_released() -> None:
    """When a hold of the orchestrator is over, silence counts again; one release too many changes nothing."""
    teller = Teller().call().hold(Hold.TRIAL).after(900).release(Hold.TRIAL).release(Hold.TRIAL)
    assert teller.after(100).pulse().cause is Cause.SILENT


def test_ages_add_up() -> None:
    """A hold that is left and taken up again without any progress does not get younger."""
    teller = Teller().call()
    for number in range(10):
        teller.say(Kind.REQUESTED, f"again{number}").after(20).say(Kind.CUT, f"again{number}")
    assert (teller.pulse().cause, teller.pulse().at) == (Cause.NO_FIRST_TOKEN, 120)


def test_a_finished_call_is_progress() -> None:
    """An agent that thinks for minutes and then says a word, turn by turn, is well."""
    teller = Teller()
    for number in range(20):
        teller.say(Kind.REQUESTED, str(number)).say(Kind.THINKING, str(number)).pings(280)
        teller.say(Kind.TOKENS, str(number), tokens=8).say(Kind.FINISHED, str(number))
    assert not teller.pulse().stalled


def test_an_empty_answer_is_none() -> None:
    """A call that ends without a word gives nothing back."""
    teller = Teller().call()
    for number in range(10):
        teller.say(Kind.REQUESTED, f"{number}").after(20).say(Kind.FINISHED, f"{number}")
    assert teller.pulse().cause is Cause.NO_FIRST_TOKEN


def test_several_calls() -> None:
    """While one call thinks, another may stream or hang; when all that is left hangs, that is a stall."""
    teller = Teller().say(Kind.REQUESTED).stream(60, 40)
    teller.say(Kind.REQUESTED, "b").say(Kind.THINKING, "b").after(200)
    assert teller.pulse().hold is Hold.THINKING
    teller.stream(30, 40, "b").say(Kind.FINISHED, "b")
    assert teller.pulse().state is Life.WORKING
    assert teller.after(100).pulse().cause is Cause.SILENT


@pytest.mark.parametrize(
    ("kind", "cap", "cause"),
    [
        (Kind.THINKING, 300, Cause.THINKING),
        (Kind.WAITING, 240, Cause.WAITING),
        (Kind.REQUESTED, 120, Cause.NO_FIRST_TOKEN),
    ],
)
@pytest.mark.parametrize("beside", [Kind.REQUESTED, Kind.THINKING], ids=str)
def test_a_hung_call_beside_others(kind: Kind, cap: float, cause: Cause, beside: Kind) -> None:
    """Calls that end well give a call beside them nothing but what the floor gives for their tokens."""
    teller = Teller().say(Kind.REQUESTED, "hung").say(kind, "hung")
    for number in range(20):
        teller.say(Kind.REQUESTED, str(number)).say(beside, str(number)).after(100)
        teller.say(Kind.TOKENS, str(number), tokens=2).say(Kind.FINISHED, str(number))
    pulse = teller.pulse()
    assert (pulse.cause, pulse.since) == (cause, 0)
    assert pulse.at == cap + 2 * (cap // 100)


def test_a_hung_call_beside_a_productive_one() -> None:
    """While tokens come at the floor or above, a call that hangs beside them ends nobody."""
    teller = Teller().say(Kind.REQUESTED, "hung").say(Kind.THINKING, "hung").say(Kind.REQUESTED).stream(3600, 2)
    assert teller.pulse().hold is Hold.THINKING
    pulse = teller.say(Kind.FINISHED).after(400).pulse()
    assert (pulse.cause, pulse.at) == (Cause.THINKING, 3900)


def test_an_age_ends_with_its_call() -> None:
    """What one call waited is no burden for the next one, once another ended well."""
    teller = Teller().say(Kind.REQUESTED, "long").say(Kind.THINKING, "long").after(200).call(1, "word")
    teller.say(Kind.CUT, "long").say(Kind.REQUESTED).say(Kind.THINKING).after(299)
    assert teller.pulse().hold is Hold.THINKING


def test_stalled_is_final() -> None:
    """What comes after a stall is counted, but does not undo it."""
    teller = Teller().say(Kind.REQUESTED).after(200)
    first = teller.pulse()
    assert first.stalled
    assert teller.stream(60, 40).pulse() == first
    assert teller.watch.tokens == 2400


@pytest.mark.parametrize("cycle", [["ls"], ["edit", "test"], ["edit", "test", "read"]], ids=len)
@pytest.mark.parametrize("loop", [2, 4, 7])
def test_loop(cycle: list[str], loop: int) -> None:
    """So many steps in a row that repeat those before, results and all, are a loop; of a cycle more than one pass."""
    teller = Teller(Config(loop=loop)).step("other", "other")
    repeats = loop - 1 if len(cycle) == 1 else max(loop - 1, len(cycle) + 1)
    for number in range(len(cycle) + repeats):
        assert not teller.pulse().stalled
        name = cycle[number % len(cycle)]
        teller.step(name, f"{name} said", number)
    pulse = teller.pulse()
    assert pulse.cause is Cause.LOOP
    assert pulse.since == 1 + len(cycle) + 1


def test_a_poll_is_no_loop() -> None:
    """The same result with a time that grows from look to look is somebody who waits, in a cycle too; one whose times
    only jitter is a loop.
    """
    polls, pair, jitter = (Teller(Config(loop=4)) for _ in range(3))
    for number in range(40):
        polls.step("tail", f"running:{30 * number},5")
        pair.step("tail", f"running:{30 * number}").step("date", "now")
    assert not polls.pulse().stalled
    assert not pair.pulse().stalled
    for time in (0.12, 0.14, 0.11, 0.13):
        jitter.step("pytest", f"3 passed:{time}")
    assert jitter.pulse().cause is Cause.LOOP


def test_another_result_is_no_loop() -> None:
    """The same call whose result changes is progress; so is a call that changes."""
    teller = Teller(Config(loop=2))
    for turn in range(50):
        teller.step("test", f"{turn} failed", turn).step(f"edit {turn}", "done", turn)
    assert not teller.pulse().stalled


def test_saved_against_a_plain_time_out() -> None:
    """A time-out that any byte starts again would wait longer, even for a ping."""
    teller = Teller().say(Kind.REQUESTED).stream(60, 40).pings(40).cpu(40)
    assert teller.watch.saved_s(teller.now) == 1200 - 40
    assert teller.watch.saved_s(teller.now + 5000) == 0


def test_floor_of_zero() -> None:
    """Without a floor only deadlines and caps count, and asking after a year takes no time."""
    teller = Teller(Config(floor=0)).say(Kind.REQUESTED).stream(60, 1).after(86_400 * 366)
    assert teller.pulse().state is Life.WORKING
    assert teller.say(Kind.THINKING).after(301).pulse().cause is Cause.THINKING


@pytest.mark.parametrize("bad", [{"window_s": 0}, {"floor": -1}, {"loop": 1}, {"grace_s": float("nan")}])
def test_bad_configuration(bad: dict[str, float]) -> None:
    """A configuration that means nothing is refused by name."""
    [name] = bad
    with pytest.raises(ValueError, match=name):
        Config(**bad)  # type: ignore[arg-type]
