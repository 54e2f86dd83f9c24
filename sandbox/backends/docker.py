"""Chambers on a Docker engine, with runc or gVisor's runsc."""

import asyncio
import contextlib
import functools
import itertools
import json
import secrets
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

from sandbox.backend import Capabilities
from sandbox.backends.docker_engine import Engine
from sandbox.backends.docker_lease import OWNER_LABEL, Lease, reap
from sandbox.backends.docker_link import DockerLink
from sandbox.errors import Lost, Refused, Unavailable
from sandbox.inputs import InputStore
from sandbox.job import Enforcer, Job, Limits
from sandbox.live import LiveChamber
from sandbox.logger import logger
from sandbox.posture import (
    FIRST_UID,
    FULL,
    LAST_UID,
    Posture,
    container_config,
    differences,
    enforces_inodes,
    image_objections,
    inside_differences,
)
from sandbox.warm import WarmPool

if TYPE_CHECKING:
    from sandbox.config import DockerConfig


LEASE_LABEL = "blastdoor.lease"
WARDEN_S = 5.0

ConfigFor = Callable[..., dict[str, object]]


class DockerBackend:
    """Use `await DockerBackend.connect(config)`; `close` it in the end."""

    def __init__(self, config: "DockerConfig", engine: Engine, posture: Posture) -> None:
        self._config = config
        self._engine = engine
        self._posture = self._posture_inside = posture
        self.lease = Lease(engine, config.lease)
        self._warm: WarmPool[LiveChamber] = WarmPool(config.warm)
        self._inputs = InputStore(config.inputs_folder)
        self._open: set[LiveChamber] = set()
        self._warden: asyncio.subprocess.Process | None = None
        self.boot = resources.files("sandbox").joinpath("boot.sh").read_text("utf-8")
        self._uids = _uids()
        self.capabilities = _capabilities(config.runtime, posture)

    @classmethod
    async def connect(cls, config: "DockerConfig", posture: Posture = FULL) -> Self:
        """Raises Unavailable without an engine, Refused when it lacks the runtime that was asked for."""
        engine = await asyncio.to_thread(Engine, config.host)
        try:
            runtimes = (await engine.info())["Runtimes"]
            if config.runtime not in runtimes:
                known = ", ".join(sorted(runtimes))
                raise Refused(f"the engine has no runtime {config.runtime!r} (it has {known}); register it first")
            backend = cls(config, engine, posture)
            await backend.lease.acquire()
            await backend._post_warden()
        except BaseException:
            engine.close()
            raise
        return backend

    @property
    def owner(self) -> str:
        return self.lease.owner

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def warm_ready(self) -> int:
        return self._warm.ready

    @property
    def warden_pid(self) -> int | None:
        return self._warden.pid if self._warden else None

    async def open(self, job: Job) -> LiveChamber:
        self.capabilities.admit(job)
        self.lease.check()
        config_for = functools.partial(
            container_config,
            self._posture,
            job.limits,
            self._config.runtime,
            self.boot,
            await self._image_id(job.image),
            {str(self._inputs.locate(item)): item for item in job.inputs},
        )
        # The kind of a GPU is no part of the create request, but a chamber is compared with it.
        shape = (json.dumps(config_for(), sort_keys=True), job.limits.gpu)
        chamber = await self._warm.take(shape, lambda: self._make(config_for, job.limits))
        chamber.serve(job)
        return chamber

    async def reap(self) -> list[str]:
        return await reap(self._engine)

    async def close(self) -> None:
        await self._warm.close()
        for chamber in list(self._open):
            await chamber.kill()
        try:
            await self.lease.release()
        finally:
            await self._dismiss_warden()
            self._engine.close()

    async def _make(self, config_for: ConfigFor, limits: Limits) -> LiveChamber:
        """Create, compare, attach, start, greet. Shielded: a cancelled caller must not leave a container."""
        making = asyncio.ensure_future(self._make_unshielded(config_for, limits))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):  # its own failure was cleaned up where it happened
                await (await making).kill()
            raise

    async def _make_unshielded(self, config_for: ConfigFor, limits: Limits) -> LiveChamber:
        uid = next(self._uids)
        config = config_for(uid=uid)
        name = f"blastdoor-{self.owner}-{uuid.uuid4().hex[:12]}"
        usd_per_second = self._config.rates.per_second(limits)
        labels = {OWNER_LABEL: self.owner, LEASE_LABEL: f"{self._config.lease:g}"}
        try:
            container = await self._engine.create(name, {**config, "Labels": labels})
            await self.compare(config, container)
            link = DockerLink(await self._engine.attach(container))
        except BaseException:
            await self._discard(name)
            raise
        hold = DockerHold(self._engine, container, name, link, usd_per_second)
        chamber = LiveChamber(hold, self._config.deadlines, self._open.discard)
        self._open.add(chamber)
        try:
            await self._engine.start(container)
            await chamber.greet()
            self._compare_inside(chamber.facts, limits, uid)
        except BaseException:
            await chamber.kill()
            raise
        return chamber

    async def _discard(self, name: str) -> None:
        try:
            await self._engine.remove(name)
        except Unavailable as error:
            logger(chamber=name).warning("chamber.left_to_reap", reason=str(error))

    async def compare(self, config: dict[str, object], container: str) -> None:
        reported = await self._engine.inspect(container)
        wanted = {key: value for key, value in config.items() if key not in ("HostConfig", "Image")}
        found = differences(wanted, reported["Config"])
        found += differences({"HostConfig": config["HostConfig"]}, reported)
        if reported["Image"] != config["Image"]:
            found.append("Image: not the one that was asked for")
        found = found or [f"mount {mount['Destination']}" for mount in _foreign_mounts(config, reported)]
        if found:
            raise Refused(f"the engine would not start what was asked for: {'; '.join(found[:3])}")

    def _compare_inside(self, facts: Mapping[str, str], limits: Limits, uid: int) -> None:
        found = inside_differences(self._posture_inside, self._config.runtime, facts, uid)
        if limits.gpu and limits.gpu.kind != "any" and limits.gpu.kind.lower() not in facts.get("gpu", "").lower():
            found.append(f"gpu: wanted {limits.gpu.kind}, the chamber sees {facts.get('gpu', 'none')}")
        if found:
            raise Refused(f"the chamber's posture is not what was asked for: {'; '.join(found)}")

    async def _image_id(self, name: str) -> str:
        """The image's content digest, once its settings were found harmless."""
        record = await self._engine.image(name)
        if objections := image_objections(record["Config"] or {}):
            raise Refused(f"the image {name} is refused: {objections[0]}")
        return str(record["Id"])

    async def _post_warden(self) -> None:
        """A process beside us that ends our chambers when we are gone, even if a candidate outwits its own PID 1."""
        command = [
            sys.executable,
            "-m",
            "sandbox.backends.docker_warden",
            self.owner,
            self._config.host or "",
        ]
        self._warden = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    async def _dismiss_warden(self) -> None:
        """It sweeps once more and goes; while the engine does not answer, it stays behind and keeps trying."""
        if self._warden and self._warden.stdin:
            self._warden.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._warden.wait(), WARDEN_S)


class DockerHold:
    """One container."""

    def __init__(self, engine: Engine, container: str, name: str, link: DockerLink, usd_per_second: float) -> None:
        self._engine = engine
        self._container = container
        self.name = name
        self.link = link
        self.usd_per_second = usd_per_second

    async def ran_out_of_memory(self, timeout: float) -> bool:
        """Raises Lost also when somebody else killed it: only the engine can tell that from a crash."""
        with contextlib.suppress(Unavailable):  # a container that does not end is no evidence; inspect decides
            await self._engine.wait(self._container, timeout)
        if (await self._engine.inspect(self._container))["State"]["OOMKilled"]:
            return True
        if "kill" in await self._engine.events(self._container):
            raise Lost(f"{self.name} was killed by somebody else")
        return False

    async def destroy(self) -> None:
        await self._engine.remove(self._container)

    def release(self) -> None:
        self.link.close()


def _uids() -> Iterator[int]:
    """Uids in a row, from a random start, so that owners on one engine hardly ever meet."""
    count = LAST_UID - FIRST_UID + 1
    start = secrets.randbelow(count)
    return (FIRST_UID + (start + number) % count for number in itertools.count())


def _foreign_mounts(config: Mapping[str, Any], reported: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    ours = {mount["Target"] for mount in config["HostConfig"]["Mounts"]}
    return [mount for mount in reported["Mounts"] if mount["Destination"] not in ours]


def _capabilities(runtime: str, posture: Posture) -> Capabilities:
    engine = {"memory", "cpus", "pids", "open_files", "work_bytes", "gpu"}
    controller = {"wall", "build", "grace", "bundle_bytes", "log_bytes", "output_bytes", "output_files"}
    controller |= {"frame_bytes", "frames"}
    enforced = dict.fromkeys(sorted(engine), Enforcer.ENGINE) | dict.fromkeys(sorted(controller), Enforcer.CONTROLLER)
    inodes = posture.work_inodes and enforces_inodes(runtime)
    enforced["work_inodes"] = Enforcer.ENGINE if inodes else Enforcer.NOBODY
    kernel = "gVisor, a kernel of its own" if runtime.startswith("runsc") else "namespaces on the host's kernel"
    return Capabilities(boundary=f"docker/{runtime}: {kernel}", relay=True, live_log=True, stop=True, enforced=enforced)
