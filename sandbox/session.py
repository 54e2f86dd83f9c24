"""The boot protocol over a live stdin and stdout, at any provider.

One consumer reads a queue of what happened (the chamber spoke, broke a rule, fell silent; somebody asked to stop
or kill) and decides the ending. The pump that fills the queue never stops reading: an engine can hang in `kill`
while a full output pipe has no reader. It reads in slices, and what was said counts from when it arrived: neither a
flood nor its neighbours' floods make a chamber late.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping

from sandbox.backend import Listener, Talk
from sandbox.bundle import Bundle
from sandbox.channel import CATCH_UP, FrameChannel, Meter, Silences
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.happenings import Ended, Happening, NotDelivered, Order, Silence, Told, end_by
from sandbox.job import Ending, Job, Limits, Mode
from sandbox.link import Deadlines, Link
from sandbox.reading import Reading, most_seconds
from sandbox.script import scripts
from sandbox.wire.demux import Stream
from sandbox.wire.dialogue import Dialogue, Phase, Said
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.harvest import Harvest
from sandbox.wire.log import Log, printable

HELLO_LOG_CAP = 65_536
# So much is read, and so much is packed, without a turn for others; a larger bundle is sent without a copy of it.
STEP_BYTES = 16_384
SMALL_BYTES, SMALL_FILES = 1 << 20, 64


class Session:
    """One conversation with one chamber."""

    def __init__(
        self, link: Link, deadlines: Deadlines, meter: Meter | None = None, silence: Silences = lambda _: 0.0
    ) -> None:
        self._link = link
        self._meter = meter
        self._silence = silence
        self._deadlines = deadlines
        self._queue: asyncio.Queue[tuple[float, Happening]] = asyncio.Queue()
        self._dialogue = Dialogue()
        self._log = Log(HELLO_LOG_CAP)
        self._draining = False
        self._stop_asked = False
        self._ended = False
        self._reading = Reading()
        self._most_s = most_seconds(Limits(), Mode.BATCH)
        self._busy = False
        self._arrived = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._mark = time.monotonic()
        self._begun = self._due = self._delivered_by = self._mark
        self._sending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._pump = asyncio.create_task(self._read_all())

    @property
    def facts(self) -> Mapping[str, str]:
        return self._dialogue.facts

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._seconds

    @property
    def log(self) -> Log:
        return self._log

    @property
    def over(self) -> bool:
        """Whether the streams have ended. Streams that broke prove nothing."""
        return self._ended

    @property
    def deaf(self) -> bool:
        """Whether nothing more will be heard, for whatever reason."""
        return self._pump.done()

    def order(self, order: Order) -> None:
        self._note(order)

    async def hello(self) -> None:
        """Wait until the chamber is ready. Nothing hostile is inside yet, so every fault is the provider's."""
        try:
            async with asyncio.timeout(self._deadlines.provision):
                _, event = await self._queue.get()
        except TimeoutError:
            raise Unavailable(f"the chamber was not ready after {self._deadlines.provision:g} s") from None
        if isinstance(event, SandboxError):
            raise event
        if not (isinstance(event, Said) and event.phase is Phase.READY):
            raise Unavailable(f"the chamber did not start: {self._last_words() or event}")

    async def run(self, job: Job, bundle: Bundle, listener: Listener | None, talk: Talk | None) -> Told:
        """Deliver, run, collect."""
        if (job.mode is Mode.RELAY) != (talk is not None):
            raise Refused("a relay job needs somebody who talks to it (talk=), and a batch job has nobody")
        packed = await _packed(bundle, job)
        self._most_s = most_seconds(job.limits, job.mode)
        self._delivered_by = time.monotonic() + self._deadlines.upload
        own = job.limits.wall + (job.limits.build if job.build else 0.0)
        self._due = self._delivered_by + own + self._deadlines.collect
        self._log = Log(
            job.limits.log_bytes, listener.line if listener else None, listener.report if listener else None
        )
        try:
            await self._deliver(job, packed)
            if job.build:
                await self._expect(Phase.BUILT, job, job.limits.build, Ending.BUILD_TIMED_OUT)
            if talk:
                await self._serve(job, talk)
            return await self._batch(job)
        except Ended as ended:
            return ended.told

    async def drained(self, timeout: float) -> bool:
        """Wait for the end of the streams, reading and discarding; False when they do not end in time."""
        self._draining = True
        if not self._pump.done():
            await asyncio.wait([self._pump], timeout=timeout)
        return self._pump.done()

    async def close(self) -> None:
        ending = [task for task in (self._pump, *self._sending) if not task.done()]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    def _last_words(self) -> str:
        return printable(self._log.tail.strip().partition(b"\n")[0])[:200]

    def _note(self, event: Happening, at: float | None = None) -> None:
        self._queue.put_nowait((time.monotonic() if at is None else at, event))

    async def _read_all(self) -> None:
        try:
            while pieces := await self._link.receive():
                self._arrived, self._busy = getattr(self._link, "arrived", None) or time.monotonic(), True
                await self._reading.read(self._take(pieces))
                self._busy = False
                # A stream that is always ready would otherwise keep everybody else from the event loop.
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  handed on whole, to the one that runs the chamber
            self._note(error)
            return
        finally:
            self._busy = False
        self._ended = True
        self._heed_end()

    def _take(self, pieces: Iterable[tuple[Stream, memoryview]]) -> Iterator[None]:
        """A rule that the chamber broke, or a listener's own failure, is noted; reading goes on without heeding."""
        for stream, piece in pieces:
            if self._draining:
                yield
                continue
            try:
                for start in range(0, len(piece), STEP_BYTES):
                    part = piece[start : start + STEP_BYTES]
                    if stream is Stream.STDERR:
                        yield from self._log.steps(part)
                    else:
                        for said in self._dialogue.feed(part):
                            self._note(said, self._arrived)
                    yield
                    if self._draining:
                        break
                    if self._reading.spent_s > self._most_s:
                        raise self._too_slow(stream)
            except Exception as error:  # noqa: BLE001  handed on whole, to the one that runs the chamber
                self._draining = True
                self._note(error)

    def _too_slow(self, stream: Stream) -> WireFault:
        fault = Fault.LOG_OVERFLOW if stream is Stream.STDERR else Fault.TOO_MANY_BYTES
        return WireFault(fault, f"reading it took more than {self._most_s:.0f} s of processor time")

    def _heed_end(self) -> None:
        if self._draining:
            return
        try:
            self._log.close()
            self._dialogue.finish()
            self._note(Silence.END)
        except Exception as error:  # noqa: BLE001  likewise
            self._draining = True
            self._note(error)

    async def _next(self, due: float) -> tuple[float, Happening]:
        """What happens next, and when it came. Raises TimeoutError past the deadline.

        Bytes that were here by then count although they are not read yet: our own event loop may be late.
        """
        try:
            async with asyncio.timeout(max(0.0, due - time.monotonic())):
                return await self._queue.get()
        except TimeoutError:
            passed = 0
            while self._queue.empty() and (passed < CATCH_UP or (self._busy and self._arrived <= due)):
                passed += 1
                await asyncio.sleep(0)
            if self._queue.empty():
                raise
            return self._queue.get_nowait()

    async def _deliver(self, job: Job, packed: bytes) -> None:
        header = f"{job.mode} {int(bool(job.build))} {len(packed)}\n"
        try:
            async with asyncio.timeout(self._delivered_by - time.monotonic()):
                if len(packed) < SMALL_BYTES:
                    await self._link.send(header.encode() + packed)
                else:
                    await self._link.send(header.encode())
                    await self._link.send(packed)
                _, event = await self._queue.get()
        except TimeoutError:
            raise NotDelivered(f"the bundle was not delivered after {self._deadlines.upload:g} s") from None
        match event:
            case Said(phase=Phase.UNPACKED, code=0):
                await self._begin()
            case Said(phase=Phase.UNPACKED):
                reason = f"the bundle was not unpacked ({self._last_words()})"
                raise Ended(Told(Ending.WORK_FULL, reason=reason, told=False, doubtful=True))
            case Order():
                raise Ended(Told(Ending.KILLED, reason="killed before it ran", told=False))
            case WireFault(fault=Fault.LOG_OVERFLOW):
                # What tar complains of is the bundle's doing.
                end_by(event)
            case Exception() if not isinstance(event, WireFault):
                raise event
            case _:
                raise NotDelivered(f"the chamber ended before the bundle was unpacked ({event})")

    async def _expect(self, phase: Phase, job: Job, limit: float, late: Ending) -> Said:
        """The announcement of a phase, or the ending that came instead."""
        try:
            return await self._announced(phase, job, limit, late)
        except Ended:
            self._seconds.setdefault(phase.name.lower(), time.monotonic() - self._mark)
            raise

    async def _announced(self, phase: Phase, job: Job, limit: float, late: Ending) -> Said:
        due = self._mark + limit
        while True:
            try:
                at, event = await self._next(due)
            except TimeoutError:
                if self._stop_asked:
                    ignored = Told(Ending.KILLED, reason="ignored the order to stop", told=False, unheard=True)
                    raise Ended(await self._collect(job, ignored)) from None
                raise Ended(Told(late, reason=f"over its limit of {limit:g} s", told=False, unheard=True)) from None
            if event is Order.STOP and self._stop_asked:
                continue
            if event is Order.STOP:
                self._stop_asked = True
                due = min(due, time.monotonic() + job.limits.grace)
                self._command("stop")
            elif isinstance(event, Said) and event.phase is phase:
                self._seconds[phase.name.lower()] = max(0.0, at - self._begun)
                self._begun = self._mark = at
                if self._stop_asked:
                    raise Ended(await self._collect(job, Told(Ending.STOPPED, event.code)))
                if phase is Phase.BUILT and event.code:
                    ending = _failure(event, Ending.BUILD_FAILED)
                    failed = Told(ending, event.code, "the build step failed", doubtful=True)
                    raise Ended(await self._collect(job, failed) if job.mode is Mode.BATCH else failed)
                return event
            else:
                end_by(event)

    async def _batch(self, job: Job) -> Told:
        done = await self._expect(Phase.DONE, job, job.limits.wall, Ending.TIMED_OUT)
        ending = _failure(done, Ending.FAILED) if done.code else Ending.COMPLETED
        return await self._collect(job, Told(ending, done.code, doubtful=bool(done.code)))

    async def _collect(self, job: Job, told: Told) -> Told:
        """Ask PID 1 to end everything else and send the outputs."""
        harvest = Harvest(job.limits.output_bytes, job.limits.output_files)
        self._dialogue.expect_archive(harvest)
        started = time.monotonic()
        self._command("harvest")
        try:
            while True:
                at, event = await self._next_while_steady(started)
                if event is Silence.END:
                    break
                if not isinstance(event, Said) and event is not Order.STOP:
                    end_by(event)
        except TimeoutError:
            reason = "the outputs were not handed over in time"
            return Told(Ending.TIMED_OUT, reason=reason, told=False, unheard=True)
        self._seconds["collect"] = at - started
        told.outputs = harvest.files
        return told

    async def _next_while_steady(self, started: float) -> tuple[float, Happening]:
        """While outputs are collected, their author is dead: bytes that come slowly are the line's doing.

        They get what the phases before did not use of their time, so that a slow line costs no more than was set aside.
        """
        limit = self._deadlines.collect
        due = started + limit
        last = max(due, min(self._due, started + self._deadlines.collect_at_most))
        while True:
            try:
                return await self._next(due)
            except TimeoutError:
                if due >= last or self._arrived < max(started, due - limit):
                    raise
            due = min(due + limit, last)

    async def _begin(self) -> None:
        """Nothing hostile runs before this order, so one that does not get through is nobody's fault in there.

        A phase is measured from before the order, since its end may be here before we hear that the order is; its limit
        counts from after it.
        """
        self._begun = time.monotonic()
        try:
            async with asyncio.timeout(self._delivered_by - time.monotonic()):
                await self._link.send(b"go\n")
        except TimeoutError:
            raise NotDelivered(f"the order to begin was not delivered after {self._deadlines.upload:g} s") from None
        self._mark = time.monotonic()

    def _command(self, word: str) -> None:
        """A chamber that does not read must not hold us up: the order is on its way, the phase decides how long."""
        sending = asyncio.create_task(self._send_in_turn(word.encode() + b"\n"))
        self._sending.add(sending)
        sending.add_done_callback(self._sent)

    async def _send_in_turn(self, order: bytes) -> None:
        async with self._turn:
            await self._link.send(order)

    def _sent(self, sending: "asyncio.Task[None]") -> None:
        self._sending.discard(sending)
        if not sending.cancelled() and isinstance(error := sending.exception(), Exception):
            self._note(error)

    async def _serve(self, job: Job, talk: Talk) -> None:
        channel = FrameChannel(
            self._link.send,
            job.limits.frame_bytes,
            job.limits.frames,
            self._meter,
            lambda: self._arrived,
            self._silence,
            getattr(self._link, "times", None),
        )
        try:
            self._dialogue.expect_frames(channel.reader)
        except WireFault as fault:
            end_by(fault)
        talking = asyncio.create_task(_awaited(talk(channel)))
        try:
            await self._watch(talking, channel, job.limits.wall)
        finally:
            channel.close()
            talking.cancel()
            await asyncio.wait([talking])
            self._seconds["done"] = time.monotonic() - self._mark
        if channel.cause:
            end_by(channel.cause)
        await talking
        reason = "a call was given up" if channel.given_up else ""
        raise Ended(Told(Ending.COMPLETED, reason=reason, told=False, unheard=channel.given_up))

    async def _watch(self, talking: "asyncio.Task[None]", channel: FrameChannel, wall: float) -> None:
        """Until the talk is over; a fault, an order or the deadline ends it first."""
        due = self._mark + wall
        while not talking.done():
            event = asyncio.ensure_future(self._queue.get())
            try:
                await asyncio.wait(
                    [talking, event], timeout=due - time.monotonic(), return_when=asyncio.FIRST_COMPLETED
                )
                if event.done():
                    self._heed_in_talk(event.result()[1], channel)
            finally:
                event.cancel()
            if not talking.done() and time.monotonic() >= due:
                raise channel.unsent or Ended(_outlasted(wall, by_candidate=channel.busy))

    def _heed_in_talk(self, event: Happening, channel: FrameChannel) -> None:
        if event is Silence.END and not channel.busy:
            # Nobody is waiting for an answer: whether this was too early depends on whether another call comes.
            channel.end(event)
        else:
            end_by(event)


async def _packed(bundle: Bundle, job: Job) -> bytes:
    """The archive that is sent. A large one is packed in a thread: a judge's bundle is as large as outputs are."""

    def packed() -> bytes:
        archive = bundle.pack(job.limits.bundle_bytes, scripts(job))
        bundle.check_room(job.limits)
        return archive

    if len(bundle.files) > SMALL_FILES or sum(map(len, bundle.files.values())) > SMALL_BYTES:
        return await asyncio.to_thread(packed)
    return packed()


def _outlasted(wall: float, *, by_candidate: bool) -> Told:
    if by_candidate:
        return Told(Ending.TIMED_OUT, reason=f"over its limit of {wall:g} s", told=False, unheard=True)
    return Told(Ending.KILLED, reason=f"the talk outlasted the limit of {wall:g} s", told=False, unheard=True)


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _failure(said: Said, otherwise: Ending) -> Ending:
    """A failed step whose cause PID 1 saw gets that cause as its ending."""
    if said.full:
        return Ending.WORK_FULL
    return Ending.PROCESS_LIMIT if said.forks_refused else otherwise
