"""A combination that calls its members: each in a chamber of its own, and we carry the frames between them.

The combination is a coroutine, as a judge that calls is: we answer its last request, and its reply is the next one. It
names a member; that one's chamber is opened at its first call and stays until the combination is done. Payloads pass
through unread. Each side has its own time, and pays for its own turns only. What a member does can fail the call, and
never more: a member that is lost while its provider is well is a call that failed. All that is spent is the
combination's.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from orchestrator.domain.records import Spent
from orchestrator.door import BrokeOff, Door, NotStarted, Overseer, Ran, TooLarge
from orchestrator.judge.guest.blastdoor_values import Malformed, decode, encode
from orchestrator.judge.turns import HEARD_S
from orchestrator.offload import offload
from sandbox import Bundle, Channel, ChannelClosed, Ending, Job, Limits, Listener, Mode, Outcome, Refused, Talk

# In a candidate's environment: it is a combination that may call its members.
CALLS = "BLASTDOOR_MEMBERS"
_PART = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.-]{1,200}"
_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,8}}")
_LATER_S = 60.0
_LARGE = 1 << 20


@dataclass(frozen=True)
class MemberSeat:
    """One member: its job and files, and the seconds that its own turns may take together."""

    job: Job
    bundle: Bundle
    wall_s: float


@dataclass(frozen=True)
class CallingDoor(Door):
    """The same door, where combinations may call. `members` are those of the frozen pool, by their nodes."""

    members: Callable[[], Mapping[str, MemberSeat]] = dict
    wall_s: Mapping[str, float] = field(default_factory=dict)

    async def run(
        self,
        job: Job,
        bundle: Bundle,
        listener: Listener | None = None,
        overseer: Overseer | None = None,
        talk: Talk | None = None,
    ) -> Ran:
        if talk is not None or CALLS not in job.env:
            return await super().run(job, bundle, listener, overseer, talk)
        calling = _Calling(self, job, await offload(self.members))
        async with self.turn(job):
            slept = self.awake.slept
            try:
                relayed = job.model_copy(update={"mode": Mode.RELAY})
                ran = await super().run(relayed, bundle, listener, overseer, calling.hold)
            except (NotStarted, BrokeOff, TooLarge) as error:
                await calling.close()
                error.spent += calling.spent
                raise
            finally:
                await calling.close()
            gone_s = self.awake.slept - slept
        spent = ran.spent + calling.spent
        if calling.trouble:
            calling.trouble.spent += spent
            raise calling.trouble
        if calling.is_late and gone_s:  # nobody saw whether anybody was
            raise self._slept_through(gone_s, spent)
        return Ran(calling.outcome(ran.outcome), spent)

    async def run_member(self, seat: MemberSeat, talk: Talk) -> Ran:
        """Its combination's intent is for all of them."""
        return await self.run_on_record(seat.job, seat.bundle, talk=talk)


class _Late(Exception):
    """One side has used up its time."""


class SeatTurn:
    """A channel with the time that its side has left."""

    def __init__(self, channel: Channel, wall_s: float) -> None:
        self._channel = channel
        self._left_s = wall_s

    async def ask(self, payload: bytes) -> bytes:
        """Raises _Late, and ChannelClosed where its chamber has ended."""
        try:
            async with asyncio.timeout(self._left_s + HEARD_S):
                reply = await self._channel.call(payload, self._left_s + _LATER_S)
        except TimeoutError:
            raise _Late from None
        self._left_s -= reply.elapsed_s
        if self._left_s <= 0:
            raise _Late
        return reply.payload


class _Member:
    """One chamber, from the first call until the combination is done."""

    def __init__(self, door: CallingDoor, seat: MemberSeat) -> None:
        self._door, self._seat = door, seat
        self._asked: asyncio.Queue[tuple[bytes, asyncio.Future[bytes]]] = asyncio.Queue()
        self._started = time.monotonic()
        self.spent = Spent()
        self.over = ""
        self.is_late = False
        self.trouble: NotStarted | BrokeOff | None = None
        self._life = asyncio.create_task(self._live())

    async def call(self, payload: bytes) -> bytes:
        """The member's answer, or ours where it cannot give one."""
        if self.over:
            return _failed(self.over)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((payload, answer))
        waiting: set[asyncio.Future[Any]] = {answer, self._life}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else _failed(self.over)

    async def close(self) -> None:
        """Raises what nobody foresaw: a fault of ours is not the member's end."""
        self._life.cancel()
        await asyncio.wait({self._life})
        if not self._life.cancelled():
            self._life.result()

    async def _live(self) -> None:
        job = self._seat.job
        try:
            self.spent = (await self._door.run_member(self._seat, self._talk)).spent
        except (NotStarted, BrokeOff) as error:
            self.spent = error.spent
            self.trouble = error if isinstance(error, NotStarted) or error.proven else None
        except TooLarge as error:
            self.spent, self.over = error.spent, "its files are too large"
        except Refused as error:
            self.over = str(error)
        except asyncio.CancelledError:
            passed = time.monotonic() - self._started
            self.spent = self._door.at_most(job.limits, passed, builds=bool(job.build))
            raise
        finally:
            self.over = self.over or "its chamber has ended"

    async def _talk(self, channel: Channel) -> None:
        turn = SeatTurn(channel, self._seat.wall_s)
        answer: asyncio.Future[bytes] | None = None
        try:
            loaded = await turn.ask(b"L")
            if loaded[:1] != b"L":
                self.over = "it does not load"
            while not self.over:
                payload, answer = await self._asked.get()
                answer.set_result(await turn.ask(payload))
        except _Late:
            self.is_late = True
            self.over = f"loading and all calls together took more than {self._seat.wall_s:g} s"
        except ChannelClosed:
            self.over = "its chamber has ended"
        except Refused as error:  # more than its limits let through
            self.over = str(error)


class _Calling:
    """What a combination asks for, one request after the other."""

    def __init__(self, door: CallingDoor, job: Job, seats: Mapping[str, MemberSeat]) -> None:
        self._door, self._job, self._seats = door, job, seats
        self._open: dict[str, _Member] = {}
        self._files: Mapping[str, bytes] | None = None
        self._why, self._late = "", False
        self._spent: Spent | None = None

    @property
    def spent(self) -> Spent:
        return self._spent or Spent()

    @property
    def trouble(self) -> NotStarted | BrokeOff | None:
        """A provider that failed a member failed the trial."""
        return next((it.trouble for it in self._open.values() if it.trouble), None)

    @property
    def is_late(self) -> bool:
        """Whether any side used up its time."""
        return self._late or any(it.is_late for it in self._open.values())

    async def hold(self, channel: Channel) -> None:
        """Returns in any case."""
        wall_s = self._door.wall_s[self._job.env["BLASTDOOR_MODE"]]
        turn, answer = SeatTurn(channel, wall_s), b"B" + encode({"members": list(self._seats)})
        try:
            while self._files is None and not self._why:
                request = await turn.ask(answer)
                if request[:1] == b"F":
                    await self._take(request)
                elif request[:1] == b"C":
                    answer = await self._call(request)
                    if self.trouble:
                        return
                else:
                    self._why = "a request that nobody knows"
        except _Late:
            self._late, self._why = True, f"its own turns together took more than {wall_s:g} s"
        except Refused as error:
            self._why = str(error)
        except ChannelClosed:
            return

    async def _call(self, request: bytes) -> bytes:
        length = int.from_bytes(request[1:3], "big")
        name = request[3 : 3 + length].decode("utf-8", "replace")
        if name not in self._seats:
            return _failed("it is not in the pool")
        if name not in self._open:
            seat = self._seats[name]
            job = seat.job.model_copy(
                update={
                    "inputs": tuple(it for it in self._job.inputs if it.name in _names(seat.job)),
                    "realm": self._job.realm,
                    "env": {**seat.job.env, "BLASTDOOR_MODE": self._job.env["BLASTDOOR_MODE"]},
                }
            )
            self._open[name] = _Member(self._door, replace(seat, job=job))
        payload = request[3 + length :]
        asked = b"C" + payload if len(payload) < _LARGE else await asyncio.to_thread(b"C".__add__, payload)
        return await self._open[name].call(asked)

    async def _take(self, request: bytes) -> None:
        reading = partial(decode, memoryview(request)[1:], arrays=False)
        limits: Limits = self._job.limits
        try:
            files = await offload(reading)
        except Malformed as error:
            files = str(error)
        if not isinstance(files, dict) or not all(type(data) is bytes for data in files.values()):
            self._why = "what it hands over is no set of files"
        elif odd := [name for name in files if type(name) is not str or not _NAME.fullmatch(name)]:
            self._why = f"a file that it hands over has a name that none may have: {str(odd[0])[:60]!r}"
        elif len(files) > limits.output_files or sum(map(len, files.values())) > limits.output_bytes:
            self._why = "what it hands over is larger than its limits allow"
        else:
            self._files = files

    def outcome(self, outcome: Outcome) -> Outcome:
        """As that of a program that left outputs; they are its own words, like all that a chamber says."""
        if self._files is not None:
            return replace(outcome, ending=Ending.COMPLETED, reason="", exit_code=0, outputs=self._files)
        if self._late:
            return replace(outcome, ending=Ending.TIMED_OUT, reason=self._why)
        if outcome.ending not in (Ending.COMPLETED, Ending.KILLED):
            return outcome
        return replace(outcome, ending=Ending.FAILED, reason=self._why or "it ended and handed nothing over")

    async def close(self) -> None:
        """All of them, whatever one of them raises."""
        if self._spent is None:
            ends = await asyncio.gather(*(it.close() for it in self._open.values()), return_exceptions=True)
            self._spent = sum((it.spent for it in self._open.values()), Spent())
            for fault in ends:
                if fault is not None:
                    raise fault


def _failed(why: str) -> bytes:
    return b"E" + encode(["failed", why[:500]])


def _names(job: Job) -> set[str]:
    return {it.name for it in job.inputs}
