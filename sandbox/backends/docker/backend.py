"""Chambers on a Docker engine, with runc or gVisor's runsc."""

import asyncio
import contextlib
import functools
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sandbox.answers import fields, items, needed, text
from sandbox.backends.docker.disks import disks_read
from sandbox.backends.docker.engine import THREADS, Engine
from sandbox.backends.docker.gpus import EVERY_GPU, claims, gpu_label
from sandbox.backends.docker.hold import DockerHold
from sandbox.backends.docker.lease import OWNER_LABEL, Lease, reap
from sandbox.backends.docker.line import Line
from sandbox.backends.docker.link import DockerLink
from sandbox.backends.docker.realms import Realms
from sandbox.backends.guard import Guard
from sandbox.backends.lending import Gpus, refuse_taken
from sandbox.backends.local import capabilities_of, longest_life, made_or_ended
from sandbox.clock import Clock
from sandbox.environment import DOCKER
from sandbox.errors import Refused, Unavailable
from sandbox.gpus import SeenGpu, gpu_differences, seen_gpus
from sandbox.inputs import InputStore
from sandbox.job import Gpu, Input, Job, Limits, Mode
from sandbox.live import LiveChamber
from sandbox.logger import logger
from sandbox.posture import (
    FULL,
    Posture,
    container_config,
    differences,
    image_objections,
    inside_differences,
    uids,
)
from sandbox.pulse import Pulse
from sandbox.warm import WarmPool

if TYPE_CHECKING:
    from sandbox.config import DockerConfig


LEASE_LABEL = "blastdoor.lease"  # for people who look at a container: how long its owner's lease is
HEAD_START_S = 0.1
IMAGE_S = 5.0
AT_ONCE = 4

ConfigFor = Callable[..., dict[str, object]]


class DockerBackend:
    """Use `await DockerBackend.connect(config)`; `close` it in the end.

    `reaped` has what was ended of others when it connected, `unreaped` what the last reap could not end.
    """

    def __init__(
        self, config: "DockerConfig", engine: Engine, lease: Lease, posture: Posture, disks: Sequence[str] = ()
    ) -> None:
        self._config = config
        self._engine = engine
        self._posture = self._posture_inside = posture
        self.lease = lease
        self._line = Line(config.host)
        self._pulse = Pulse(self._line.ask, config.deadlines.silence, reset=self._line.close)
        self._warm: WarmPool[LiveChamber] = WarmPool(config.warm, head_start_s=HEAD_START_S)
        self._inputs = InputStore(config.inputs_folder)
        self._open: set[LiveChamber] = set()
        self._images: dict[tuple[str, str], tuple[str, float]] = {}
        self._making: set[asyncio.Task[LiveChamber]] = set()
        self.not_removed: set[str] = set()
        self._removing: set[str] = set()
        self._in_doubt = False
        self._closed = False
        self.reaped: tuple[str, ...] = ()
        self.unreaped: tuple[str, ...] = ()
        self._clock = Clock()
        self._guard = Guard(lease.owner, "sandbox.backends.docker.warden", config.host, needs=DOCKER)
        self.boot = resources.files("sandbox").joinpath("boot.sh").read_text("utf-8")
        self._uids = uids()
        self.capabilities = capabilities_of(f"docker/{config.runtime}", config.runtime, posture)
        self._gpus = Gpus(config.deadlines.provision)
        self._realms = Realms(engine, lease.owner)
        self.reads = dict.fromkeys(disks, config.disk_read) if config.disk_read else {}

    @classmethod
    async def connect(cls, config: "DockerConfig", posture: Posture = FULL) -> Self:
        """Raises Unavailable without an engine, Refused when it lacks the runtime that was asked for."""
        engine = await asyncio.to_thread(Engine, config.host)
        try:
            info = await engine.info()
            runtimes = fields(info, "Runtimes")
            if config.runtime not in runtimes:
                known = ", ".join(sorted(runtimes)) or "none"
                raise Refused(f"the engine has no runtime {config.runtime!r} (it has {known}); register it first")
            # A client of its own: renewing must not queue behind calls that hang.
            beat = await asyncio.to_thread(Engine, config.host, threads=2, timeout=max(2.0, config.lease / 4))
        except BaseException:
            engine.close()
            raise
        disks, _ = disks_read(info, config.inputs_folder)
        backend = cls(config, engine, Lease(beat, config.lease), posture, disks)
        try:
            await backend._guard.post()
            await backend.lease.acquire(backend.remove_left)
            # The next owner cleans up after owners that died together with their wardens.
            backend.reaped = tuple(await backend.reap())
        except BaseException:
            await backend.close()
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
        return self._guard.pid

    async def open(self, job: Job) -> LiveChamber:
        if self._closed:
            raise Refused("this backend is closed; connect again")
        self.capabilities.admit(job)
        if job.mode is Mode.RELAY:
            self._clock.start()
        await self.lease.hold()
        await self._guard.ready()
        config_for = functools.partial(
            container_config,
            self._posture,
            job.limits,
            self._config.runtime,
            self.boot,
            await self.image_id(job.image, job.realm),
            [(str(await self._located(item, job.realm)), item) for item in job.inputs],
            loopback=job.loopback,
            reads=self.reads,
            life_s=longest_life(job.limits, self._config.deadlines),
        )
        if job.limits.gpu:
            chamber = await self._with_gpus(config_for, job.limits, job.limits.gpu)
        else:
            shape = json.dumps(config_for(), sort_keys=True)
            chamber = await self._warm.take(shape, lambda: self._make(config_for, job.limits))
        chamber.serve(job)
        return chamber

    async def answers(self) -> None:
        """Raises Unavailable when the engine does not."""
        line = Line(self._config.host)
        try:
            await line.ask()
        finally:
            line.close()

    async def reap(self) -> list[str]:
        await self.lease.hold()  # else it would end what is its own
        ended, left = await reap(self._engine)
        self.unreaped = tuple(left)
        return ended

    async def close(self) -> None:
        """End everything; what the engine does not let us end now is left to the warden."""
        self._closed = True
        await self._warm.close()
        await asyncio.gather(*self._making, return_exceptions=True)
        ended = await asyncio.gather(*(chamber.kill() for chamber in self._open), return_exceptions=True)
        await self._realms.close()  # last: a copy of a large image takes minutes
        all_ended = False
        try:
            await self.remove_left(THREADS)
            await self.lease.release()
            all_ended = not (self.not_removed or self._in_doubt or self.lease.in_doubt)
        finally:
            await self._guard.dismiss(all_ended=all_ended)
            self._line.close()
            await self._clock.close()
            self.lease.engine.close()
            self._engine.close()
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def _with_gpus(self, config_for: ConfigFor, limits: Limits, wanted: Gpu) -> LiveChamber:
        """Never made ahead: a chamber that waits would keep its GPU from those that work."""

        async def look() -> list[SeenGpu]:
            async with await self._make(config_for, limits, EVERY_GPU) as chamber:
                return seen_gpus(chamber.facts)

        async def make(ids: tuple[str, ...]) -> LiveChamber:
            if self._closed:
                self._gpus.give_back(ids)
                raise Refused("this backend was closed while the job waited for a GPU; connect again")
            return await self._make(config_for, limits, ids)

        return await self._gpus.open(wanted, look, make)

    async def _make(self, config_for: ConfigFor, limits: Limits, gpus: tuple[str, ...] = ()) -> LiveChamber:
        """Create, compare, attach, start, greet."""
        if self._closed:
            raise Refused("this backend was closed while the job waited for its image; connect again")
        return await made_or_ended(self._making, self._make_unshielded(config_for, limits, gpus))

    async def _make_unshielded(self, config_for: ConfigFor, limits: Limits, gpus: tuple[str, ...]) -> LiveChamber:
        uid = next(self._uids)
        config = config_for(uid=uid, gpus=gpus)
        name = f"blastdoor-{self.owner}-{uuid.uuid4().hex[:12]}"
        labels = {OWNER_LABEL: self.owner, LEASE_LABEL: f"{self._config.lease:g}", **gpu_label(gpus)}
        try:
            usd_per_second = self._config.rates.per_second(limits)
            container = await self._engine.create(name, {**config, "Labels": labels})
            await self.compare(config, container)
            if gpu_label(gpus):
                refuse_taken(container, gpus, await claims(self._engine))
            link = DockerLink(await self._engine.attach(container), self._clock)
        except BaseException:
            self._in_doubt = True  # an engine that is slow may make it after all, once we are gone
            await self._discard(name)
            self._gpus.give_back(gpus)
            raise
        lapses = self.lease.lapses
        hold = DockerHold(
            self._engine,
            container,
            name,
            link,
            usd_per_second,
            self.remove,
            functools.partial(self._unprotected_since, lapses),
        )
        chamber = LiveChamber(hold, self._config.deadlines, functools.partial(self._ended, gpus), self._pulse)
        self._open.add(chamber)
        try:
            await self._engine.start(container)
            await chamber.greet()
            self._compare_inside(chamber.facts, limits, uid, gpus)
        except BaseException:
            await chamber.kill()
            raise
        return chamber

    def _unprotected_since(self, lapses: int) -> bool:
        """Also where nobody has noticed yet that the lease is over."""
        return self.lease.lapses > lapses or not self.lease.holds

    def _ended(self, gpus: tuple[str, ...], chamber: LiveChamber) -> None:
        self._open.discard(chamber)
        self._gpus.give_back(gpus)

    async def _discard(self, name: str) -> None:
        try:
            await self.remove(name)
        except Unavailable as error:
            logger(chamber=name).warning("chamber.not_ended", reason=str(error))

    async def remove(self, name: str) -> None:
        """What the engine does not end is `not_removed`, and tried again."""
        self.not_removed.add(name)
        self._removing.add(name)
        try:
            await self._engine.remove(name)
        finally:
            self._removing.discard(name)
        self.not_removed.discard(name)

    async def remove_left(self, at_once: int = AT_ONCE) -> None:
        """Try once more to end what could not be ended: it may still run, and the owner's lease protects it.

        A few at once, and none that is being removed: each that the engine cannot end holds a thread for minutes, which
        living chambers need, too.
        """
        turns = asyncio.Semaphore(at_once)

        async def remove(name: str) -> None:
            async with turns:
                if name in self.not_removed - self._removing:
                    with contextlib.suppress(Unavailable):
                        await self.remove(name)

        # One that the engine cannot end must not keep us from the others.
        await asyncio.gather(*map(remove, list(self.not_removed)))

    async def compare(self, config: dict[str, object], container: str) -> None:
        reported = await self._engine.inspect(container)
        wanted = {key: value for key, value in config.items() if key not in ("HostConfig", "Image")}
        found = differences(wanted, fields(reported, "Config"))
        found += differences({"HostConfig": config["HostConfig"]}, reported)
        if text(reported, "Image") != config["Image"]:
            found.append("Image: not the one that was asked for")
        found = found or [f"mount {text(mount, 'Destination')}" for mount in _foreign_mounts(config, reported)]
        if found:
            raise Refused(f"the engine would not start what was asked for: {'; '.join(found[:3])}")

    def _compare_inside(self, facts: Mapping[str, str], limits: Limits, uid: int, gpus: tuple[str, ...]) -> None:
        found = inside_differences(self._posture_inside, self._config.runtime, facts, uid)
        if gpus != EVERY_GPU:
            found += gpu_differences(limits.gpu, facts, gpus)
        if found:
            raise Refused(f"the chamber's posture is not what was asked for: {'; '.join(found)}")

    async def image_id(self, name: str, realm: str = "") -> str:
        """The id of the image, or of its copy for a realm, once its settings were found harmless.

        Asked again every few seconds.
        """
        known, until = self._images.get((name, realm), ("", 0.0))
        if time.monotonic() < until:
            return known
        record = await self._engine.image(name)
        if objections := image_objections(fields(record, "Config")):
            raise Refused(f"the image {name} is refused: {objections[0]}")
        found = await self._realms.image(needed(record, "Id"), realm)
        self._images[name, realm] = (found, time.monotonic() + IMAGE_S)
        return found

    async def _located(self, item: Input, realm: str) -> Path:
        if not realm:
            return self._inputs.locate(item)
        return await asyncio.to_thread(self._inputs.locate, item, realm)


def _foreign_mounts(config: Mapping[str, Any], reported: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    ours = {mount["Target"] for mount in config["HostConfig"]["Mounts"]}
    return [mount for mount in items(reported, "Mounts") if text(mount, "Destination") not in ours]
