"""A serving candidate that answers before it is asked, twice, for another, too much, too late, or by halves.

The first exchange is honest: it shows that the attack ran, and that the fault is about what came after it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sandbox.attacks.attack import QUICK, Arena, Finding, attack
from sandbox.attacks.forge import run_seen
from sandbox.backend import Channel
from sandbox.errors import SandboxError
from sandbox.job import Ending, Mode
from sandbox.wire.faults import Fault
from sandbox.wire.frames import Reply

CALL_S = 2.0
QUESTIONS = 20
PATIENCE_S = 10.0
LIMITS = QUICK.model_copy(update={"frame_bytes": 4096, "frames": 8})

SERVE = """
import os, sys, time
def take(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data
def request():
    header = take(12)
    return header[4:], take(int.from_bytes(header[:4], "big"))
def send(data):
    while data:
        data = data[os.write(1, data):]
def reply(nonce, payload=b"answer", length=None):
    send((len(payload) if length is None else length).to_bytes(4, "big") + nonce + payload)
def note(text):
    os.write(2, text.encode() + b"\\n")
    time.sleep(0.4)
def honest():
    nonce, payload = request()
    note("serves")
    reply(nonce)
    return nonce
"""


@dataclass(frozen=True, slots=True)
class Answering:
    """What the candidate does after `SERVE`, and the fault that it must end with.

    What it sends unasked comes after so many questions, and no other is asked meanwhile: on a slow machine it would
    come after the next question, and be an answer to that one, if a wrong one.
    """

    title: str
    source: str
    fault: Fault
    questions: int = QUESTIONS


ANSWERS = (
    Answering(
        "answering before being asked",
        "note('serves')\nreply(bytes(8))\ntime.sleep(5)",
        Fault.FRAME_EXTRA,
        questions=0,
    ),
    Answering("answering twice", "nonce = honest()\nreply(nonce)\ntime.sleep(5)", Fault.FRAME_EXTRA, questions=1),
    Answering(
        "answering the next request ahead",
        "honest()\nreply(os.urandom(8))\ntime.sleep(5)",
        Fault.FRAME_EXTRA,
        questions=1,
    ),
    Answering("answering with a nonce of its own", "honest()\nrequest()\nreply(bytes(8))", Fault.FRAME_NONCE),
    Answering(
        "answering out of order: the nonce of the call before",
        "old = honest()\nrequest()\nreply(old)",
        Fault.FRAME_NONCE,
    ),
    Answering(
        "announcing an answer of four gigabytes",
        "honest()\nnonce, _ = request()\nreply(nonce, b'x', 0xffffffff)\ntime.sleep(5)",
        Fault.FRAME_OVERSIZED,
    ),
    Answering(
        "an answer one byte over the cap",
        "honest()\nnonce, _ = request()\nreply(nonce, bytes(4097))\ntime.sleep(5)",
        Fault.FRAME_OVERSIZED,
    ),
    Answering("answering late", "honest()\nnonce, _ = request()\ntime.sleep(4)\nreply(nonce)", Fault.FRAME_LATE),
    Answering(
        "half a header, then silence",
        "honest()\nnonce, _ = request()\nsend(b'\\0\\0\\0\\x06' + nonce[:4])\ntime.sleep(5)",
        Fault.FRAME_LATE,
    ),
    Answering(
        "half an answer, then silence",
        "honest()\nnonce, _ = request()\nreply(nonce, b'ans', 6)\ntime.sleep(5)",
        Fault.FRAME_LATE,
    ),
    Answering("more answers than allowed", "while True:\n    honest()", Fault.FRAME_LIMIT),
    Answering(
        "printing where frames belong", "honest()\nrequest()\nprint('a stray line', flush=True)", Fault.FRAME_NONCE
    ),
)


class _Asker:
    """Asks until the chamber ends. After so many questions it waits first: what is sent unasked has time to come."""

    def __init__(self, questions: int = QUESTIONS, call_s: float = PATIENCE_S) -> None:
        self.questions = questions
        self.call_s = call_s
        self.answers: list[bytes] = []

    async def talk(self, channel: Channel) -> None:
        for asked in range(QUESTIONS):
            if asked == self.questions:
                await asyncio.sleep(PATIENCE_S)
            limit = self.call_s if asked else PATIENCE_S
            self.answers.append((await channel.call(b"question", limit)).payload)


def _attempt(answering: Answering) -> Callable[[Arena], Coroutine[Any, Any, Finding]]:
    async def attempt(arena: Arena) -> Finding:
        late = answering.fault is Fault.FRAME_LATE
        asker = _Asker(answering.questions, CALL_S if late else PATIENCE_S)
        started = time.monotonic()
        seen = await run_seen(arena, SERVE + answering.source, limits=LIMITS, talk=asker.talk, mode=Mode.RELAY)
        outcome = seen.outcome
        expected = LIMITS.frames if answering.fault is Fault.FRAME_LIMIT else 1
        honest = len(asker.answers) <= expected and set(asker.answers) <= {b"answer"}
        held = outcome.ending is Ending.PROTOCOL and outcome.reason.startswith(answering.fault) and not outcome.told
        quick = time.monotonic() - started < 60
        blocked = honest and held and quick and not outcome.outputs and seen.gone
        return Finding("serves" in seen.log, blocked, str(outcome.ending), outcome.reason[:100])

    return attempt


for _answering in ANSWERS:
    attack("T81", _answering.title, is_bytes=True)(_attempt(_answering))


@attack("T81", "half an answer, then the end of the program")
async def half_and_gone(arena: Arena) -> Finding:
    """A program that ends within a frame has failed; the half is not handed on, and it is not the provider's fault."""
    asker = _Asker()
    source = SERVE + "honest()\nnonce, _ = request()\nreply(nonce, b'ans', 6)\nos._exit(0)"
    try:
        seen = await run_seen(arena, source, limits=LIMITS, talk=asker.talk, mode=Mode.RELAY)
    except SandboxError as error:
        return Finding(bool(asker.answers), False, type(error).__name__, str(error))
    ended = seen.outcome.ending in (Ending.FAILED, Ending.PROTOCOL)
    blocked = ended and asker.answers == [b"answer"] and seen.gone
    return Finding("serves" in seen.log, blocked, str(seen.outcome.ending), seen.outcome.reason)


@attack("T81", "a stray print of a program that keeps frames apart")
async def stray_print(arena: Arena) -> Finding:
    """With frames on a descriptor of their own, a print goes to the log and the exchange goes on."""
    source = SERVE.replace("os.write(1,", "os.write(frames,") + (
        "frames = os.dup(1)\nos.dup2(2, 1)\nwhile True:\n    print('a stray line', flush=True)\n    honest()"
    )
    asker = _Asker()

    async def talk(channel: Channel) -> None:
        for _ in range(3):
            asker.answers.append((await channel.call(b"question", PATIENCE_S)).payload)

    seen = await run_seen(arena, source, limits=LIMITS, talk=talk, mode=Mode.RELAY)
    blocked = seen.outcome.ending is Ending.COMPLETED and asker.answers == [b"answer"] * 3 and seen.gone
    return Finding("a stray line" in seen.log, blocked, str(seen.outcome.ending), f"{len(asker.answers)} answers")


WORK_S = 0.5
BUSY_S = 0.25
TAKEN_BACK = f"""
def take_back(count):
    try:
        answers = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
        send(bytes(count))
        time.sleep(0.05)
        return os.read(answers, count)
    except OSError as error:
        return error
honest()
nonce, _ = request()
took = take_back(18)
time.sleep({WORK_S})
reply(nonce)
note(f"took {{took}}")
"""


@attack("T81", "an answer ahead of the work, taken back and given again")
async def taken_back(arena: Arena) -> Finding:
    """What the clock saw come must have come for good: the time of the call would be that of what was taken back."""
    replies: list[Reply] = []

    async def talk(channel: Channel) -> None:
        await channel.call(b"question", PATIENCE_S)
        asking = asyncio.create_task(channel.call(b"question", PATIENCE_S))
        await asyncio.sleep(0)
        time.sleep(BUSY_S)  # noqa: ASYNC251  an owner that reads at once leaves nothing to be taken back
        replies.append(await asking)

    seen = await run_seen(arena, SERVE + TAKEN_BACK, limits=LIMITS, talk=talk, mode=Mode.RELAY)
    early = any(reply.payload == b"answer" and reply.elapsed_s < WORK_S for reply in replies)
    seconds = ", ".join(f"{reply.elapsed_s:.2f} s" for reply in replies) or seen.outcome.reason[:100]
    return Finding("serves" in seen.log, not early and seen.gone, str(seen.outcome.ending), seconds)
