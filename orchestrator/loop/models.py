"""Lines to models for the parts of a campaign: every call on record, every stream under watch."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from orchestrator.domain import events as e
from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.allowance import Allowance, Call, Ear, Used
from orchestrator.llm.line import Line, Unusable
from orchestrator.loop.book import Book
from orchestrator.loop.breaker import MODEL
from orchestrator.loop.grants import Grants
from orchestrator.watch.config import Config
from orchestrator.watch.detector import StallWatch
from orchestrator.watch.pulse import Pulse
from orchestrator.watch.recording import Header, Outcome
from orchestrator.watch.signals import Kind, Signal
from orchestrator.watch.writing import StreamWriter, recording_path

Result = TypeVar("Result")


class Provider(Protocol):
    """Holds the key."""

    def open_line(self, allowance: Allowance, ear: Ear) -> AbstractAsyncContextManager[Line]: ...

    @property
    def unusable(self) -> str | None:
        """Why the provider takes nothing from us, once it said so."""

    async def answers(self, model: str) -> bool:
        """Whether the provider is there: one call that costs nothing."""


class FoundStalled(Exception):
    """What was watched gives no sign of life, or goes in circles. It has been ended.

    `saved_s` is how much longer a plain idle time-out would have let it live.
    """

    def __init__(self, pulse: Pulse, after_s: float, saved_s: float) -> None:
        super().__init__(f"{pulse.cause}: {pulse.detail}")
        self.pulse = pulse
        self.after_s = after_s
        self.saved_s = saved_s


@dataclass(frozen=True)
class Models:
    """`grants` is what attempts hold for models; `agent` names who works with them, `configuration` how.

    `folder` is the campaign's: the signals of each attempt are kept there, to be replayed. `floor_why` says where a
    floor that is to be learnt comes from.
    """

    provider: Provider
    book: Book
    grants: Grants
    config: Config
    agent: str
    configuration: str
    folder: Path
    floor_why: str = ""
    clock: Callable[[], float] = time.monotonic
    tick_s: float = 0.5

    @property
    def allowances(self) -> Mapping[ModelRole, Allowance]:
        return self.grants.allowances

    async def answers(self) -> bool:
        """Whether the provider is there; it costs nothing to ask."""
        return await self.provider.answers(self.allowances[ModelRole.USER].models[0])

    @asynccontextmanager
    async def watched(self, node: str, role: ModelRole, lasts_s: float) -> AsyncIterator["Watched"]:
        """A line for one piece of work. Whatever is in flight when it is left is cut and booked.

        `node` is empty for work of no attempt. The line outlives nobody: after `lasts_s` its token is worth nothing.
        """
        now = self.clock()
        allowance = replace(self.grants.left(node, role), expires_at=now + lasts_s)
        # Each role has its own recordings: a verifier's pace says nothing of how the agent works.
        name = node if role is ModelRole.USER else "-".join(filter(None, (role, node)))
        agent = self.agent if role is ModelRole.USER else role
        take = self.book.state.nodes[node].take if node else self.book.state.campaign.calls
        header = Header(f"{name}-{take}", agent, allowance.models[0], self.configuration, floor=self.config.floor)
        writer = StreamWriter(recording_path(self.folder, name, take), header, now)
        watched = Watched(self, node, StallWatch(self.config, now), writer, now + lasts_s)
        outcome = Outcome.FAILED
        try:
            async with self.provider.open_line(allowance, watched) as line:
                watched.line = line
                yield watched
            outcome = Outcome.WELL
        except FoundStalled:
            outcome = Outcome.STALLED
            raise
        finally:
            if role is ModelRole.USER and not watched.called:
                self.grants.asked_nothing(node)
            writer.close(self.clock(), outcome)
            (self.folder / "live" / f"{node}.pulse").unlink(missing_ok=True)


class Watched:
    """One line and what is heard of it: records its calls, and ends its work when it stalls."""

    line: Line

    def __init__(self, models: Models, node: str, watch: StallWatch, writer: StreamWriter, deadline: float) -> None:
        self._models = models
        self._node = node
        self._watch = watch
        self._writer = writer
        self._deadline = deadline
        self.called = False
        self._forwarded: set[str] = set()

    async def intended(self, call: Call) -> None:
        self.called = True
        self._forwarded.add(call.id)
        if call.role is ModelRole.USER:
            self._models.grants.asked(call.worst)
        self._models.book.record(
            e.ModelCallIntended(
                node=self._node,
                call=call.id,
                role=call.role,
                model=call.model,
                worst=call.worst,
                configuration=self._models.configuration,
            )
        )
        await self._models.book.durable()

    def heard(self, signal: Signal) -> None:
        self._watch.hear(signal)
        self._writer.hear(signal)
        # Once a call is on its way, it is the provider alone that lets it wait: it is tried again for minutes.
        is_silent = MODEL in self._models.book.state.campaign.silent
        if signal.kind is Kind.WAITING and signal.call in self._forwarded and not is_silent:
            self._models.book.record(e.ProviderSilent(provider=MODEL))
        elif signal.kind is Kind.STARTED and is_silent:
            self._models.book.record(e.ProviderHeard(provider=MODEL))

    def ended(self, call: Call, used: Used) -> None:
        self._forwarded.discard(call.id)
        self._models.grants.count(self._node, call.role, used.spent)
        told = {name: getattr(used, name) for name in ("ending", "tokens", "spent", "first_s", "seconds")}
        self._models.book.record(
            e.ModelCallEnded(node=self._node, call=call.id, role=call.role, model=call.model, **told)
        )

    async def until_stalled(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What the work brings. Raises FoundStalled after it was ended: its chamber is gone and its calls are cut.

        Raises Unusable when the provider takes nothing from us: an agent that is told so may go on trying.
        """
        task = asyncio.create_task(work)
        try:
            while True:
                done, _ = await asyncio.wait([task], timeout=self._models.tick_s)
                if done:
                    return task.result()
                pulse = self._watch.pulse(self._models.clock())
                self._show(pulse)
                if pulse.stalled:
                    await self._end(task, pulse)
                if refused := self._models.provider.unusable:
                    raise Unusable(refused)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _end(self, task: "asyncio.Task[Any]", pulse: Pulse) -> None:
        why = f"stalled: {pulse.cause}, {pulse.detail}"
        if self._node:
            self._models.book.record(e.KillIntended(node=self._node, why=why))
        found = self._models.clock()
        task.cancel()
        await asyncio.wait([task])
        saved = min(self._watch.saved_s(found), self._deadline - found)
        raise FoundStalled(pulse, found - pulse.since, max(0.0, saved))

    def _show(self, pulse: Pulse) -> None:
        """For those who look on; a file, because that may be another terminal."""
        if not self._node:
            return
        node = self._models.book.state.nodes[self._node]
        told = {
            "tokens": pulse.tokens,
            "rate": pulse.rate,
            "floor": pulse.floor,
            "state": pulse.state,
            "usd": (node.spent - node.booked).microdollars / 1e6,
            "phase": "proposing",
        }
        path = self._models.folder / "live" / f"{self._node}.pulse"
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".pulse-new")
        beside.write_text(json.dumps(told))
        beside.replace(path)
