"""A folder that becomes an image: a copy of the base, in which the runtime runs one command after the other.

Each is a container of its own, with that folder as its root. It belongs to an owner as a chamber does, so that one who
is killed leaves none. No file is ever written below that folder from outside: what is put there lies in a folder beside
it, which is mounted.
"""

import asyncio
import contextlib
import json
import os
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.backends.runc.layers import Root
from sandbox.backends.runc.runtime import Streams
from sandbox.backends.runc.spec import bake_spec
from sandbox.backends.runc.trees import copied_tree
from sandbox.bake_steps import CAPABILITIES, STAGE
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.trees import remove_unmounted

if TYPE_CHECKING:
    from sandbox.backends.runc.backend import RuncBackend

_START_S = 60.0
# Twice as long as a whole bake may take.
_LIFE_S = 3600.0
_OUTPUT_BYTES = 65_536
_KILLED = 137
# The runtime has ended by then, and it alone would have been told how the command did.
_TELLING = '"$@"; printf "\\n%s %d\\n" "$0" "$?"'


@dataclass(frozen=True)
class RuncWorkbench:
    """`folder` is for the copy of `base` that becomes the image, for one that is thrown away, and for what is put."""

    backend: "RuncBackend"
    base: Path
    folder: Path
    environment: Sequence[str]
    has_network: bool = False

    @property
    def root(self) -> Path:
        return self.folder / ("fetching" if self.has_network else "root")

    @property
    def _stage(self) -> Path:
        return self.folder / "stage"

    async def prepare(self) -> None:
        place = self.base / STAGE.lstrip("/")
        if place.is_symlink() or place.exists():
            raise Refused(f"the base image has something at {STAGE}, where its packages are put; take another one")
        await to_the_end(copied_tree, self.base, self.root)
        self._stage.mkdir(mode=0o755, exist_ok=True)

    async def finish(self, *, raising: bool = False) -> None:
        """Where the stage was mounted there is an empty folder. Raises Refused for what must not become an image."""
        (self.root / STAGE.lstrip("/")).rmdir()
        await to_the_end(lambda: Root(self.root).settle(raising=raising))

    async def execute(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
        await self.backend.guarded()
        chamber = uuid.uuid4().hex[:12]
        work = asyncio.create_task(asyncio.to_thread(self._executed, chamber, command, environment))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.to_thread(self.backend.estate.end, chamber)
            with contextlib.suppress(SandboxError):
                await work
            raise

    async def put(self, archive: Path) -> None:
        """As a layer of an image is unpacked: what a command left there leads nowhere else."""

        def put() -> None:
            with archive.open("rb") as content:
                Root(self._stage).apply(content)

        await to_the_end(put)

    @contextlib.asynccontextmanager
    async def fetching(self) -> AsyncIterator["RuncWorkbench"]:
        other = replace(self, has_network=True)
        await other.prepare()
        try:
            yield other
        finally:
            await to_the_end(remove_unmounted, other.root)

    def _executed(self, chamber: str, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
        estate = self.backend.estate
        token = secrets.token_hex(16)
        output, theirs = os.pipe()
        streams = Streams(os.open(os.devnull, os.O_RDONLY), theirs, os.dup(theirs))
        try:
            try:
                folder = estate.chamber(chamber, _LIFE_S)
                (folder / "config.json").write_text(json.dumps(self._spec(chamber, token, command, environment)))
                lobby = estate.cgroups.lobby(estate.group(chamber))
                self.backend.runtime.start(f"blastdoor-{estate.owner}-{chamber}", folder, lobby, streams, _START_S)
            except OSError as error:
                raise Unavailable(f"start: nothing can be made in {estate.folder} ({error.strerror})") from error
            finally:
                streams.close()
            return _told(_tail(output), token)
        finally:
            os.close(output)
            estate.end(chamber)

    def _spec(self, chamber: str, token: str, command: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        estate = self.backend.estate
        return bake_spec(
            self.root,
            estate.cgroups.path(estate.group(chamber)),
            ["sh", "-c", _TELLING, token, *command],
            [*self.environment, *(f"{name}={value}" for name, value in environment.items())],
            [f"CAP_{name}" for name in CAPABILITIES],
            (self._stage, STAGE),
            network=self.has_network,
        )


async def to_the_end(work: Callable[..., object], *words: object) -> None:
    """In a thread. One who is cancelled waits for it: nothing writes on in a folder that goes with its maker."""
    task = asyncio.create_task(asyncio.to_thread(work, *words))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(SandboxError):  # nobody asks any more
            await task
        raise


def _tail(output: int) -> bytes:
    """Until everybody who could write is gone."""
    found = b""
    while piece := os.read(output, _OUTPUT_BYTES):
        found = (found + piece)[-_OUTPUT_BYTES:]
    return found


def _told(output: bytes, token: str) -> tuple[int, bytes]:
    said, mark, code = output.rpartition(f"\n{token} ".encode())
    return (int(code), said) if mark else (_KILLED, output)
