"""All campaigns that were found, each with where it stands; and the viewers that are told when one changes."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.ledger import LedgerError
from orchestrator.registry import told
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.text import short
from orchestrator.views.page.finding import Found, find_campaigns, is_file
from orchestrator.views.page.streams import NAMES, Viewer, written
from orchestrator.views.page.summary import read_standing, summary_of
from orchestrator.views.page.waking import Notices

# Between two searches for new campaigns, while somebody looks.
LOOK_AGAIN_S = 3.0
GAP_S = 0.5
# So long a campaign may take to say where it stands, and so many are asked at once.
ANSWER_S = 10.0
_READERS = 8

Row = dict[str, Any]


def row_of(found: Found, settings: Settings | None) -> Row:
    """Where it stands; of one that cannot be read, why."""
    try:
        with read_standing(found, settings) as standing:
            return summary_of(standing)
    except Exception as error:  # noqa: BLE001  a folder of somebody else may hold anything; the others are shown
        return unreadable_row(found, error)


def unreadable_row(found: Found, error: Exception) -> Row:
    known = isinstance(error, (LedgerError, TaskError, OSError, ValueError))
    return _unreadable(found, str(error) if known else told(error))


@dataclass(frozen=True)
class _Watch:
    """Of one folder, by its number on the disk: another one under the same name has to be watched again."""

    place: tuple[int, int] | None
    ends: Callable[[], None] | None

    @property
    def is_deaf(self) -> bool:
        return self.ends is None

    def end(self) -> None:
        if self.ends:
            self.ends()


def _places(found: Mapping[str, Found]) -> dict[str, tuple[int, int]]:
    places = {}
    for name, it in found.items():
        with contextlib.suppress(OSError):  # it was removed meanwhile
            about = it.folder.stat()
            places[name] = (about.st_dev, about.st_ino)
    return places


class Overview:
    def __init__(self, folders: Sequence[Path], settings: Settings | None, notices: Notices) -> None:
        self._folders = folders
        self._settings = settings
        self._notices = notices
        self._found: dict[str, Found] = {}
        self._looked = float("-inf")
        self._looking = asyncio.Lock()
        self._known: dict[str, Row] = {}
        self._viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None
        self._asked: dict[str, asyncio.Future[Row]] = {}
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="overview")

    async def rows(self) -> list[Row]:
        """The one that something happened in last comes first."""
        await self._look()
        rows = await asyncio.gather(*(self._row_in_time(found) for found in self._found.values()))
        return sorted(rows, key=lambda row: -(row.get("at") or 0.0))

    async def found(self, name: str) -> Found | None:
        if name not in self._found:
            await self._look()
        return self._found.get(name)

    def join(self, viewer: Viewer) -> None:
        self._viewers.add(viewer)
        self._task = self._task or asyncio.create_task(self._follow())

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)
        if not self._viewers:
            self.close()

    def close(self) -> None:
        if self._task:
            self._task.cancel()
            self._task = None
        for viewer in self._viewers:
            viewer.give(None)

    def end(self) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> None:
        """One that asks during a search waits for what it finds: a page asks for several things at once."""
        async with self._looking:
            if time.monotonic() - self._looked > LOOK_AGAIN_S:
                self._found = await asyncio.to_thread(find_campaigns, self._folders)
                self._looked = time.monotonic()

    async def _row_in_time(self, found: Found) -> Row:
        """One whose disk or database does not answer keeps nobody waiting, and is not asked again meanwhile."""
        if found.id not in self._asked:
            self._asked[found.id] = asyncio.ensure_future(
                asyncio.get_running_loop().run_in_executor(self._readers, row_of, found, self._settings)
            )
        asked = self._asked[found.id]
        await asyncio.wait([asked], timeout=ANSWER_S)
        if not asked.done():
            return _unreadable(found, f"it does not answer within {ANSWER_S:g} s")
        self._asked.pop(found.id, None)
        return asked.result()

    async def _follow(self) -> None:
        """Tell rows that changed: of those whose folders were written to, and of new ones."""
        woken: dict[str, None] = {}
        again: dict[str, None] = {}
        stirred = asyncio.Event()
        watched: dict[str, _Watch] = {}

        def note(name: str, file: str) -> None:
            if file in NAMES:
                woken[name] = None
                stirred.set()

        try:
            while True:
                await self._look()
                places = await asyncio.to_thread(_places, dict(self._found))
                for name in [it for it, watch in watched.items() if places.get(it) != watch.place]:
                    watched.pop(name).end()
                fresh = {name: None for name in self._found if name not in watched}
                for name in fresh:
                    end = self._notices.watch(self._found[name].folder, partial(note, name))
                    watched[name] = _Watch(places.get(name), end)
                # The kernel tells of no folder elsewhere, nor of a database.
                asked = {name: None for name, it in watched.items() if it.is_deaf or self._is_elsewhere(name)}
                changed = [self._found[name] for name in woken | again | fresh | asked if name in self._found]
                again = dict(woken)
                woken.clear()
                stirred.clear()
                await self._tell(changed)
                await asyncio.sleep(GAP_S)
                if again:
                    continue  # a notice comes before others can see the write that it tells of
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN_S):
                        await stirred.wait()
        finally:
            for watch in watched.values():
                watch.end()

    def _is_elsewhere(self, name: str) -> bool:
        return name in self._found and not is_file(self._found[name])

    async def _tell(self, changed: Sequence[Found]) -> None:
        rows = await asyncio.gather(*(self._row_in_time(found) for found in changed))
        fresh = [row for row in rows if self._known.get(row["id"]) != row]
        self._known |= {row["id"]: row for row in fresh}
        if fresh:
            for viewer in self._viewers:
                viewer.give(written("rows", fresh))


def _unreadable(found: Found, why: str) -> Row:
    known = {"id": found.id, "folder": short(found.shown, 200), "name": short(found.named.name or ".", 200)}
    return {**known, "status": "not readable", "why": short(why, 400)}
