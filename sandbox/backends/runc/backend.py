"""Chambers made by an OCI runtime that we drive ourselves: no daemon is asked, and none has to be installed."""

import asyncio
import functools
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic_core import to_json

from sandbox.backend import Capabilities
from sandbox.backends.docker.disks import disks_under
from sandbox.backends.guard import Guard
from sandbox.backends.lending import Gpus, Taken, refuse_taken
from sandbox.backends.local import capabilities_of, longest_life, made_or_ended
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import Estate
from sandbox.backends.runc.hold import RuncHold
from sandbox.backends.runc.images import Images, Rootfs
from sandbox.backends.runc.keeper import Keeper
from sandbox.backends.runc.link import RuncLink
from sandbox.backends.runc.nvidia import Driver
from sandbox.backends.runc.rootless import CAVEAT, Rights, rights_here
from sandbox.backends.runc.runtime import INSIDE, Filters, Runtime, find_runtime, limits_of, working_directory
from sandbox.backends.runc.spec import (
    CPU_PERIOD_US,
    Disk,
    Place,
    cpu_quota,
    oci_spec,
    rlimit_differences,
    shared_layers,
)
from sandbox.backends.runc.trees import copied_tree
from sandbox.clock import Clock
from sandbox.errors import NoSuchGpu, Refused, SandboxError, Unavailable
from sandbox.gpus import SeenGpu, gpu_differences
from sandbox.inputs import InputStore
from sandbox.job import Gpu, Input, Job, Limits, Mode
from sandbox.live import LiveChamber
from sandbox.logger import logger
from sandbox.posture import FULL, Posture, inside_differences, pids_limit, uids
from sandbox.pulse import Pulse
from sandbox.warm import WarmPool

if TYPE_CHECKING:
    from sandbox.config import RuncConfig

HEAD_START_S = 0.02
THREADS = 32

T = TypeVar("T")
SpecFor = Callable[[str, int, tuple[str, ...]], dict[str, Any]]


class RuncBackend:
    """Use `await RuncBackend.connect(config)`; `close` it in the end.

    `reaped` has what was ended of others when it connected, `unreaped` what the last reap could not end.
    """

    def __init__(
        self, config: "RuncConfig", runtime: Runtime, estate: Estate, posture: Posture, rights: Rights
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._estate = estate
        self._posture = posture
        self.images = Images(config.images_folder, config.image_host)
        self._inputs = InputStore(config.inputs_folder)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="runc")
        # Ends never wait behind starts, each of which may take as long as the runtime is given.
        self._enders = ThreadPoolExecutor(THREADS, thread_name_prefix="runc-end")
        self._pulse = Pulse(self.answers, config.deadlines.silence)
        self._warm: WarmPool[LiveChamber] = WarmPool(config.warm, head_start_s=HEAD_START_S)
        self._guard = Guard(estate.owner, "sandbox.backends.runc.warden", str(config.folder))
        self.keeper = Keeper(estate)
        self._open: set[LiveChamber] = set()
        self._making: set[asyncio.Task[LiveChamber]] = set()
        self._closed = False
        self._uids = uids(rights.uids)
        self._boot = resources.files("sandbox").joinpath("boot.sh").read_text("utf-8")
        self._disks = _disks(config, estate.cgroups)
        self._gpus = Gpus(config.deadlines.provision)
        self._driver: Driver | None = None
        self._filters = Filters()
        self._clock = Clock()
        self.rights = rights
        self.capabilities = _capabilities(runtime, posture, rights, reads=bool(self._disks))
        self.reaped: tuple[str, ...] = ()
        self.unreaped: tuple[str, ...] = ()

    @classmethod
    async def connect(cls, config: "RuncConfig", posture: Posture = FULL) -> Self:
        """Raises Refused where this machine lacks something that a chamber needs: what to install or set."""
        rights = rights_here()
        if not posture.log_driver:
            raise Refused("nothing keeps a log here, so that log_driver cannot be switched off")
        if os.getpid() == 1:
            raise Refused(
                "chambers without a daemon are left to the machine's init, and this process is PID 1 itself, which "
                "collects none of them; start it below an init (in a container: docker run --init)"
            )
        runtime = await asyncio.to_thread(find_runtime, config.runtime)
        estate = await asyncio.to_thread(lambda: Estate(config.folder, Cgroups.of_this_machine()))
        backend = cls(config, runtime, estate, posture, rights)
        try:
            await backend._guard.post()
            await backend._in_thread(backend.keeper.start)
            # The next owner cleans up after owners that died together with their wardens.
            backend.reaped = tuple(await backend.reap())
        except BaseException:
            await backend.close()
            raise
        return backend

    @property
    def owner(self) -> str:
        return self._estate.owner

    @property
    def runtime(self) -> Runtime:
        return self._runtime

    @property
    def estate(self) -> Estate:
        return self._estate

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
        if job.limits.gpu and self._runtime.is_gvisor:
            raise NoSuchGpu("gVisor without a daemon has no GPU so far; use --backend runc, or docker, for this task")
        await self.guarded()
        image = await self.images.image(job.image, job.realm)
        spec_for = self._specs(job, image, [(await self._located(item, job.realm), item) for item in job.inputs])
        if job.limits.gpu:
            chamber = await self._with_gpus(spec_for, job.limits, job.limits.gpu)
        else:
            life_s = longest_life(job.limits, self._config.deadlines)
            shape = json.dumps([life_s, spec_for("", 0, ())], sort_keys=True) if self._config.warm else ""
            chamber = await self._warm.take(shape, lambda: self._make(spec_for, job.limits))
        chamber.serve(job)
        return chamber

    async def guarded(self) -> None:
        """Nothing is started before. Raises Unavailable when no warden can be had."""
        await self._guard.ready()
        if not self.keeper.lives:
            await self._in_thread(self.keeper.start)

    async def answers(self) -> None:
        """Nothing stands between us and the kernel."""

    async def reap(self) -> list[str]:
        ended, left = await self._in_thread(self._estate.reap)
        swept, unswept = await self._in_thread(self.images.sweep)
        self.unreaped = (*left, *unswept)
        return [*ended, *swept]

    async def close(self) -> None:
        """End everything; what does not end now is left to the warden."""
        self._closed = True
        await self._warm.close()
        await asyncio.gather(*self._making, return_exceptions=True)
        ended = await asyncio.gather(*(chamber.kill() for chamber in self._open), return_exceptions=True)
        all_ended = False
        try:
            await self._in_thread(self._estate.release, pool=self._enders)
            self.keeper.collect()
            all_ended = True
        finally:
            await self._guard.dismiss(all_ended=all_ended)
            self._threads.shutdown(wait=False)
            self._enders.shutdown(wait=False)
            self.images.close()
            await self._clock.close()
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    def _specs(self, job: Job, image: Rootfs, inputs: Sequence[tuple[Path, Input]]) -> SpecFor:
        cgroups = self._estate.cgroups

        def spec_for(chamber: str, uid: int, gpus: tuple[str, ...]) -> dict[str, Any]:
            group = self._estate.group(chamber)
            parts = self._driver.parts(gpus) if self._driver and gpus else None
            return oci_spec(
                self._posture,
                job.limits,
                self._runtime.name,
                self._boot,
                image.environment,
                Place(
                    image.folder,
                    cgroups.path(group),
                    cgroups.folders(group) if self._runtime.mounts_groups_open else {},
                    inputs,
                    self._disks,
                    parts,
                    self.rights.limits,
                    self._runtime.locks_memory(unified=cgroups.is_unified),
                ),
                uid,
                loopback=job.loopback,
            )

        return spec_for

    async def _with_gpus(self, spec_for: SpecFor, limits: Limits, wanted: Gpu) -> LiveChamber:
        """Never made ahead: a chamber that waits would keep its GPU from those that work."""

        async def look() -> list[SeenGpu]:
            self._driver = await self._in_thread(Driver)
            return self._driver.gpus

        return await self._gpus.open(wanted, look, lambda ids: self._make(spec_for, limits, ids))

    async def _make(self, spec_for: SpecFor, limits: Limits, gpus: tuple[str, ...] = ()) -> LiveChamber:
        if self._closed:
            self._gpus.give_back(gpus)
            raise Refused("this backend was closed while the job waited for its image or a GPU; connect again")
        return await made_or_ended(self._making, self._make_unshielded(spec_for, limits, gpus))

    async def _make_unshielded(self, spec_for: SpecFor, limits: Limits, gpus: tuple[str, ...]) -> LiveChamber:
        uid, chamber_id = next(self._uids), uuid.uuid4().hex[:12]
        name = f"blastdoor-{self.owner}-{chamber_id}"
        try:
            link = RuncLink(self._clock)
        except BaseException:  # whatever it was, no chamber has the GPUs
            self._gpus.give_back(gpus)
            raise
        try:
            usd_per_second = self._config.rates.per_second(limits)
            spec = spec_for(chamber_id, uid, gpus)
            link.began(await self._in_thread(self._started, name, chamber_id, spec, limits, link, gpus))
        except BaseException:
            link.close()
            await self._discard(name, chamber_id)
            self._gpus.give_back(gpus)
            raise
        group = self._estate.group(chamber_id)
        end = functools.partial(self._end, chamber_id)
        hold = RuncHold(name, group, link, self._estate.cgroups, usd_per_second, end)
        chamber = LiveChamber(hold, self._config.deadlines, functools.partial(self._ended, gpus), self._pulse)
        self._open.add(chamber)
        try:
            await chamber.greet()
            self._compare_inside(chamber.facts, limits, uid, gpus)
        except BaseException:
            await chamber.kill()
            raise
        return chamber

    def _ended(self, gpus: tuple[str, ...], chamber: LiveChamber) -> None:
        self._open.discard(chamber)
        self._gpus.give_back(gpus)

    def _claim(self, chamber: str, gpus: tuple[str, ...]) -> None:
        """Raises Taken when another owner was first, Unavailable when something is left of the last who had them."""
        if self._driver and gpus:
            self._estate.claim(chamber, gpus)
            try:
                refuse_taken(chamber, gpus, self._estate.claims())
            except Taken:
                self._estate.end_again()
                refuse_taken(chamber, gpus, self._estate.claims())
            self._driver.check_idle(gpus)

    def _started(
        self, name: str, chamber: str, spec: dict[str, Any], limits: Limits, link: RuncLink, gpus: tuple[str, ...]
    ) -> int:
        """In a thread: make a chamber, compare it with what was asked for, and take hold of its first process."""
        estate, cgroups, group = self._estate, self._estate.cgroups, self._estate.group(chamber)
        try:
            folder = estate.chamber(chamber, longest_life(limits, self._config.deadlines))
            self._claim(chamber, gpus)
            if not self._posture.read_only_root:
                # Only in the mutation check: what it writes there must not become the root of another chamber.
                spec["root"]["path"] = str(copied_tree(Path(spec["root"]["path"]), folder / "root"))
            layers = shared_layers(spec, folder) if self._posture.own_files else {}
            self._filters.give(spec)
            (folder / "config.json").write_bytes(to_json(spec))
            if self._runtime.mounts_groups_open:
                cgroups.prepare(group)
            lobby = cgroups.lobby(group)
            within = self._config.deadlines.provision
            pid = self._runtime.start(name, folder, lobby, link.theirs, within, layers)
            link.theirs.take_back()
            self._filters.learn(spec, name, folder)
        except OSError as error:
            raise Unavailable(f"start: no chamber could be prepared in {estate.folder} ({error.strerror})") from error
        except ValueError as error:
            raise Refused("the image's environment is no text that a runtime could be told; build it again") from error
        finally:
            link.theirs.close()
        try:
            grip = os.pidfd_open(pid)
        except OSError as error:
            raise Unavailable(f"start: {name} ended as soon as it was made") from error
        try:
            self._compare_outside(name, group, pid, limits, spec)
        except BaseException as error:
            os.close(grip)
            if isinstance(error, OSError):
                raise Unavailable(f"start: {name} ended as soon as it was made") from error
            raise
        return grip

    def _compare_outside(self, name: str, group: str, pid: int, limits: Limits, spec: Mapping[str, Any]) -> None:
        """Raises OSError for a chamber that is gone."""
        cgroups = self._estate.cgroups
        if not cgroups.has(group, pid):
            raise Unavailable(f"start: {name} ended as soon as it was made")
        found = self._limit_differences(cgroups.limits(group), limits)
        if not self._runtime.is_gvisor:  # which keeps them to itself
            found += rlimit_differences(spec, limits_of(pid))
        if found:
            raise Refused(f"the runtime would not hold what was asked for: {'; '.join(found)}")
        if (place := working_directory(pid)) not in INSIDE:
            raise Refused(f"{self._runtime.program} started a chamber in {place}; install a newer one")

    def _limit_differences(self, held: Mapping[str, str], limits: Limits) -> list[str]:
        page = os.sysconf("SC_PAGE_SIZE")
        wanted = {
            "memory": (self._posture.memory, limits.memory // page * page),
            "pids": (self._posture.pids, pids_limit(limits, self._runtime.name)),
            "cpus": (self._posture.cpus, f"{cpu_quota(limits)} {CPU_PERIOD_US}"),
            "swap": (self._posture.memory and "swap" in held, 0),
            "reads": (self._disks, ", ".join(sorted(f"{it.major}:{it.minor} {it.rate}" for it in self._disks))),
        }
        return [
            f"{name}: asked {value}, the kernel holds it to {held.get(name) or 'nothing'}"
            for name, (asked, value) in wanted.items()
            if asked and held.get(name) != str(value)
        ]

    def _compare_inside(self, facts: Mapping[str, str], limits: Limits, uid: int, gpus: tuple[str, ...]) -> None:
        found = inside_differences(self._posture, self._runtime.name, facts, uid)
        found += gpu_differences(limits.gpu, facts, gpus)
        if found:
            raise Refused(f"the chamber's posture is not what was asked for: {'; '.join(found)}")

    async def _discard(self, name: str, chamber: str) -> None:
        try:
            await self._end(chamber)
        except SandboxError as error:
            logger(chamber=name).warning("chamber.not_ended", reason=str(error))

    async def _end(self, chamber: str) -> None:
        await self._in_thread(self._estate.end, chamber, pool=self._enders)

    async def _in_thread(self, work: Callable[..., T], *words: Any, pool: ThreadPoolExecutor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool or self._threads, work, *words)

    async def _located(self, item: Input, realm: str) -> Path:
        if not realm:
            return self._inputs.locate(item)
        return await asyncio.to_thread(self._inputs.locate, item, realm)


def _capabilities(runtime: Runtime, posture: Posture, rights: Rights, *, reads: bool) -> Capabilities:
    found = capabilities_of(runtime.name, runtime.name, posture, gpu=not runtime.is_gvisor)
    if not rights.rootless:
        return found
    caveats = [f"rootless: {CAVEAT}"]
    if not reads:
        caveats.append("rootless: no disk reads are limited, so a chamber can slow its neighbours by reading")
    return replace(found, boundary=f"rootless {found.boundary}", caveats=tuple(caveats))


def _disks(config: "RuncConfig", cgroups: Cgroups) -> list[Disk]:
    if not config.disk_read or not cgroups.limits_reads:
        return []
    disks = sorted(set(disks_under([config.images_folder, config.inputs_folder])))
    numbers = [Path(disk).stat().st_rdev for disk in disks]
    return [Disk(os.major(number), os.minor(number), config.disk_read) for number in numbers]
