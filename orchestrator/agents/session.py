"""The talk with an agent's chamber: requests up, answers down, tools, the clock, and signs of life for the stall watch.

We ask and the chamber answers, so each frame carries what waits in both directions. While something is open we wait
here for what is to go down, and ask at once when it is there; while nothing is, the chamber holds its answer until it
has something to say.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.agents.exchange import DOWN_BYTES, Exchange
from orchestrator.agents.messages import Broken, Exited, Gone, Request, ToolCall, Up, read
from orchestrator.agents.steering import Instructions
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.llm.line import App
from orchestrator.offload import offload
from orchestrator.watch.signals import Hold, Kind, Signal
from sandbox import Channel, ChannelClosed

# How long the chamber may hold its answer when nothing is open, and how long we wait for news when something is.
IDLE_S, OPEN_S = 1.0, 0.02
# Far more than an answer takes: a chamber that is that late is broken.
LATE_S = 60.0
# An agent whose question was refused may know another way to ask.
GRACE_S = 15.0
CPU_S = 5.0
TOOLS = 1_000
# What is read in a thread: everybody else goes on meanwhile.
SMALL = 4096


@dataclass(frozen=True)
class Told:
    """The answer to a tool: 0 is well. `done` ends the agent's work."""

    code: int
    text: str
    done: bool = False


Tool = Callable[[ToolCall], Awaitable[Told]]


class Session:
    """One agent's time: at `finish_at` of the steady clock it is told to end, and has `finish_s` for that.

    `broken` is what it said that nobody may say, `error` what went wrong in a tool of ours. It ends once the agent
    has worked `in_vain` for a while.
    """

    def __init__(
        self,
        app: App,
        instructions: Instructions,
        tool: Tool,
        heard: Callable[[Signal], None],
        *,
        finish_at: float,
        finish_s: float,
        down_bytes: int = DOWN_BYTES,
        in_vain: Callable[[], bool] = lambda: False,
    ) -> None:
        self.exchange = Exchange(app, instructions, down_bytes)
        self._tool = tool
        self._heard = heard
        self._finish_at = finish_at
        self._finish_s = finish_s
        self._in_vain = in_vain
        self._vain_since: float | None = None
        self._given_up_at: float | None = None
        self._running: dict[int, asyncio.Task[None]] = {}
        self._tools = 0
        self._done = False
        self.exited: Exited | None = None
        self.broken = ""
        self.error: Exception | None = None

    @property
    def overtime(self) -> bool:
        """Whether it was told to finish because its time was over."""
        return self._given_up_at is not None

    async def talk(self, channel: Channel) -> None:
        """Returns in any case: what ended it is in here, or in the outcome of the chamber."""
        evidence = asyncio.create_task(self._tell_cpu(channel))
        try:
            with suppress(ChannelClosed):
                await self._carry(channel)
        except Broken as error:
            self.broken = str(error)
        finally:
            tasks = [evidence, *self._running.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self.exchange.close()

    async def _carry(self, channel: Channel) -> None:
        while not self._done:
            hold = await self._wait()
            if self._is_in_vain():
                return
            down = self.exchange.take()
            reply = await channel.call(encode([hold, down]), hold + LATE_S)
            large = len(reply.payload) > SMALL
            for message in await offload(read, reply.payload) if large else read(reply.payload):
                self._heed(message)

    def _is_in_vain(self) -> bool:
        if not self._in_vain():
            self._vain_since = None
            return False
        now = time.monotonic()
        self._vain_since = now if self._vain_since is None else self._vain_since
        return now - self._vain_since >= GRACE_S

    async def _wait(self) -> float:
        """Until there is something to send, or it is time to ask; says how long the chamber may hold its answer."""
        now = time.monotonic()
        if self._given_up_at is None and now >= self._finish_at:
            self._given_up_at = now + self._finish_s
            self.exchange.tell(["finish"])
        if self._given_up_at is not None and now >= self._given_up_at:
            self._done = True
        if self.exchange.news.is_set():
            return 0.0
        if not (self.exchange.busy or self._running):
            return min(IDLE_S, max(0.0, (self._given_up_at or self._finish_at) - now))
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_S):
                await self.exchange.news.wait()
        return 0.0

    def _heed(self, message: Up) -> None:
        match message:
            case Request():
                self.exchange.request(message)
            case Gone():
                self.exchange.gone(message)
            case ToolCall():
                self._call(message)
            case Exited():
                self.exited = message
                self._done = True

    def _call(self, call: ToolCall) -> None:
        self._tools += 1
        if self._tools > TOOLS or call.id in self._running:
            raise Broken(f"a flood of calls to {call.name}")
        if self._running:
            self.exchange.tell(["told", call.id, 1, "one at a time: wait for the answer to the call before"])
            return
        self._running[call.id] = asyncio.create_task(self._answer(call))

    async def _answer(self, call: ToolCall) -> None:
        self._heard(Signal(time.monotonic(), Kind.HELD, hold=Hold.TRIAL))
        try:
            told = await self._tool(call)
        except Exception as error:  # noqa: BLE001  raised again where the talk began, once the chamber is gone
            self.error = error
            self._done = True
            return
        finally:
            self._running.pop(call.id, None)
            self._heard(Signal(time.monotonic(), Kind.RELEASED, hold=Hold.TRIAL))
        self.exchange.tell(["told", call.id, told.code, told.text])
        self._done = self._done or told.done

    async def _tell_cpu(self, channel: Channel) -> None:
        """Evidence from outside that a tool of the agent's is at work, where the backend can tell."""
        while True:
            if (used := await channel.processor_seconds()) is not None:
                self._heard(Signal(time.monotonic(), Kind.CPU, cpu_s=used))
            await asyncio.sleep(CPU_S)
