"""The boot protocol, with PID 1 played by the test: what each word, fault and silence leads to, and who pays."""

import asyncio
import itertools
import time

import pytest

from sandbox import (
    Bundle,
    Channel,
    Ending,
    Job,
    Limits,
    Lost,
    Mode,
    NotDelivered,
    Outcome,
    Refused,
    Report,
    Talk,
    Unavailable,
)
from sandbox.backends.local import longest_life
from sandbox.link import Deadlines
from sandbox.live import LONGEST_WAIT_S, LiveChamber
from sandbox.price import billed_clock
from tests.sandbox.scripted import ARCHIVE, HELLO, QUICK, Played, ScriptedHold, chamber_of, play, settled
from tests.sandbox.wire.streams import END, member
from tests.virtual_time import VirtualTime

JOB = Job(command=("true",))
AT_ONCE = 0.01


async def test_whole_run() -> None:
    """A program that says done hands over its outputs; times, sizes and dollars are measured by us."""
    played = await play(JOB)
    played.hold.err(b"a line\n")
    played.hold.out(b"unpacked 0\ndone 0 0 0\n")
    await played.hands_over()
    outcome = await played.outcome()
    assert (outcome.ending, outcome.exit_code, outcome.outputs) == (Ending.COMPLETED, 0, {"out": b"42"})
    assert (outcome.usage.log_bytes, outcome.usage.output_bytes, outcome.log_tail) == (7, 2, b"a line\n")
    assert outcome.usage.usd == pytest.approx(2 * outcome.usage.held_s)
    assert outcome.facts == {"cpu": "pretended"}


async def test_a_run_that_is_over_before_its_order_is_known_to_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took some time all the same."""
    played = await play(JOB)
    link = played.hold.link
    send = link.send

    async def late(data: bytes) -> None:
        await send(data)
        if data == b"go\n":
            played.hold.out(b"done 0 0 0\n")
            await settled()

    monkeypatch.setattr(link, "send", late)
    played.hold.out(b"unpacked 0\n")
    assert await played.hold.order() == "harvest"
    played.hold.out(ARCHIVE)
    link.end()
    assert (await played.outcome()).usage.run_s > 0


async def test_a_bill_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider's clock does not stop with ours: an hour of sleep is an hour on the bill."""
    slept = 0.0
    monkeypatch.setattr("sandbox.live.billed_clock", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) + slept)
    chamber = await chamber_of(ScriptedHold(), JOB)
    slept = 3600.0
    assert 3600 <= chamber.bill.seconds < 3700
    await chamber.kill()
    assert time.clock_gettime(time.CLOCK_BOOTTIME) <= billed_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME) + 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(None, r"not ready after 0\.01 s", id="silent"),
        pytest.param(b"", "did not start: sh: ", id="died"),
        pytest.param(b"hello\n", "did not start", id="other words"),
        pytest.param(b"blastdoor 9\n", "did not start", id="another version"),
        pytest.param(b"x" * 5000, "did not start", id="a long line"),
        pytest.param("breaks", "broke", id="the provider broke off"),
    ],
)
async def test_no_greeting_is_the_providers_failure(said: bytes | str | None, why: str) -> None:
    """Nothing hostile is inside yet. What was printed instead is shown, in one line and harmless to look at."""
    hold = ScriptedHold()
    hold.err(b"sh: \x1b[31mnot found\n" + "\u202ereversed\n".encode())
    if isinstance(said, bytes):
        hold.out(said)
        hold.link.end()
    elif said:
        hold.link.break_off()
    with pytest.raises(Unavailable, match=why) as caught:
        await LiveChamber(hold, QUICK if said is not None else Deadlines(provision=AT_ONCE)).greet()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("how", ["not sent", "not unpacked", "ends"])
async def test_a_bundle_that_is_not_delivered(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a program ran, every silence and every end is the provider's failure, and the chamber is ended."""
    hold = ScriptedHold()
    chamber = await chamber_of(hold, JOB, QUICK if how == "ends" else Deadlines(upload=AT_ONCE))
    if how == "not sent":
        monkeypatch.setattr(hold.link, "send", lambda _: asyncio.Event().wait())
    running = asyncio.create_task(chamber.run(Bundle({})))
    if how == "ends":
        await hold.take_bundle()
        hold.link.end()
    with pytest.raises(Unavailable, match="before the bundle was unpacked" if how == "ends" else "not delivered"):
        await asyncio.wait_for(running, 60)
    assert (hold.destroyed, hold.released) == (1, 1)


async def _nobody(_: Channel) -> None:
    raise AssertionError("nobody serves")


@pytest.mark.parametrize(
    ("job", "bundle", "talk", "why"),
    [
        (
            Job(command=("true",), limits=Limits(work_bytes="1MiB", bundle_bytes="2MiB")),
            Bundle({"a": bytes(1024**2)}),
            None,
            "raise work_bytes",
        ),
        (Job(command=("true",), mode=Mode.RELAY), Bundle({}), None, "talk="),
        (JOB, Bundle({}), _nobody, "talk="),
    ],
    ids=["a bundle that cannot fit", "a relay without a talk", "a batch with one"],
)
async def test_our_own_mistakes_are_refused_before_anything_is_sent(
    job: Job, bundle: Bundle, talk: Talk | None, why: str
) -> None:
    hold = ScriptedHold()
    chamber = await chamber_of(hold, job)
    with pytest.raises(Refused, match=why):
        await chamber.run(bundle, talk=talk)
    assert hold.destroyed == 1


async def test_bundle_that_does_not_fit_inside() -> None:
    """A bundle that could not be unpacked is the fault of whoever made it: what tar said is the reason."""
    played = await play(JOB)
    played.hold.err(b"tar: x: No space left on device\ntar: more\n")
    await settled()
    played.hold.out(b"unpacked 1\n")
    played.hold.link.end()
    outcome = await played.outcome()
    assert (outcome.ending, outcome.told) == (Ending.WORK_FULL, False)
    assert outcome.reason == "the bundle was not unpacked (tar: x: No space left on device)"
    assert played.hold.destroyed == 1


@pytest.mark.parametrize(
    ("out", "err", "ending"),
    [
        pytest.param(b"unpacked 0\nbuilt 0\n", b"", Ending.PROTOCOL, id="out of turn"),
        pytest.param(b"unpacked 0\n\x00\xff\n", b"", Ending.PROTOCOL, id="no word"),
        pytest.param(b"unpacked 0\n" + b"x" * 2000, b"", Ending.PROTOCOL, id="a long line"),
        pytest.param(b"", b"x" * 11, Ending.LOG_OVERFLOW, id="complaints while it is unpacked"),
        pytest.param(b"unpacked 0\n", b"x" * 11, Ending.LOG_OVERFLOW, id="a log over its cap"),
    ],
)
async def test_whatever_a_program_forges_ends_itself(out: bytes, err: bytes, ending: Ending) -> None:
    """On our own evidence, and it pays: in the breath of the delivery, too, it cannot pass for a failed one."""
    played = await play(Job(command=("true",), limits=Limits(log_bytes=10)), said=out)
    played.hold.err(err)
    outcome = await played.outcome()
    assert (outcome.ending, outcome.told, outcome.outputs) == (ending, False, {})
    assert played.hold.destroyed == 1


@pytest.mark.parametrize(
    ("done", "ending"),
    [
        (b"done 0 1 1\n", Ending.COMPLETED),
        (b"done 3\n", Ending.FAILED),
        (b"done 3 0 0\n", Ending.FAILED),
        (b"done 3 1 0\n", Ending.WORK_FULL),
        (b"done 3 0 7\n", Ending.PROCESS_LIMIT),
        (b"done 3 1 7\n", Ending.WORK_FULL),
    ],
)
async def test_endings_that_pid_1_saw(done: bytes, ending: Ending) -> None:
    """A failed program whose cause PID 1 saw ends by that cause; one that succeeded has none."""
    played = await play(JOB, said=b"unpacked 0\n" + done)
    await played.hands_over()
    assert await played.ending() is ending


@pytest.mark.parametrize(
    ("archive", "ending"),
    [
        pytest.param(b"archive\n" + member(b"../x") + END, Ending.OUTPUT_REFUSED, id="a bad name"),
        pytest.param(b"archive\n" + END + b"more", Ending.OUTPUT_REFUSED, id="more"),
        pytest.param(ARCHIVE[:700], Ending.OUTPUT_REFUSED, id="less"),
        pytest.param(b"built 0\n", Ending.PROTOCOL, id="a word"),
        pytest.param(b"", Ending.FAILED, id="none"),
    ],
)
async def test_bad_archives(archive: bytes, ending: Ending) -> None:
    """Outputs that are refused are all refused; none is no output."""
    played = await play(JOB, said=b"unpacked 0\ndone 0\n")
    await played.hands_over(archive)
    outcome = await played.outcome()
    assert (outcome.ending, outcome.outputs) == (ending, {})


@pytest.mark.parametrize("collects", [False, True])
@pytest.mark.parametrize("evidence", [Lost("gone"), True])
async def test_who_pays_for_a_sudden_end_is_the_providers_word(evidence: bool | Lost, collects: bool) -> None:
    """While it runs or while it hands over: it may have gone, or run out of memory, whatever the program's code was."""
    played = await play(JOB, said=b"unpacked 0\n")
    played.hold.out_of_memory = evidence
    if collects:
        played.hold.out(b"done 0\n")
        await played.hands_over(ARCHIVE[:700])
    played.hold.link.end()
    if isinstance(evidence, Lost):
        with pytest.raises(Lost):
            await played.outcome()
    else:
        outcome = await played.outcome()
        assert (outcome.ending, outcome.told) == (Ending.OUT_OF_MEMORY, False)


@pytest.mark.parametrize("flaw", ["unreachable", "half_dead"])
async def test_a_program_that_let_its_time_pass_on_a_machine_that_does_not_answer(flaw: str) -> None:
    """It has no outcome: one that cannot be ended may still run, and one whose machine hangs did not time out."""
    played = await play(Job(command=("true",), limits=Limits(wall=AT_ONCE)))
    setattr(played.hold, flaw, True)
    played.hold.out(b"unpacked 0\n")
    with pytest.raises(Unavailable, match="could not be ended" if flaw == "unreachable" else "the machine does not"):
        await played.outcome()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


def test_T86_outputs_that_come_slowly(clock: VirtualTime) -> None:
    """A slow line is no fault of the program, as long as bytes keep coming: they get more time, within a bound."""

    async def slowly() -> Outcome:
        played = await play(JOB, Deadlines(collect=30), said=b"unpacked 0\ndone 0\n")
        running = asyncio.create_task(played.outcome(200))
        for piece in (b"archive\n", member(b"x", b"slow"), END[:512], END[512:]):
            await asyncio.sleep(15)
            played.hold.out(piece)
        played.hold.link.end()
        return await running

    outcome = clock.run(slowly())
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"slow"})


async def trickled(played: Played, every_s: float) -> tuple[Ending, int]:
    """What came of outputs that never end, and how many pieces of them there were."""
    running, pieces = asyncio.create_task(played.outcome(1000)), 0
    assert await played.hold.order() == "harvest"
    played.hold.out(b"archive\n" + member(b"x", b"y" * 100_000)[:512])
    while not running.done():
        played.hold.out(b"y")
        pieces += 1
        await asyncio.wait([running], timeout=every_s)
    return (await running).ending, pieces


def test_outputs_that_never_stop_coming(clock: VirtualTime) -> None:
    """Four times the deadline, and no more: whoever trickles is timed out."""

    async def endless() -> tuple[Ending, int]:
        played = await play(JOB, Deadlines(collect=10), said=b"unpacked 0\ndone 0\n")
        return await trickled(played, every_s=3)

    ending, pieces = clock.run(endless())
    assert ending is Ending.TIMED_OUT
    assert 10 < pieces <= 14


def test_collect_that_never_ends(clock: VirtualTime) -> None:
    """A chamber that does not hand over its outputs is timed out, and pays: the clock is ours."""

    async def mute() -> tuple[Outcome, int]:
        played = await play(JOB, Deadlines(collect=10), said=b"unpacked 0\ndone 0\n")
        return await played.outcome(), played.hold.destroyed

    outcome, destroyed = clock.run(mute())
    assert (outcome.ending, outcome.told, outcome.outputs, destroyed) == (Ending.TIMED_OUT, False, {}, 1)


def test_an_order_that_is_slow_to_get_through(clock: VirtualTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an order's departure, and it arrives all the same. One to stop comes too late by then."""

    async def collected() -> Ending:
        played = await play(JOB, said=b"unpacked 0\n")
        send = played.hold.link.send

        async def slowly(data: bytes) -> None:
            if data == b"harvest\n":
                await asyncio.sleep(5)
            await send(data)

        monkeypatch.setattr(played.hold.link, "send", slowly)
        played.hold.out(b"done 0\n")
        await settled()
        await played.chamber.stop()
        await played.hands_over()
        return await played.ending()

    assert clock.run(collected()) is Ending.COMPLETED


def test_T75_slow_outputs_take_no_more_than_was_set_aside(clock: VirtualTime) -> None:
    """They get what upload, build and run left of their time: the chamber's whole life is bounded, and no longer."""

    async def hasty() -> tuple[Ending, int]:
        played = await play(
            Job(command=("true",), limits=Limits(wall=10)),
            Deadlines(upload=20, collect=30),
            said=b"unpacked 0\ndone 0\n",
        )
        return await trickled(played, every_s=5)

    ending, pieces = clock.run(hasty())
    assert ending is Ending.TIMED_OUT
    # One each five seconds at most, for a minute; four times the deadline would be two dozen of them.
    assert pieces <= 14


@pytest.mark.parametrize("heeds", [True, False])
async def test_stop_during_the_build(heeds: bool) -> None:
    """A build that is told to stop ends as stopped, or after its grace as killed, with the outputs so far; the program
    is never waited for.
    """
    job = Job(command=("true",), build=("make",), limits=Limits(grace=5 if heeds else 0))
    played = await play(job, said=b"unpacked 0\n")
    await settled()
    await played.chamber.stop()
    await played.chamber.stop()
    assert await played.hold.order() == "stop"
    if heeds:
        played.hold.out(b"built 143\n")
    await played.hands_over()
    outcome = await played.outcome()
    expected = (Ending.STOPPED, 143, True) if heeds else (Ending.KILLED, None, False)
    assert (outcome.ending, outcome.exit_code, outcome.told) == expected
    assert outcome.outputs == {"out": b"42"}


async def test_end_while_it_runs() -> None:
    """A kill ends the run at once, as killed by order; whoever gives up on one leaves nothing behind either."""
    killed, given_up = await play(JOB, said=b"unpacked 0\n"), await play(JOB, said=b"unpacked 0\n")
    await settled()
    await killed.chamber.kill()
    outcome = await killed.outcome()
    assert (outcome.ending, outcome.told) == (Ending.KILLED, False)
    given_up.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up.running
    for played in (killed, given_up):
        assert (played.hold.destroyed, played.hold.released) == (1, 1)


@pytest.mark.parametrize("order", ["kill", "stop"])
async def test_order_before_the_run(order: str) -> None:
    """A chamber that was ended before its run runs nothing, and says so."""
    hold = ScriptedHold()
    chamber = await chamber_of(hold, JOB)
    await (chamber.kill() if order == "kill" else chamber.stop())
    outcome = await asyncio.wait_for(chamber.run(Bundle({})), 20)
    assert (outcome.ending, outcome.reason) == (Ending.KILLED, "killed before it ran")
    await chamber.kill()
    assert (hold.destroyed, hold.released) == (1, 1)


async def test_chamber_that_serves_nobody() -> None:
    """A chamber that was not given a job takes no bundle."""
    hold = ScriptedHold()
    hold.out(HELLO)
    async with LiveChamber(hold, QUICK) as chamber:
        await chamber.greet()
        with pytest.raises(Refused, match="open another"):
            await chamber.run(Bundle({}))
    assert hold.released == 1


async def test_waiting_chamber_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose streams ended will never serve. What is left of its longest life is for jobs: one that waited for too
    long gets none.
    """
    hold = ScriptedHold()
    ends, waits = await chamber_of(hold, JOB), await chamber_of(ScriptedHold(), JOB)
    assert not ends.broken
    hold.link.end()
    await settled()
    assert ends.broken
    made = time.monotonic()
    with monkeypatch.context() as later:
        for waited_s, is_broken in ((LONGEST_WAIT_S - 1, False), (LONGEST_WAIT_S + 1, True)):
            later.setattr(time, "monotonic", lambda now=made + waited_s: now)
            assert waits.broken == is_broken
    for chamber in (ends, waits):
        await chamber.kill()


@pytest.mark.parametrize("wall", [1.0, 60.0, 3_000.0, 3_600.0, 86_400.0 * 7])
def test_a_job_has_room_in_the_longest_life(wall: float) -> None:
    """Also in a chamber that has waited for as long as one may; and those of small jobs are of one shape."""
    limits, deadlines = Limits(wall=wall, build=100, grace=10), Deadlines()
    due = deadlines.provision + deadlines.upload + deadlines.collect_at_most + wall + 100 + 10
    assert longest_life(limits, deadlines) >= LONGEST_WAIT_S + due
    assert longest_life(Limits(wall=1), deadlines) == longest_life(Limits(wall=600), deadlines)


async def test_provider_that_does_not_answer_in_the_end() -> None:
    """A chamber that cannot be removed is left to the reaper; what it handed over counts."""
    played = await play(JOB)
    played.hold.unreachable = True
    played.hold.out(b"unpacked 0\ndone 0\n")
    await played.hands_over()
    assert await played.ending() is Ending.COMPLETED
    await played.chamber.kill()
    assert played.hold.released == 1


def test_the_order_to_begin_does_not_get_through(clock: VirtualTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing hostile ran by then, so the candidate does not pay for a connection that hangs."""

    async def hangs() -> None:
        played = await play(JOB)
        monkeypatch.setattr(played.hold.link, "send", lambda _: asyncio.Event().wait())
        played.hold.out(b"unpacked 0\n")
        await played.outcome(100)

    with pytest.raises(NotDelivered, match="the order to begin was not delivered"):
        clock.run(hangs())


async def test_relay_build_that_fails() -> None:
    """A build that fails in relay mode ends it: there is no archive to wait for, and nobody is talked to."""
    played = await play(
        Job(command=("true",), build=("make",), mode=Mode.RELAY), talk=_nobody, said=b"unpacked 0\nbuilt 2\n"
    )
    played.hold.link.end()
    outcome = await played.outcome()
    assert (outcome.ending, outcome.exit_code) == (Ending.BUILD_FAILED, 2)


async def test_done_in_time_is_in_time_though_we_are_late() -> None:
    """What a program said within its limit counts, although our own event loop was held until the limit had passed."""
    played = await play(Job(command=("true",), limits=Limits(wall=0.05)), said=b"unpacked 0\n")
    await settled()
    played.hold.out(b"done 0\n")
    time.sleep(0.1)  # noqa: ASYNC251  the loop is held on purpose
    await played.hands_over()
    assert await played.ending() is Ending.COMPLETED


@pytest.mark.parametrize("stream", ["log", "outputs"])
async def test_t82_a_chamber_that_costs_too_much_to_read(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes more of our processor than its budget is ended, and pays; within every other cap."""
    played = await play(JOB, said=b"unpacked 0\ndone 0\n" if stream == "outputs" else b"unpacked 0\n")
    await settled()
    monkeypatch.setattr(time, "thread_time", itertools.count(0, 1000).__next__)  # whatever is read takes that long
    say = played.hold.out if stream == "outputs" else played.hold.err
    data = b"archive\n" + member(b"out", bytes(100_000)) + END if stream == "outputs" else b"x\n" * 50_000
    for half in (data[:50_000], data[50_000:]):
        say(half)
        await settled()
    outcome = await played.outcome()
    ending = Ending.OUTPUT_REFUSED if stream == "outputs" else Ending.LOG_OVERFLOW
    assert (outcome.ending, outcome.told, outcome.outputs) == (ending, False, {})
    assert "s of processor time" in outcome.reason


class FailingListener:
    """Chokes on a line."""

    def line(self, text: str) -> None:
        raise OSError(f"nobody reads {text}")

    def report(self, report: Report) -> None:
        """Nothing is reported here."""


@pytest.mark.parametrize("line", [b"with an end\n", b"without an end"])
async def test_listener_that_fails(line: bytes) -> None:
    """A listener's own failure reaches whoever runs the chamber, and the chamber is ended and let go."""
    played = await play(JOB, listener=FailingListener())
    played.hold.err(line)
    played.hold.out(b"unpacked 0\ndone 0\n")
    await settled()
    played.hold.out(ARCHIVE)
    played.hold.link.end()
    with pytest.raises(OSError, match="nobody reads"):
        await played.outcome()
    assert (played.hold.destroyed, played.hold.released) == (1, 1)
