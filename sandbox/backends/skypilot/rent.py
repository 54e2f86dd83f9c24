"""Renting one cluster and ending it: its name, its price, its ends, and what it cost."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from sandbox.backends.skypilot.end import end
from sandbox.backends.skypilot.machine import Machine
from sandbox.backends.skypilot.names import name_for
from sandbox.backends.skypilot.places import Kind, admitted
from sandbox.backends.skypilot.provisioner import Ask, Provisioner, Wanted
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.job import Limits
from sandbox.logger import logger
from sandbox.price import billed_clock
from sandbox.tenancy import Tenancy

if TYPE_CHECKING:
    from sandbox.config import SkyPilotConfig

_OWN_GIB = 1.0  # engine, our package, the bundle on its way
_HAIR = 1.0001  # prices are compared after they went through somebody else's floats
QUOTE_S = 600.0
T = TypeVar("T")


def ask_for(limits: Limits) -> Ask:
    if limits.gpu and limits.gpu.kind == "any":
        raise Refused("a rented machine needs the kind of its GPU; write it like A10:1")
    return Ask(math.ceil(limits.cpus), math.ceil(limits.memory / 1024**3 + _OWN_GIB), limits.gpu)


class Rented:
    """A cluster from the moment it is asked for. `usd` is what it cost, once its end is confirmed or given up."""

    def __init__(self, office: "Office", name: str, most: float, worst_s: float, ends: float) -> None:
        self._office = office
        self._since = billed_clock()
        self._worst_s = worst_s
        self._worst_usd = worst_s * most
        self._ending: asyncio.Task[float] | None = None
        self.name = name
        self.unseen = ""  # its name, once its end could not be confirmed
        self.rate = most
        self.ends = ends
        self.machine: Machine | None = None

    async def end(self) -> float:
        """Dollars from the request to the confirmed end. Unconfirmed: to the end that it has by itself.

        Never more than was set aside: a machine that is dearer than that is ended as soon as its price is known.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return await asyncio.shield(self._ending)

    async def _end(self) -> float:
        confirmed = await self._office.end(self.name)
        seconds = min(billed_clock() - self._since, self._worst_s) if confirmed else self._worst_s
        self.unseen = "" if confirmed else self.name
        self._office.ended(self)
        return min(seconds * self.rate, self._worst_usd)


class Office:
    """Rents for one owner. What could not be ended is remembered, and tried again."""

    def __init__(self, config: "SkyPilotConfig", provisioner: Provisioner, tenancy: Tenancy, pause_s: float) -> None:
        self._config = config
        self._provisioner = provisioner
        self._tenancy = tenancy
        self._pause_s = pause_s
        self._place = admitted(config.infra)
        self._quotes: dict[Ask, tuple[float, float | None]] = {}
        self._told: dict[Ask, float] = {}
        self._not_ended: set[str] = set()
        self._rented: set[Rented] = set()
        self._hurries = False

    def hurry(self) -> None:
        """From now on nobody waits for a place that does not answer: the warden does."""
        self._hurries = True

    async def price(self, ask: Ask) -> float:
        """Dollars an hour at most. Refused when it is over the ceiling, or not known where there must be one."""
        quoted, ceiling = await self._quoted(ask), self._config.usd_per_hour
        if quoted is None and self._place.kind is Kind.VM:
            raise Refused(
                f"SkyPilot knows no price at {self._config.infra}, so no money can be set aside for a machine"
            )
        if ceiling is None:
            return quoted or 0.0
        if quoted is None:
            raise Refused(
                f"a machine may cost ${ceiling:g} an hour, but SkyPilot knows no price at {self._config.infra}; "
                "set one there, or leave usd_per_hour_most out"
            )
        if quoted > ceiling * _HAIR:
            raise Refused(f"the machine costs ${quoted:g} an hour at {self._config.infra}, the ceiling is ${ceiling:g}")
        return ceiling

    async def tell(self, ask: Ask) -> float:
        """The price, for somebody who sets money aside by it: what is rented from then on costs no more."""
        self._told[ask] = await self.price(ask)
        return self._told[ask]

    async def price_as_told(self, ask: Ask) -> float:
        """Dollars an hour at most, by what was told. Refused when it costs more by now than was set aside."""
        now = await self.price(ask)
        told = self._told.get(ask, max(self._told.values(), default=now))
        if now > told * _HAIR:
            raise Refused(
                f"the machine costs ${now:g} an hour at {self._config.infra} now, but money was set aside for "
                f"${told:g}; resume the run to set aside by the new price"
            )
        return told

    async def _quoted(self, ask: Ask) -> float | None:
        until, quoted = self._quotes.get(ask, (0.0, None))
        if time.monotonic() >= until:
            quoted = await self._heard(self._provisioner.quote(self._config.infra, ask))
            self._quotes[ask] = (time.monotonic() + QUOTE_S, quoted)
        return quoted

    def worst_s(self, busy_s: float) -> float:
        """The most seconds that a machine is paid for which is busy for so long."""
        return self._config.terms.opening_s + busy_s + self._config.terms.closing_s

    def name(self, busy_s: float) -> str:
        return name_for(self._tenancy.mark(self.worst_s(busy_s)))

    async def rent(
        self,
        name: str,
        ask: Ask,
        most: float,
        busy_s: float,
        idle_s: float,
        made: Callable[[Rented], None] = lambda _: None,
    ) -> Rented:
        """A machine that is up and furnished. Whatever fails, it is ended, and the error carries what it cost."""
        worst_s = self.worst_s(busy_s)
        rented = Rented(self, name, most / 3600, worst_s, time.time() + worst_s)
        self._rented.add(rented)
        made(rented)
        wanted = Wanted(ask, idle_s, rented.ends, most * _HAIR if most else None)
        try:
            landed = await self._heard(
                self._provisioner.launch(name, self._config.infra, wanted, self._config.deadlines.provision)
            )
            logger(cluster=name).info("cluster.up", what=landed.what, usd_per_hour=landed.usd_per_hour)
            _, quoted = self._quotes.get(ask, (0.0, None))
            rented.rate = (landed.usd_per_hour or quoted or 0.0) / 3600  # 0 is no price where there is a quote
            if landed.usd_per_hour > most * _HAIR:
                raise Refused(
                    f"the machine that came costs ${landed.usd_per_hour:g} an hour, but ${most:g} was set aside; "
                    "it is given back. usd_per_hour_most says what a machine may cost"
                )
            rented.machine = Machine(self._provisioner, name, landed, self._place.kind, self._config.deadlines)
            await rented.machine.furnish(rented.ends)
        except SandboxError as error:
            error.usd += await rented.end()
            error.chamber = rented.unseen
            raise
        except BaseException:
            await rented.end()
            raise
        return rented

    async def end(self, name: str) -> bool:
        """Whether it is confirmed to be gone; else it is tried again later.

        A place that does not answer is waited for: what it says then is what the machine has cost.
        """
        try:
            await self._end_patiently(name)
        except Unavailable as error:
            self._not_ended.add(name)
            logger(cluster=name).warning("cluster.not_ended", reason=str(error))
            return False
        except BaseException:  # cut short: whether it is gone nobody knows
            self._not_ended.add(name)
            raise
        self._not_ended.discard(name)
        return True

    async def _end_patiently(self, name: str) -> None:
        until, away = time.monotonic() + self._config.deadlines.silence, False
        while True:
            try:
                return await end(self._provisioner, name, self._pause_s)
            except Unavailable:
                was_away, away = away, await self._is_away()
                if self._hurries or time.monotonic() >= until or not (away or was_away):
                    raise

    async def answers(self) -> None:
        """Raises Unavailable when SkyPilot's server does not, or the place where it rents."""
        await self._provisioner.clusters()
        await self._provisioner.reach(self._config.infra)

    async def _is_away(self) -> bool:
        try:
            await self.answers()
        except SandboxError:
            return True
        return False

    async def _heard(self, asking: Awaitable[T]) -> T:
        """What SkyPilot says of a place that does not answer is no refusal: it knows of no machine there meanwhile."""
        try:
            return await asking
        except Refused as error:
            if not await self._is_away():
                raise
            raise Unavailable(f"{self._config.infra} does not answer: {error}") from error

    @property
    def left(self) -> frozenset[str]:
        """What could not be ended, or not for certain."""
        return frozenset(self._not_ended)

    def unended(self, name: str) -> Unavailable:
        """What to tell a caller that gave up on a machine that could not be ended."""
        error = Unavailable("the cluster could not be ended, SkyPilot does not answer; it is tried again")
        error.unended, error.chamber = True, name
        return error

    def ended(self, rented: Rented) -> None:
        self._rented.discard(rented)

    async def close(self) -> None:
        await asyncio.gather(*(rented.end() for rented in list(self._rented)))
        await self.end_left()

    async def end_left(self) -> None:
        """Try once more to end what could not be ended: it costs until its own end. Side by side: a server that answers
        nobody is asked for minutes about each.
        """
        for ended in await asyncio.gather(*map(self.end, list(self._not_ended)), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
