"""All campaigns that were found, each with where it stands; and the viewers that are told when one changes."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.ledger import LedgerError
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.text import short
from orchestrator.views.page.finding import Found, find_campaigns, is_file
from orchestrator.views.page.streams import NAMES, Viewer, written
from orchestrator.views.page.summary import read_standing, summary_of
from orchestrator.views.page.waking import Notices

# Between two searches for new campaigns, while somebody looks.
_LOOK_AGAIN_S = 3.0
_GAP_S = 0.5

Row = dict[str, Any]


class Overview:
    def __init__(self, folders: Sequence[Path], settings: Settings | None, notices: Notices) -> None:
        self._folders = folders
        self._settings = settings
        self._notices = notices
        self._found: dict[str, Found] = {}
        self._looked = float("-inf")
        self._known: dict[str, Row] = {}
        self._viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    async def rows(self) -> list[Row]:
        """The one that something happened in last comes first."""
        await self._look()
        rows = [await asyncio.to_thread(self._row, found) for found in self._found.values()]
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

    async def _look(self) -> None:
        if time.monotonic() - self._looked > _LOOK_AGAIN_S:
            self._looked = time.monotonic()
            self._found = await asyncio.to_thread(find_campaigns, self._folders)

    def _row(self, found: Found) -> Row:
        """Of one that cannot be read, why."""
        try:
            with read_standing(found, self._settings) as standing:
                return summary_of(standing)
        except (LedgerError, TaskError, OSError, ValueError) as error:
            told = {"id": found.id, "folder": short(found.shown, 200), "name": short(found.named.name or ".", 200)}
            return {**told, "status": "not readable", "why": short(str(error), 400)}

    async def _follow(self) -> None:
        """Tell rows that changed: of those whose folders were written to, and of new ones."""
        woken: dict[str, None] = {}
        stirred = asyncio.Event()
        watched: dict[str, Callable[[], None] | None] = {}

        def note(name: str, file: str) -> None:
            if file in NAMES:
                woken[name] = None
                stirred.set()

        try:
            while True:
                await self._look()
                for name, found in self._found.items():
                    if name not in watched:
                        watched[name] = self._notices.watch(found.folder, partial(note, name))
                        woken[name] = None
                # The kernel tells of no folder elsewhere, nor of a database.
                asked = {name: None for name, end in watched.items() if end is None or self._is_elsewhere(name)}
                changed = [self._found[name] for name in woken | asked if name in self._found]
                woken.clear()
                stirred.clear()
                await self._tell(changed)
                await asyncio.sleep(_GAP_S)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_AGAIN_S):
                        await stirred.wait()
        finally:
            for end in filter(None, watched.values()):
                end()

    def _is_elsewhere(self, name: str) -> bool:
        return name in self._found and not is_file(self._found[name])

    async def _tell(self, changed: Sequence[Found]) -> None:
        rows = [await asyncio.to_thread(self._row, found) for found in changed]
        fresh = [row for row in rows if self._known.get(row["id"]) != row]
        self._known |= {row["id"]: row for row in fresh}
        if fresh:
            for viewer in self._viewers:
                viewer.give(written("rows", fresh))
