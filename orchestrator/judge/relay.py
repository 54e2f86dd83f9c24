"""Relay mode: the judge calls the candidate. Each is in a chamber of its own; we carry the frames and hold the clock.

The judge is a coroutine: we answer its last request, and its reply is the next one. Its chamber is opened first, the
candidate's inside of it, so that no hostile byte is delivered before both can be had. Payloads pass through unread;
what is read here is the first byte of a request, the candidate's list of functions, and the judge's result.

Each side pays for its own time only: the sum over its turns is held against its limit, and the chambers' own limits are
a backstop. A candidate that falls silent while nobody asks it anything fails at the next call.
"""

import asyncio
import re
import secrets
import statistics
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, NoReturn

from orchestrator.domain.records import Calibration, Spent
from orchestrator.door import BrokeOff, Door, NotStarted, TooLarge
from orchestrator.judge.calibration import EMPTY_CALLS, WARM_UP, quieter, resolution, spread
from orchestrator.judge.data import Judgement, is_small, read_result
from orchestrator.judge.guest.blastdoor_values import Malformed, decode, encode
from orchestrator.judge.packing import unpacking_s
from orchestrator.judge.tape import Tape
from orchestrator.judge.turns import STREAMED, TooLate, Turn, deadline
from orchestrator.offload import offload
from orchestrator.text import short
from sandbox import (
    Bundle,
    Channel,
    ChannelClosed,
    Ending,
    Incoming,
    Job,
    Limits,
    Listener,
    Outcome,
    Refused,
    Reply,
    Talk,
)

SEED = "BLASTDOOR_SEED"
_FUNCTIONS = 1000
# Of what a candidate says when it is loaded; what is read in a thread, so that everybody else goes on meanwhile; and
# what is copied there.
_LOADED_BYTES = 65_536
_SMALL = 4096
_PROFILE_BYTES = 1 << 20
_LARGE = 1 << 20
_RESULT = re.compile(r"result\.json|metrics\.csv|traces/[A-Za-z0-9_.-]{1,200}")
# Beside the result, where the judge's module could not tell a time from none and gave the least that it can tell.
AT_MOST = "at-most"
# An empty call with so many bytes, so often, tells what it takes to carry them.
_CARRIED_BYTES = 1 << 18
_CARRIED = 3
# So many calls are remembered, for what one takes.
_REMEMBERED = 10_000
_CALLS = (b"C", b"K")


class Side(StrEnum):
    CANDIDATE = "candidate"
    JUDGE = "judge"


@dataclass(frozen=True)
class Seat:
    """One of the two: its job and files, and the seconds that its own turns may take together."""

    door: Door
    job: Job
    bundle: Bundle
    wall_s: float


Trouble = NotStarted | BrokeOff | TooLarge | Refused


@dataclass
class Part:
    """What is known of one side's chamber. Without an outcome it never ran, or was ended for the other's sake."""

    outcome: Outcome | None = None
    error: Trouble | None = None
    spent: Spent = field(default_factory=Spent)
    busy_s: float = 0.0


@dataclass
class Met:
    """How a meeting went. `files` is the judge's result; without one, somebody is to blame.

    `late` is whose turns took too long, `unloaded` why the candidate could not be asked at all, `broken` what the judge
    said that no judge may say, `judgement` what its result comes to. `at_most` is set where the judge says that a
    time may have been less; `measured` counts how often the channel was. `slept_s`: so long we were not there.
    `tape` has what was said, where somebody wants to know.
    """

    seed: str
    candidate: Part = field(default_factory=Part)
    judge: Part = field(default_factory=Part)
    files: Mapping[str, bytes] | None = None
    late: Side | None = None
    unloaded: str = ""
    broken: str = ""
    judgement: Judgement | None = None
    calls: int = 0
    taken_s: list[float] = field(default_factory=list)
    functions: tuple[str, ...] = ()
    median_s: float | None = None
    jitter_s: float = 0.0
    measured: int = 0
    at_most: bool = False
    profile: bytes = b""
    slept_s: float = 0.0
    tape: Tape | None = None

    @property
    def resolution_s(self) -> float:
        """The least that so many calls tell from nothing."""
        return resolution(self.jitter_s, self.calls)

    @property
    def calibration(self) -> Calibration | None:
        if self.median_s is None:
            return None
        return Calibration(
            seed=self.seed,
            median_s=self.median_s,
            jitter_s=self.jitter_s,
            calls=self.calls,
            call_s=statistics.median(self.taken_s) if self.taken_s else None,
            measured=self.measured,
        )

    @property
    def judge_log(self) -> bytes:
        return self.judge.outcome.log_tail if self.judge.outcome else b""


async def meet(
    candidate: Seat,
    judge: Seat,
    listener: Listener | None = None,
    tape: Tape | None = None,
    *,
    profiled: bool = False,
) -> Met:
    """Seat both, and carry frames until the judge has finished or one cannot go on. Raises nothing of theirs.

    `profiled`: the candidate's own module looks on, and is asked what it saw when the judge has finished.
    """
    met = Met(seed=str(secrets.randbits(63)), tape=tape)
    job = judge.job.model_copy(update={"env": {**judge.job.env, SEED: met.seed}})

    async def with_judge(judge_channel: Channel) -> None:
        talk = Conversation(met, Turn(judge_channel, judge.wall_s), job.limits)

        async def with_candidate(candidate_channel: Channel) -> None:
            await talk.hold(Turn(candidate_channel, candidate.wall_s, is_timed=True), profiled=profiled)

        if await talk.prepare():
            await _seated(candidate, candidate.job, met.candidate, listener, with_candidate, inside=True)

    await _seated(judge, job, met.judge, None, with_judge)
    met.judgement = judgement_of(met) if is_small(met.files or {}) else await offload(judgement_of, met)
    return met


async def _seated(
    seat: Seat, job: Job, part: Part, listener: Listener | None, talk: Talk, *, inside: bool = False
) -> None:
    """One chamber's life. Its failures are kept in its part: they must not end the other's chamber by an exception.

    `inside`: the other's is there already, which was opened when both were on record.
    """
    started = time.monotonic()
    run = seat.door.run_on_record if inside else seat.door.run
    try:
        ran = await run(job, seat.bundle, listener, talk=talk)
    except Refused as error:
        part.error = error
    except (NotStarted, TooLarge, BrokeOff) as error:
        part.error, part.spent = error, error.spent
    except asyncio.CancelledError:
        # The other side ended, or we were told to stop: what it cost until now is known all the same.
        passed = time.monotonic() - started
        part.spent = seat.door.at_most(job.limits, passed, builds=bool(job.build))
        raise
    else:
        part.outcome, part.spent = ran.outcome, ran.spent


class NotAllowed(Exception):
    """The candidate could not be loaded, or the judge broke the protocol; it is noted already."""


class Conversation:
    """Load, calibrate, begin, then request and answer in turn."""

    def __init__(self, met: Met, judge: Turn, limits: Limits) -> None:
        self._met = met
        self._limits = limits
        self._judge = judge
        self.turns = {Side.JUDGE: judge}
        # What a byte takes there or back, at most.
        self._byte_s = 0.0

    async def prepare(self) -> bool:
        """Calibrate with the judge's chamber, which is ours, before any hostile byte is there that could disturb it.

        False where that chamber does not answer.
        """
        whole = self._judge.left_s
        try:
            self._met.median_s, self._met.jitter_s = await self._empty_calls(Side.JUDGE)
            self._met.measured = 1
            self._byte_s = await self._carry()
        except (TooLate, NotAllowed, ChannelClosed):
            return False
        finally:
            self._met.judge.busy_s = whole - self._judge.left_s
        return True

    async def hold(self, candidate: Turn, *, profiled: bool = False) -> None:
        """Returns in any case: what ended it is in the meeting's record, or in the outcome of a chamber."""
        met, whole = self._met, (candidate.left_s, self._judge.left_s + self._met.judge.busy_s)
        self.turns[Side.CANDIDATE] = candidate
        try:
            met.functions = await self._load()
            await self._calibrate()
            begin = {"median": met.median_s, "jitter": met.jitter_s, "functions": met.functions}
            answer = b"B" + encode(begin)
            while met.files is None:
                answer = await self.serve(await self.wish(answer))
            if profiled:
                met.profile = (await self._ask(Side.CANDIDATE, b"H")).payload[1 : 1 + _PROFILE_BYTES]
        except (TooLate, NotAllowed, ChannelClosed):
            return
        finally:
            met.candidate.busy_s = whole[0] - candidate.left_s
            met.judge.busy_s = whole[1] - self._judge.left_s

    async def _ask(self, side: Side, payload: bytes) -> Reply:
        try:
            return await self.turns[side].ask(payload)
        except TooLate:
            self._met.late = side
            raise
        except Refused as error:
            # A judge's chamber takes whatever a candidate's can say, so it is the judge that asked for too much.
            self._break(Side.JUDGE, str(error))

    async def wish(self, answer: bytes) -> bytes | Incoming:
        """What the judge wants next. One who wants to know what was said needs all of it at once."""
        if self._met.tape is not None or not self.turns[Side.CANDIDATE].can_forward:
            return (await self._ask(Side.JUDGE, answer)).payload
        try:
            wish = await self._judge.ask_ahead(answer)
        except TooLate:
            self._met.late = Side.JUDGE
            raise
        except Refused as error:
            self._break(Side.JUDGE, str(error))
        return wish.payload if isinstance(wish, Reply) else wish

    async def _forward(self, request: Incoming) -> Reply:
        """To the candidate while it comes. What the judge takes to send it is the judge's time."""
        left_s = self._judge.left_s
        try:
            async with deadline(left_s):
                kind = await request.first()
            if kind not in _CALLS:
                self._break(Side.JUDGE, "a request that nobody knows")
            reply = await self.turns[Side.CANDIDATE].forward(request, left_s)
        except TooLate:
            self._met.late = Side.JUDGE if request.waited_s >= left_s else Side.CANDIDATE
            raise
        except Refused as error:
            self._break(Side.JUDGE, str(error))
        finally:
            self._judge.left_s -= request.waited_s
        if self._judge.left_s <= 0:
            self._met.late = Side.JUDGE
            raise TooLate
        return reply

    async def _load(self) -> tuple[str, ...]:
        """The candidate's functions, once it has come up; its start counts as its own time."""
        answer = (await self._ask(Side.CANDIDATE, b"L")).payload
        try:
            told = await _decoded(answer[1 : 1 + _LOADED_BYTES])
        except Malformed:
            told = None
        if not isinstance(told, list) or len(told) > _FUNCTIONS or not all(type(it) is str for it in told):
            self._met.unloaded = "what it answers when it is loaded is no list of functions"
            raise NotAllowed
        if answer[:1] != b"L":
            self._met.unloaded = f"it does not load: {short(told[-1] if told else '', 200)}"
            raise NotAllowed
        return tuple(told)

    async def _calibrate(self) -> None:
        """What an empty call takes: of the two chambers' medians the smaller is taken off, and of their jitters the
        larger must be passed. So a candidate that is slow to do nothing gains nothing.
        """
        median, jitter = await self._empty_calls(Side.CANDIDATE)
        self._met.median_s = min(median, self._met.median_s or median)
        self._met.jitter_s = max(jitter, self._met.jitter_s)

    async def _measure_again(self) -> bytes:
        """Both channels once more, where the machine was busy the first time."""
        ours, own = await self._empty_calls(Side.JUDGE), await self._empty_calls(Side.CANDIDATE)
        met = self._met
        met.median_s, met.jitter_s = quieter(
            (met.median_s or 0.0, met.jitter_s), (min(ours[0], own[0]), max(ours[1], own[1]))
        )
        met.measured += 1
        return b"R" + struct.pack("<d", 0.0) + encode({"median": met.median_s, "jitter": met.jitter_s})

    async def _carry(self) -> float:
        """The seconds that a byte takes to the judge's chamber: the least of a few tries."""
        count = max(1, min(_CARRIED_BYTES, self._limits.frame_bytes - 1))
        replies = [await self._ask(Side.JUDGE, b"N" + bytes(count)) for _ in range(_CARRIED)]
        return max(0.0, min(it.elapsed_s for it in replies) - (self._met.median_s or 0.0)) / count

    async def _empty_calls(self, side: Side) -> tuple[float, float]:
        times = []
        for number in range(WARM_UP + EMPTY_CALLS):
            reply = await self._ask(side, b"N")
            if reply.payload != b"N":
                self._break(side, "an empty call was answered by something")
            if number >= WARM_UP:
                times.append(reply.elapsed_s)
        return spread(times)

    async def serve(self, request: bytes | Incoming) -> bytes:
        """What the judge asked for, as the answer that it gets; nothing more once it has finished."""
        if isinstance(request, Incoming):
            return await self._answer(await self._forward(request))
        kind = request[:1]
        if kind == STREAMED:  # it is whole all the same
            request = request[1:]
            kind = request[:1] if request[:1] in _CALLS else b"?"
        if kind == b"F":
            self._met.files = await self._result(request)
            return b""
        if kind == b"M":
            return await self._measure_again()
        if kind == b"P":
            return await self._rehearse(request)
        if kind not in (*_CALLS, b"N", b"L"):
            self._break(Side.JUDGE, "a request that nobody knows")
        reply = await self._ask(Side.CANDIDATE, b"N" if kind == b"N" else request)
        if kind in (b"N", b"L"):
            return b"".join(_parts(reply))
        if self._met.tape is not None:
            self._met.tape.keep(request, reply.payload)
        return await self._answer(reply)

    async def _answer(self, reply: Reply) -> bytes:
        """A call's, as the judge gets it."""
        self._met.calls += 1
        if self._met.calls <= _REMEMBERED:
            self._met.taken_s.append(reply.elapsed_s)
        parts = _parts(reply)
        return b"".join(parts) if len(reply.payload) < _LARGE else await asyncio.to_thread(b"".join, parts)

    async def _rehearse(self, request: bytes) -> bytes:
        """What a call takes without a candidate: the judge's own request goes to its own chamber, which is ours.

        The candidate is there, and can make that chamber slow. So it is never more than what was measured before it was
        there, and what our own machine computes.
        """
        asked = b"Q" + request[1:] if len(request) < _LARGE else await asyncio.to_thread(b"Q".__add__, request[1:])
        reply = await self._ask(Side.JUDGE, asked)
        if reply.payload[:1] != b"Q":
            self._break(Side.JUDGE, "a rehearsal was answered by something else")
        carried = len(request) + len(reply.payload)
        started = time.monotonic()
        most_s = (self._met.median_s or 0.0) + carried * self._byte_s + await unpacking_s(memoryview(request)[6:])
        self._judge.left_s -= time.monotonic() - started  # both chambers wait, and may last as long as both turns
        if self._judge.left_s <= 0:
            self._met.late = Side.JUDGE
            raise TooLate
        return b"R" + struct.pack("<d", min(reply.elapsed_s, most_s))

    async def _result(self, request: bytes) -> Mapping[str, bytes]:
        try:
            files = await _decoded(memoryview(request)[1:])
        except Malformed as error:
            files = str(error)
        if not isinstance(files, dict) or not all(type(data) is bytes for data in files.values()):
            self._break(Side.JUDGE, f"its result is no set of files ({short(str(files), 100)})")
        self._met.at_most = files.pop(AT_MOST, None) is not None
        if odd := [name for name in files if not _RESULT.fullmatch(name) or ".." in name]:
            self._break(Side.JUDGE, f"a file of its result has a name that none has: {short(odd[0], 60)}")
        if len(files) > self._limits.output_files or sum(map(len, files.values())) > self._limits.output_bytes:
            self._break(Side.JUDGE, "its result is larger than judge.limits allow")
        return files

    def _break(self, side: Side, why: str) -> NoReturn:
        if side is Side.JUDGE:
            self._met.broken = why
        else:
            self._met.unloaded = why
        raise NotAllowed


def _parts(reply: Reply) -> tuple[bytes, ...]:
    return b"R", struct.pack("<d", reply.elapsed_s), reply.payload


async def _decoded(data: bytes | memoryview) -> Any:
    reading = partial(decode, data, arrays=False)
    return reading() if len(data) < _SMALL else await offload(reading)


def judgement_of(met: Met) -> Judgement:
    """The judge's result, or the fixed code of what was wrong with it; for a meeting that no candidate ended."""
    spent, log = met.judge.spent, met.judge_log
    if met.files is not None:
        return read_result(met.files, spent, log)
    if met.late is Side.JUDGE:
        limit = "its turns together took longer than its limit"
        return Judgement(spent, fault=f"judge {Ending.TIMED_OUT}", detail=limit, log=log)
    if met.broken:
        return Judgement(spent, fault=f"judge {Ending.PROTOCOL}", detail=met.broken, log=log)
    if isinstance(met.judge.error, BrokeOff):
        return Judgement(spent, fault="judge broke off", detail=str(met.judge.error), log=log)
    if met.judge.error is not None:
        return Judgement(spent, fault="judge cannot be run", detail=str(met.judge.error), log=log)
    outcome = met.judge.outcome
    if outcome is None or outcome.ending is Ending.COMPLETED:
        detail = "neither chamber was at work for longer than both may be together"
        return Judgement(spent, fault="the meeting outlasted its limits", detail=detail, log=log)
    return Judgement(spent, fault=f"judge {outcome.ending}", detail=outcome.why, log=log)
