"""A copy of an image for each realm, so that chambers of two realms share no file, and with it no cache of the host.

Layers go by the digest of their archive: an export of the same files, with a comment of its own before them, is
another layer on disk, and looks the same from inside.
"""

import asyncio
import hashlib
import tarfile

from sandbox.answers import items, needed, text
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.errors import Refused

REPOSITORY = "blastdoor-realm"
LABEL = "blastdoor.realm-of"


class Realms:
    """Copies are made once an engine, and stay. One that is under way goes on when the caller is gone."""

    def __init__(self, engine: Engine, owner: str) -> None:
        self._engine = engine
        self._owner = owner
        self._under_way: dict[str, asyncio.Task[str]] = {}

    async def image(self, image: str, realm: str) -> str:
        """The id of the image's copy for this realm; `image` is an id, and without a realm the answer."""
        if not realm:
            return image
        name = copy_name(image, realm)
        task = self._under_way.get(name)
        if task is None:
            task = self._under_way[name] = asyncio.create_task(self.copied(image, name, realm))
            task.add_done_callback(lambda done: self._over(name, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Wait for copies: a container that is exported can only be removed by the call that made it."""
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def _over(self, name: str, task: asyncio.Task[str]) -> None:
        del self._under_way[name]
        if not task.cancelled():
            task.exception()  # each caller that still waits has it; without one it concerns nobody

    async def copied(self, image: str, name: str, realm: str) -> str:
        """The id of the copy that has this name, made where it is missing."""
        env = list(map(str, items(await self._engine.image(image), "Config", "Env")))
        if found := await self._present(image, name, env):
            return found
        changes = [*map(_env_line, env), f"LABEL {LABEL}={image}"]
        head = comment_archive(f"{image} {realm}")
        await self._engine.copy_image(image, name, changes, head, {OWNER_LABEL: self._owner})
        if found := await self._present(image, name, env):
            return found
        raise Refused(f"the engine's copy {name} of the image {image[:19]} is not the same; remove it and try again")

    async def _present(self, image: str, name: str, env: list[str]) -> str | None:
        record = await self._engine.image_or_none(name)
        if record is None or text(record, "Config", "Labels", LABEL) != image:
            return None
        return needed(record, "Id") if list(items(record, "Config", "Env")) == env else None


def copy_name(image: str, realm: str) -> str:
    return f"{REPOSITORY}:{hashlib.sha256(f'{image} {realm}'.encode()).hexdigest()[:16]}"


def comment_archive(comment: str) -> bytes:
    """The start of an archive that no file comes of: a global header, without the end of an archive behind it."""
    return tarfile.TarInfo.create_pax_global_header({"comment": comment})


def _env_line(setting: str) -> str:
    name, _, value = setting.partition("=")
    for special in ("\\", '"', "$"):
        value = value.replace(special, f"\\{special}")
    return f'ENV {name}="{value}"'
