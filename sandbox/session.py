"""The boot protocol over a live stdin and stdout, whoever provides them.

One consumer reads a queue of what happened (the chamber spoke, broke a rule, fell silent; somebody asked to stop
or kill) and decides the ending. The pump that fills the queue never stops reading: an engine can hang in `kill`
while a full output pipe has no reader.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sandbox.backend import Listener, Talk
from sandbox.bundle import Bundle
from sandbox.channel import FrameChannel, Meter
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.happenings import Ended, Happening, NotDelivered, Order, Silence, Told, end_by
from sandbox.job import Ending, Job, Mode
from sandbox.link import Deadlines, Link
from sandbox.script import scripts
from sandbox.wire.demux import Stream
from sandbox.wire.dialogue import Dialogue, Phase, Said
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.harvest import Harvest
from sandbox.wire.log import Log, printable

HELLO_LOG_CAP = 65_536
ORDER_S = 1.0


class Session:
    """One conversation with one chamber."""

    def __init__(self, link: Link, deadlines: Deadlines, meter: Meter | None = None) -> None:
        self._link = link
        self._meter = meter
        self._deadlines = deadlines
        self._queue: asyncio.Queue[tuple[float, Happening]] = asyncio.Queue()
        self._dialogue = Dialogue()
        self._log = Log(HELLO_LOG_CAP)
        self._draining = False
        self._stop_asked = False
        self._ended = False
        self._seconds: dict[str, float] = {}
        self._mark = time.monotonic()
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
        packed = bundle.pack(job.limits.bundle_bytes, scripts(job))
        bundle.check_room(job.limits)
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
        await asyncio.wait([self._pump], timeout=timeout)
        return self._pump.done()

    async def close(self) -> None:
        ending = [self._pump, *self._sending]
        for task in ending:
            task.cancel()
        await asyncio.wait(ending)

    def _last_words(self) -> str:
        return printable(self._log.tail.strip().partition(b"\n")[0])[:200]

    def _note(self, event: Happening) -> None:
        self._queue.put_nowait((time.monotonic(), event))

    async def _read_all(self) -> None:
        try:
            while pieces := await self._link.receive():
                for stream, piece in pieces:
                    if not self._draining:
                        self._heed(partial(self._take, stream, piece))
                # A stream that is always ready would otherwise keep everybody else from the event loop.
                await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  handed on whole, to whoever runs the chamber
            self._note(error)
            return
        self._ended = True
        if not self._draining:
            self._heed(self._take_end)

    def _heed(self, work: Callable[[], None]) -> None:
        """A rule that the chamber broke, or a listener's own failure, is noted; reading goes on without heeding."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  handed on whole, to whoever runs the chamber
            self._draining = True
            self._note(error)

    def _take(self, stream: Stream, piece: memoryview) -> None:
        if stream is Stream.STDERR:
            self._log.feed(piece)
        else:
            for said in self._dialogue.feed(piece):
                self._note(said)

    def _take_end(self) -> None:
        self._log.close()
        self._dialogue.finish()
        self._note(Silence.END)

    async def _deliver(self, job: Job, packed: bytes) -> None:
        header = f"{job.mode} {int(bool(job.build))} {len(packed)}\n"
        try:
            async with asyncio.timeout(self._deadlines.upload):
                await self._link.send(header.encode() + packed)
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
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    at, event = await self._queue.get()
            except TimeoutError:
                if self._stop_asked:
                    raise Ended(
                        await self._collect(job, Told(Ending.KILLED, reason="ignored the order to stop", told=False))
                    ) from None
                raise Ended(Told(late, reason=f"over its limit of {limit:g} s", told=False)) from None
            if event is Order.STOP and self._stop_asked:
                continue
            if event is Order.STOP:
                self._stop_asked = True
                due = min(due, time.monotonic() + job.limits.grace)
                await self._command("stop")
            elif isinstance(event, Said) and event.phase is phase:
                self._seconds[phase.name.lower()], self._mark = max(0.0, at - self._mark), at
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
        await self._command("harvest")
        try:
            async with asyncio.timeout(self._deadlines.collect):
                while True:
                    at, event = await self._queue.get()
                    if event is Silence.END:
                        break
                    if not isinstance(event, Said) and event is not Order.STOP:
                        end_by(event)
        except TimeoutError:
            return Told(Ending.TIMED_OUT, reason="the outputs were not handed over in time", told=False)
        self._seconds["collect"] = at - started
        told.outputs = harvest.files
        return told

    async def _begin(self) -> None:
        """Nothing hostile runs before this order, so one that does not get through is nobody's fault in there."""
        try:
            async with asyncio.timeout(self._deadlines.upload):
                await self._link.send(b"go\n")
        except TimeoutError:
            raise NotDelivered(f"the order to begin was not delivered after {self._deadlines.upload:g} s") from None
        self._mark = time.monotonic()

    async def _command(self, word: str) -> None:
        """A chamber that does not read must not hold us up: the order stays on its way, the phase decides how long."""
        sending = asyncio.create_task(self._send_in_turn(word.encode() + b"\n"))
        self._sending.add(sending)
        sending.add_done_callback(self._sent)
        done, _ = await asyncio.wait({sending}, timeout=ORDER_S)
        if done:
            await sending

    async def _send_in_turn(self, order: bytes) -> None:
        async with self._turn:
            await self._link.send(order)

    def _sent(self, sending: "asyncio.Task[None]") -> None:
        self._sending.discard(sending)
        if not sending.cancelled():
            sending.exception()  # a connection that broke is heard of by whoever reads

    async def _serve(self, job: Job, talk: Talk) -> None:
        channel = FrameChannel(self._link.send, job.limits.frame_bytes, job.limits.frames, self._meter)
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
        raise Ended(Told(Ending.COMPLETED, told=False))

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
                if channel.busy:
                    raise Ended(Told(Ending.TIMED_OUT, reason=f"over its limit of {wall:g} s", told=False))
                raise Ended(Told(Ending.KILLED, reason=f"the talk outlasted the limit of {wall:g} s", told=False))

    def _heed_in_talk(self, event: Happening, channel: FrameChannel) -> None:
        if event is Silence.END and not channel.busy:
            # Nobody is waiting for an answer: whether this was too early depends on whether another call comes.
            channel.end(event)
        else:
            end_by(event)


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _failure(said: Said, otherwise: Ending) -> Ending:
    """A failed step whose cause PID 1 saw gets that cause as its ending."""
    if said.full:
        return Ending.WORK_FULL
    return Ending.PROCESS_LIMIT if said.forks_refused else otherwise
