"""Chambers on machines that SkyPilot rents: the machine is the boundary, our own hardened container runs inside it.

Two ways: a fresh cluster for each chamber, and standing clusters that take one chamber after the other (`warm`). What
differs from an engine of one's own is said by the capabilities, and by the caveats of the place.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from sandbox.backend import Capabilities
from sandbox.backends.guard import Guard
from sandbox.backends.skypilot.chamber import SUBMIT_S, Berth, RentedChamber, box_seconds
from sandbox.backends.skypilot.end import PAUSE_S, reap
from sandbox.backends.skypilot.machine import Machine, Ship
from sandbox.backends.skypilot.names import mark_of
from sandbox.backends.skypilot.places import LOST_WORDS, WARM_CAVEAT, admitted, refuse_container_image
from sandbox.backends.skypilot.pool import FreshBerth, Pool
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.backends.skypilot.rent import Office, Rented, ask_for
from sandbox.backends.skypilot.ship import Shipper
from sandbox.backends.skypilot.ssh import refuse_without_programs
from sandbox.box.report import Missing
from sandbox.environment import SKYPILOT
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.inputs import InputStore
from sandbox.job import Enforcer, Job, Limits
from sandbox.posture import enforces_inodes
from sandbox.pulse import Pulse
from sandbox.purse import Purse
from sandbox.tenancy import Tenancy

if TYPE_CHECKING:
    from sandbox.config import SkyPilotConfig


ANSWERS_S = 60.0  # its server may be busy with a launch
# For so long its history is taken to have a cluster that is over, and a launch that was given up to take effect.
LISTED_S = 86_400.0
IN_FLIGHT_S = 60.0
ASK_EVERY_S = 15.0  # each time somebody logs in there
_WAITING = 0.9  # of the time in which a chamber must be open: who asked hears why before giving up


class Guarding(Protocol):
    """Who ends our machines when we are gone."""

    async def post(self) -> None: ...

    async def ready(self) -> None: ...

    async def dismiss(self, *, all_ended: bool) -> None: ...


class Shipping(Protocol):
    """Who knows images and inputs by what they hold, and brings them to machines."""

    async def identify(self, job: Job) -> Job: ...

    async def ship(self, machine: Machine, job: Job, missing: Missing) -> None: ...

    def close(self) -> None: ...


class SkyPilotBackend:
    """Use `await SkyPilotBackend.connect(config)`; `close` it in the end. `purse` pays for clusters that stand.

    `unreaped` has what the last reap could not end.
    """

    def __init__(
        self,
        config: "SkyPilotConfig",
        provisioner: Provisioner,
        tenancy: Tenancy,
        guard: Guarding,
        shipper: Shipping | None = None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._config = config
        self.provisioner = provisioner
        self._guard = guard
        self._pause_s = pause_s
        self.office = Office(config, provisioner, tenancy, pause_s)
        spare_s = config.deadlines.upload + SUBMIT_S + config.deadlines.collect
        self._pool = Pool(self.office, config.warm, config.lifetime, spare_s)
        self._shipper = shipper or Shipper(config.image_host, InputStore(config.inputs_folder))
        self._pulse = Pulse(self.answers, config.deadlines.silence, ASK_EVERY_S, ANSWERS_S)
        self._making: set[asyncio.Task[RentedChamber]] = set()
        self._closed = False
        self.tenancy = tenancy
        self.purse: Purse | None = None
        self.unreaped: tuple[str, ...] = ()
        self.capabilities = capabilities_of(config)

    @classmethod
    async def connect(cls, config: "SkyPilotConfig") -> Self:
        """Raises Refused for a place that is no boundary and without the package, ssh or rsync, else Unavailable."""
        admitted(config.infra)
        refuse_without_programs()
        provisioner = installed()
        await provisioner.check(config.infra)
        tenancy = Tenancy(config.owners_folder)
        backend = cls(
            config, provisioner, tenancy, Guard(tenancy.owner, "sandbox.backends.skypilot.warden", needs=SKYPILOT)
        )
        await backend.begin()
        return backend

    async def begin(self) -> None:
        """Guarded, and cleaned up after owners that died together with their wardens."""
        try:
            await self._guard.post()
            await self.reap()
        except BaseException:
            await self.close()
            raise

    @property
    def owner(self) -> str:
        return self.tenancy.owner

    @property
    def place(self) -> str:
        """Whose clusters we can end: those of owners on this machine."""
        return self.tenancy.place

    async def usd_per_second(self, limits: Limits) -> float:
        """The most that a second of a machine for such limits may cost: the ceiling, or what is asked now.

        The caller sets money aside by it: a machine that is dearer later on is refused.
        """
        return await self.office.tell(ask_for(limits)) / 3600

    async def open(self, job: Job) -> RentedChamber:
        if self._closed:
            raise Refused("this backend is closed; connect again")
        until = asyncio.get_running_loop().time() + self._config.terms.opening_s * _WAITING
        self.capabilities.admit(job)
        refuse_container_image(job.image)
        busy_s = box_seconds(job)
        if self.office.worst_s(busy_s) > self._config.lifetime + self._config.terms.opening_s:
            raise Refused(
                f"the job may keep a machine for {busy_s:g} s, but a machine lives {self._config.lifetime:g} s; "
                "lower limits.wall or limits.build, or raise the lifetime (setting skypilot_lifetime)"
            )
        shipped = await self._shipper.identify(job)
        if not self._stands:
            # A machine of its own is a realm already.
            shipped = shipped.model_copy(update={"realm": ""})
        await self._guard.ready()
        await self.office.end_left()
        rented: list[Rented] = []
        making = asyncio.create_task(self._make(shipped, busy_s, until, rented.append))
        self._making.add(making)
        making.add_done_callback(self._making.discard)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            raise await self._given_up(making, rented) from None

    async def _given_up(self, making: "asyncio.Task[RentedChamber]", rented: list[Rented]) -> BaseException:
        """A caller that gives up leaves no machine: it is ended before it may go, or it hears that it may not be."""
        making.cancel()
        with contextlib.suppress(SandboxError, asyncio.CancelledError):
            await (await making).kill()
        for machine in rented:
            await machine.end()
        if left := self.office.left.intersection(machine.name for machine in rented):
            return self.office.unended(min(left))
        if self._stands and not rented:
            return Unavailable("nobody waits any more; the campaign pays for what stands, so it cost nothing")
        return asyncio.CancelledError()

    async def answers(self) -> None:
        """Raises Unavailable when SkyPilot does not, or the place where it rents."""
        await self.office.answers()

    @property
    def registry(self) -> str:
        return f"skypilot/{self.place}"

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        """By SkyPilot's own history, of those of which it has neither a request under way nor a cluster. One that is
        not in it never came to be.
        """
        coming = set((await self.provisioner.requests()).values())
        there = coming.union(await self.provisioner.clusters())
        lived = await self.provisioner.lived()
        found, now = dict[str, float](), time.time()
        for name in given_up.keys() - there:
            seconds, mark = lived.get(name), mark_of(name)
            never_came = name not in lived and mark and now < mark.ends + LISTED_S
            if seconds is not None:
                found[name] = seconds
            elif never_came and now - given_up[name] > IN_FLIGHT_S:
                found[name] = 0.0
        return found

    async def reap(self) -> list[str]:
        ended, left = await reap(self.provisioner, self.tenancy, self._pause_s)
        self.unreaped = tuple(left)
        return ended

    async def stand_down(self) -> None:
        """End the clusters that stand for many trials; the purse is told of each."""
        await self._pool.close()

    async def close(self) -> None:
        """End everything; what SkyPilot does not let us end now is left to the warden, and to its own end."""
        self._closed = True
        self.office.hurry()
        for making in self._making:
            making.cancel()
        await asyncio.gather(*self._making, return_exceptions=True)
        try:
            await self._pool.close()
            await self.office.close()
        finally:
            self._shipper.close()
            self.tenancy.release()
            await self._guard.dismiss(all_ended=not self.office.left)

    @property
    def _stands(self) -> bool:
        return self._config.warm > 0 and self.purse is not None

    async def _make(self, job: Job, busy_s: float, until: float, made: Callable[[Rented], None]) -> RentedChamber:
        """`made` is told of a machine that is rented for this chamber alone."""
        berth = await self._berth(job, busy_s, until, made)
        try:
            facts = await berth.machine.greet(job, self._config.runtime, self._ship_for(job))
        except SandboxError as error:
            error.usd += await berth.leave(clean=False)
            error.chamber = berth.unseen
            raise
        except BaseException:
            await berth.leave(clean=False)
            raise
        return RentedChamber(berth, job, self._config.runtime, facts, self._pulse)

    async def _berth(self, job: Job, busy_s: float, until: float, made: Callable[[Rented], None]) -> Berth:
        ask = ask_for(job.limits)
        idle_s = busy_s + self._config.autodown
        if self._stands and self.purse and not job.fresh:
            warm = await self._pool.take(ask, busy_s, idle_s, self.purse, until)
            if warm:
                return warm
        most = await self.office.price_as_told(ask)
        name = self.office.name(busy_s)
        return FreshBerth(await self.office.rent(name, ask, most, busy_s, idle_s, made))

    def _ship_for(self, job: Job) -> Ship:
        async def ship(machine: Machine, missing: Missing) -> None:
            await self._shipper.ship(machine, job, missing)

        return ship


def installed() -> Provisioner:
    try:
        from sandbox.backends.skypilot.sdk import SkyPilot
    except ImportError as error:
        raise Refused(f"SkyPilot is not installed ({error}); install blastdoor with its extra skypilot") from error
    return SkyPilot()


async def reap_everywhere(owners_folder: Path | None) -> tuple[list[str], list[str]]:
    """Nothing is launched, so no place is checked. What was ended, and what could not be."""
    tenancy = Tenancy(owners_folder)
    try:
        return await reap(installed(), tenancy)
    finally:
        tenancy.release()


def capabilities_of(config: "SkyPilotConfig") -> Capabilities:
    """Limits are held by the machine's engine and by our own code there; outputs are counted here once more.

    Raises Refused for a place that is no boundary.
    """
    place = admitted(config.infra)
    engine = {"wall", "build", "grace", "memory", "cpus", "pids", "open_files", "work_bytes", "log_bytes", "gpu"}
    controller = {"bundle_bytes", "output_bytes", "output_files"}
    enforced = dict.fromkeys(sorted(engine), Enforcer.ENGINE) | dict.fromkeys(sorted(controller), Enforcer.CONTROLLER)
    enforced["work_inodes"] = Enforcer.ENGINE if enforces_inodes(config.runtime) else Enforcer.NOBODY
    used = "reused" if config.warm else "fresh"
    boundary = f"skypilot/{config.infra}/{config.runtime}: a {used} {place.kind}, and a container inside it"
    caveats = (*place.caveats, LOST_WORDS, *((WARM_CAVEAT,) if config.warm else ()))
    return Capabilities(boundary, relay=False, live_log=False, stop=False, enforced=enforced, caveats=caveats)
