"""The host's view of chambers on one's own machine, for rows that look from outside: an engine's, or a runtime's."""

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.answers import fields, items, text
from sandbox.attacks.attack import Arena
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.rootless import is_rootless
from sandbox.backends.runc.runtime import working_directory
from sandbox.config import DockerConfig, RuncConfig
from sandbox.environment import child_environment
from sandbox.errors import Refused
from sandbox.inputs import InputStore
from sandbox.posture import CHAMBER_UIDS, FULL, Posture

LocalConfig = DockerConfig | RuncConfig


class LocalTarget:
    """`never` has the flags that cannot be switched off there, each with the reason."""

    def __init__(self, config: LocalConfig) -> None:
        self._config = config
        self.runtime = config.runtime
        self.never = _never(config)

    async def open(self, posture: Posture = FULL) -> Arena:
        return await open_arena(self._config, posture)


def _never(config: LocalConfig) -> Mapping[str, str]:
    if not isinstance(config, RuncConfig):
        return {}
    never = {"log_driver": "no engine is there that could keep a log"}
    if is_rootless():
        of_the_host = "the kernel starts nothing for an ordinary user in the host's own namespace"
        never |= dict.fromkeys(("network", "ipc"), of_the_host)
    return never


async def open_arena(config: LocalConfig, posture: Posture = FULL) -> Arena:
    if isinstance(config, RuncConfig):
        runc = await RuncBackend.connect(config, posture)
        return Arena(runc, config.runtime, posture, RuncHost(runc, config))
    backend = await DockerBackend.connect(config, posture)
    return Arena(backend, config.runtime, posture, DockerHost(backend, config))


@dataclass(frozen=True, slots=True)
class DockerHost:
    backend: DockerBackend
    config: DockerConfig

    @property
    def socket(self) -> str:
        return self.config.host

    @property
    def has_client(self) -> bool:
        return True

    @property
    def uids(self) -> range:
        return CHAMBER_UIDS

    @property
    def inputs(self) -> InputStore:
        return InputStore(self.config.inputs_folder)

    async def reopened(self, posture: Posture, **changes: Any) -> Arena:
        return await open_arena(self.config.model_copy(update=changes), posture)

    async def knows(self, chamber: str) -> bool:
        known = await self.backend.engine.containers(f"{OWNER_LABEL}={self.backend.owner}")
        return any(f"/{chamber}" in items(item, "Names") for item in known)

    async def answers(self) -> None:
        await self.backend.engine.version()

    async def cpu_seconds(self, chamber: str) -> float:
        return await self.backend.engine.cpu_seconds(chamber)

    async def kept_log(self, chamber: str) -> bytes:
        try:
            return await self.backend.engine.logs(chamber)
        except Refused:
            return b""

    async def record(self, chamber: str) -> str:
        return json.dumps(await self.backend.engine.inspect(chamber), default=str)

    async def working_directory(self, chamber: str) -> str:
        return text(await self.backend.engine.inspect(chamber), "Config", "WorkingDir")

    async def image_settings(self, name: str) -> Mapping[str, Any]:
        return fields(await self.backend.engine.image(name), "Config")

    async def files_of(self, image: str, realm: str) -> set[str]:
        record = await self.backend.engine.image(await self.backend.image_id(image, realm))
        return set(items(record, "RootFS", "Layers"))

    @asynccontextmanager
    async def derived(self, image: str, change: str) -> AsyncIterator[str]:
        name = f"blastdoor-attack-{uuid.uuid4().hex[:12]}:derived"
        labels = {OWNER_LABEL: self.backend.owner}
        await self.backend.engine.derive_image(image, name, [change], labels)
        try:
            yield name
        finally:
            await self.backend.engine.remove_image(name)


@dataclass(frozen=True, slots=True)
class RuncHost:
    backend: RuncBackend
    config: RuncConfig

    @property
    def socket(self) -> str:
        """That of the engine which is asked for images: none should be reached from a chamber either."""
        return self.config.image_host

    @property
    def has_client(self) -> bool:
        return False

    @property
    def uids(self) -> range:
        return self.backend.rights.uids

    @property
    def inputs(self) -> InputStore:
        return InputStore(self.config.inputs_folder)

    async def reopened(self, posture: Posture, **changes: Any) -> Arena:
        return await open_arena(self.config.model_copy(update=changes), posture)

    async def knows(self, chamber: str) -> bool:
        """A folder of it, a group, or a process in one."""
        id_ = chamber.rpartition("-")[2]
        estate = self.backend.estate
        return (estate.folder / id_).exists() or estate.cgroups.exists(estate.group(id_))

    async def answers(self) -> None:
        """A process is started: what a machine that is choked does late, or not at all."""
        await asyncio.to_thread(subprocess.run, ["true"], env=child_environment(), check=True)

    async def cpu_seconds(self, chamber: str) -> float:
        estate = self.backend.estate
        return estate.cgroups.cpu_seconds(estate.group(self._folder(chamber).name))

    async def kept_log(self, chamber: str) -> bytes:
        """Whatever the runtime wrote down while the chamber was alive."""
        return (self._folder(chamber) / "log").read_bytes()

    async def record(self, chamber: str) -> str:
        """Every file that we and the runtime wrote, and what the kernel shows of the chamber's first process."""
        folder = self._folder(chamber)
        process = Path("/proc") / (folder / "pid").read_text()
        files = [*sorted(it for it in folder.rglob("*") if it.is_file()), process / "cmdline", process / "environ"]
        return "\n".join(it.read_bytes().decode("utf-8", "replace") for it in files)

    async def working_directory(self, chamber: str) -> str:
        return working_directory(int((self._folder(chamber) / "pid").read_text()))

    def _folder(self, chamber: str) -> Path:
        return self.backend.estate.folder / chamber.rpartition("-")[2]

    async def image_settings(self, name: str) -> Mapping[str, Any]:
        return self.backend.images.settings(await self.backend.images.id_of(name))

    async def files_of(self, image: str, realm: str) -> set[str]:
        return await asyncio.to_thread(_numbers, (await self.backend.images.image(image, realm)).folder)

    @asynccontextmanager
    async def derived(self, image: str, change: str) -> AsyncIterator[str]:
        name = f"blastdoor-attack-{uuid.uuid4().hex[:12]}:derived"
        images = self.backend.images
        id_ = await images.id_of(image)
        made = images.alias(id_, name, _changed(images.settings(id_), change))
        try:
            yield name
        finally:
            images.forget(name, made)


def _numbers(folder: Path) -> set[str]:
    """Two files with one number are one, whatever their paths say."""
    found = [it.lstat() for it in folder.rglob("*") if it.is_symlink() or it.is_file()]
    return {f"{it.st_dev}:{it.st_ino}" for it in found}


def _changed(settings: Mapping[str, Any], change: str) -> dict[str, Any]:
    """One instruction of a Dockerfile, done to an image's settings."""
    word, _, rest = change.partition(" ")
    if word == "ENV":
        return {**settings, "Env": [*(settings.get("Env") or ()), rest]}
    if word == "VOLUME":
        return {**settings, "Volumes": {rest: {}}}
    if word == "WORKDIR":
        return {**settings, "WorkingDir": rest}
    raise ValueError(f"no row changes an image by {word}")
