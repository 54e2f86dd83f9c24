"""Updates as they come, to every browser that looks: server-sent events, few enough that none can exhaust the server.

One task for each campaign that is looked at waits for its ledger to grow; what came is read and put into words once,
whatever the number of viewers. A viewer that does not keep up is told to start again.
"""

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from orchestrator.registry import told
from orchestrator.text import short
from orchestrator.views.page.finding import is_file
from orchestrator.views.page.followed import UNREADABLE, Followed
from orchestrator.views.page.waking import Notices
from orchestrator.wiring.ledgers import FILE

MOST_VIEWERS = 64
# Between two updates while much happens: what is on disk is on the screen within 0.3 s, and an eye needs no more.
GAP_S = 0.25
LIVE_GAP_S = 0.5
# A notice comes before the write that it tells of is done, and most writes come several at a time: a look waits for
# them, and one that finds nothing is repeated.
_SETTLE_S = 0.03
_LOOKS_S = (0.06, 0.2, 0.5)
# Where the kernel tells, this only mends what it missed; where it does not, this is how often the ledger is asked.
_IDLE_S = 5.0
_ASKED_S = 0.25
_BEAT_S = 15.0
_BEAT = b": \n\n"  # one that left is noticed by this
# Before one that could not be read is tried again; the last one over and over.
AGAIN_S = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
_QUEUED = 64
# What changes when a campaign does; none is told where some were lost.
NAMES = {"", "lock", FILE, f"{FILE}-wal"}


class TooMany(Exception):
    """As many viewers as there may be are there already."""


class Viewer:
    """One connection, from which address, of which session. What waits for it is bounded."""

    def __init__(self, address: str = "", session: str = "") -> None:
        self.address = address
        self.session = session
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)

    def give(self, message: bytes | None) -> None:
        """None ends it. Where it does not keep up, all that waits is replaced by the word that it must start again."""
        try:
            self._waiting.put_nowait(message)
        except asyncio.QueueFull:
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._waiting.put_nowait(message if message is None else written("again", {}))

    async def messages(self) -> AsyncIterator[bytes]:
        """With a beat between them, whether something happens or not: a timer for each message costs more than it."""
        self._beat_later()
        try:
            while (message := await self._waiting.get()) is not None:
                yield message
        finally:
            self._timer.cancel()

    def _beat_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def _beat(self) -> None:
        if self._waiting.empty():
            self.give(_BEAT)
        self._beat_later()


class Audience:
    """All viewers of one kind, and how many there may be. Of a full room goes the newest of whoever has most of it, by
    address and then by session: nobody fills it alone.
    """

    def __init__(self, most: int = MOST_VIEWERS) -> None:
        self.most = most
        self._viewers: list[Viewer] = []

    @property
    def count(self) -> int:
        return len(self._viewers)

    def has_room(self, viewer: Viewer) -> bool:
        return self.count < self.most or self._heaviest(viewer) is not viewer

    @contextlib.contextmanager
    def seat(self, viewer: Viewer) -> Iterator[Viewer]:
        if not self.has_room(viewer):
            raise TooMany
        if self.count >= self.most:
            heaviest = self._heaviest(viewer)
            self._viewers.remove(heaviest)
            heaviest.give(None)
        self._viewers.append(viewer)
        try:
            yield viewer
        finally:
            if viewer in self._viewers:
                self._viewers.remove(viewer)

    def _heaviest(self, newcomer: Viewer) -> Viewer:
        everyone = [*self._viewers, newcomer]
        addresses, sessions = Counter(it.address for it in everyone), Counter(it.session for it in everyone)
        at = range(len(everyone))
        return everyone[max(at, key=lambda it: (addresses[everyone[it].address], sessions[everyone[it].session], it))]


class Broadcast:
    """Follows one campaign while it has viewers."""

    def __init__(self, followed: Followed, notices: Notices) -> None:
        self._followed = followed
        self._notices = notices
        self._viewers: set[Viewer] = set()
        self._wake, self._stir = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: list[Callable[[], None]] = []
        self._is_failing = False

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    @property
    def is_up_to_date(self) -> bool:
        """Whether somebody's viewing keeps the campaign so."""
        return bool(self._tasks) and not self._tasks[0].done() and not self._is_failing

    def join(self, viewer: Viewer) -> None:
        self._viewers.add(viewer)
        if any(task.done() for task in self._tasks):
            self._end()
        if not self._tasks:
            self._begin()

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)
        if not self._viewers:
            self.stop()

    def stop(self) -> None:
        self._end()
        for viewer in self._viewers:
            viewer.give(None)

    def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for end in self._ends:
            end()
        self._tasks, self._ends = [], []

    def _begin(self) -> None:
        folder = self._followed.reading.folder
        seen = self._notices.watch(folder, lambda name: self._wake.set() if name in NAMES else None)
        live = self._notices.watch(folder / "live", lambda _: self._stir.set())
        self._ends = [end for end in (seen, live) if end]
        told = seen is not None and is_file(self._followed.found)
        self._tasks = [asyncio.create_task(self._follow(_IDLE_S if told else _ASKED_S))]
        self._tasks.append(asyncio.create_task(self._follow_live()))

    async def _follow(self, idle_s: float) -> None:
        looks = iter(_LOOKS_S)
        while True:
            self._wake.clear()
            update = await self._polled()
            if update:
                self._give(written("again" if "again" in update else "update", update, update["mark"]))
                # The write that a notice told of may have been one later still.
                looks = iter([min(_LOOKS_S[-1], idle_s) - GAP_S])
                await asyncio.sleep(GAP_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(next(looks, idle_s)):
                    await self._wake.wait()
                looks = iter(_LOOKS_S)
                await asyncio.sleep(_SETTLE_S)

    async def _polled(self) -> dict[str, Any] | None:
        """Viewers are told of one that cannot be read, and start again when it can."""
        pauses = itertools.chain(AGAIN_S, itertools.repeat(AGAIN_S[-1]))
        while True:
            try:
                update = await asyncio.to_thread(self._followed.run, Followed.poll)
            except Exception as error:  # noqa: BLE001  a ledger of somebody else may fail in any way
                self._is_failing = True
                self._give(written("failed", {"error": _why(error)}))
                await asyncio.sleep(next(pauses))
                continue
            failed, self._is_failing = self._is_failing, False
            return self._followed.start_again() if failed else update

    async def _follow_live(self) -> None:
        while True:
            await self._stir.wait()
            self._stir.clear()
            try:
                self._give(written("live", await asyncio.to_thread(self._followed.live)))
            except Exception as error:  # noqa: BLE001  a ledger of somebody else may fail in any way; the next write stirs again
                self._give(written("failed", {"error": _why(error)}))
            await asyncio.sleep(LIVE_GAP_S)

    def _give(self, message: bytes) -> None:
        for viewer in self._viewers:
            viewer.give(message)


def _why(error: Exception) -> str:
    return short(str(error) if isinstance(error, UNREADABLE) else told(error), 500)


def written(kind: str, value: Any, mark: str = "") -> bytes:
    """JSON in one line of ASCII: no text in it can end the message or begin another."""
    told = f"id: {mark}\n" if mark else ""
    return f"event: {kind}\n{told}data: {json.dumps(value, allow_nan=False, separators=(',', ':'))}\n\n".encode()
