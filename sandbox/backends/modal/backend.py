"""Chambers as sandboxes at Modal: a fresh one for each trial, billed by the second from the moment it is asked for."""

import asyncio
import time
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Self

from sandbox.backends.guard import Guard
from sandbox.backends.modal import guest, order
from sandbox.backends.modal.bounds import within
from sandbox.backends.modal.ender import IN_FLIGHT_S, Ender
from sandbox.backends.modal.hold import ModalHold
from sandbox.backends.modal.link import ModalLink
from sandbox.backends.modal.marks import CLOCKS_S, NAME, name_of, named_at, reap, tags_of
from sandbox.backends.modal.standing import Standing
from sandbox.environment import MODAL
from sandbox.errors import Lost, Refused, SandboxError
from sandbox.job import Job
from sandbox.live import LiveChamber
from sandbox.posture import uids
from sandbox.price import billed_clock
from sandbox.pulse import Pulse
from sandbox.purse import NotPaid, Purse
from sandbox.tenancy import Tenancy
from sandbox.warm import WarmPool

if TYPE_CHECKING:
    import modal

    from sandbox.backends.modal.engine import ModalEngine, Sandbox
    from sandbox.backends.modal.images import Images
    from sandbox.config import ModalConfig

QUESTION_S = 20.0
LOOK_AGAIN_S = 1.0
# For so long Modal is taken to list a sandbox that is over.
LISTED_S = 3600.0

Made = tuple[LiveChamber, ModalHold]


class ModalBackend:
    """Use `await ModalBackend.connect(config)`; `close` it in the end.

    `purse` pays for sandboxes that wait ahead of need; without one, none are made. `reaped` has what was ended of
    others when it connected, `unreaped` what the last reap could not end.
    """

    def __init__(self, config: "ModalConfig", engine: "ModalEngine", images: "Images", tenancy: Tenancy) -> None:
        self._config = config
        self.engine = engine
        self._images = images
        self.tenancy = tenancy
        self._pulse = Pulse(engine.hello, config.deadlines.silence)
        self._ender = Ender(engine, self._settle)
        self._warm: WarmPool[Standing] = WarmPool(config.warm, config.warm_idle)
        self._open: set[LiveChamber] = set()
        self._making: set[asyncio.Task[Made]] = set()
        self._unmaking: set[asyncio.Task[BaseException]] = set()
        self._unpaid: dict[str, tuple[float, float]] = {}  # standing by name: asked for when, dollars a second
        self._closed = False
        self._guard = Guard(
            tenancy.owner, "sandbox.backends.modal.warden", config.app, config.environment or "", needs=MODAL
        )
        self._boot = resources.files("sandbox").joinpath("boot.sh").read_text("utf-8")
        self._uids = uids()
        self.purse: Purse | None = None
        self.reaped: tuple[str, ...] = ()
        self.unreaped: tuple[str, ...] = ()
        self.capabilities = guest.capabilities()

    @classmethod
    async def connect(cls, config: "ModalConfig") -> Self:
        """Raises Unavailable when Modal does not answer or does not know us, Refused when the package is missing."""
        order.check_installed()
        from sandbox.backends.modal.engine import ModalEngine
        from sandbox.backends.modal.images import Images

        tenancy = Tenancy(config.owners_folder)
        try:
            engine = await ModalEngine.connect(config.app, config.environment)
        except BaseException:
            tenancy.release()
            raise
        backend = cls(config, engine, Images(config, engine), tenancy)
        try:
            await backend._guard.post()
            # The next owner cleans up after owners that died together with their wardens.
            backend.reaped = tuple(await backend.reap())
        except BaseException:
            await backend.close()
            raise
        return backend

    @property
    def owner(self) -> str:
        return self.tenancy.owner

    @property
    def place(self) -> str:
        """Whose sandboxes we can end: those of owners on this machine, in this app."""
        return f"{self.tenancy.place}/{self._config.app}/{self._config.environment or ''}"

    @property
    def registry(self) -> str:
        return f"modal/{self.engine.app_id}"

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
        order.gpu(self._config, job.limits.gpu)
        seconds = order.lifetime(self._config, job)
        await self._guard.ready()

        async def cold() -> Standing:
            return Standing(*await self._make(job, seconds, self._new_name()))

        if self.purse and self._config.warm:
            standing = await self._warm.take(order.shape(job, seconds), cold, lambda: self._make_ahead(job, seconds))
        else:
            standing = await cold()
        chamber = standing.take()
        chamber.serve(job)
        return chamber

    async def answers(self) -> None:
        """Raises Unavailable when Modal does not; what is asked starts nothing and costs nothing."""
        await self.engine.hello()

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        """By Modal's own list, which has those that are over, too. One that it does not have never came to be: that is
        believed once a create cannot take effect any more, and only while Modal cannot have forgotten it.
        """
        found, now = dict[str, float](), time.time()
        for name, life in zip(given_up, await self.engine.lives([{NAME: name} for name in given_up]), strict=True):
            if life.seconds is not None:
                found[name] = life.seconds
            elif not life.listed and now - given_up[name] > IN_FLIGHT_S and 0 <= now - named_at(name) < LISTED_S:
                found[name] = 0.0
        return found

    async def reap(self) -> list[str]:
        ended, left = await reap(self.engine, self.tenancy)
        self.unreaped = tuple(left)
        return ended

    async def stand_down(self) -> None:
        """End what waits ahead of need; the purse is told of each."""
        await self._warm.empty()

    async def close(self) -> None:
        """End everything; what Modal does not let us end now is left to the warden, and at last to its lifetime."""
        self._closed = True
        await self._warm.close()
        await asyncio.gather(*self._making, *self._unmaking, return_exceptions=True)
        await asyncio.gather(*(chamber.kill() for chamber in list(self._open)))
        try:
            await self._ender.close()
        finally:
            self.tenancy.release()
            await self._guard.dismiss(all_ended=self._ender.is_clean)
            await self._images.close()
            await self.engine.close()

    def _new_name(self) -> str:
        return name_of(self.owner)

    async def _make(self, job: Job, seconds: int, name: str) -> Made:
        """Create, start, greet, compare. Shielded: a cancelled caller must not leave a sandbox.

        Until then nothing is there: a caller that gives up on a slow image or upload is let go at once.
        """
        image = await self._images.of(job)
        await self.engine.check()
        making = asyncio.create_task(self._make_unshielded(job, image, seconds, name))
        self._making.add(making)
        making.add_done_callback(self._making.discard)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError as cancelled:
            unmaking = asyncio.create_task(_unmake(making, cancelled))
            self._unmaking.add(unmaking)
            unmaking.add_done_callback(self._unmaking.discard)
            raise await asyncio.shield(unmaking) from None

    async def _make_unshielded(self, job: Job, image: "modal.Image", seconds: int, name: str) -> Made:
        limits = job.limits
        rate = self._config.rates.per_second(limits)
        # Only now: a slow image must not bring its end closer for those who reap elsewhere.
        mark = self.tenancy.mark(self._config.deadlines.provision + seconds + CLOCKS_S)
        wanted = order.Order(
            name=name,
            tags=tags_of(mark, name),
            image=image,
            cpus=limits.cpus,
            memory=order.memory(limits),
            gpu=order.gpu(self._config, limits.gpu),
            lifetime_s=seconds,
            command=guest.ENTRYPOINT,
        )
        return await self._booted(job, wanted, *await self._created(wanted, rate), rate)

    async def _created(self, wanted: order.Order, rate: float) -> "tuple[Sandbox, float]":
        """The sandbox, and when it was asked for."""
        asked = billed_clock()
        if wanted.name in self._unpaid:
            self._unpaid[wanted.name] = (asked, rate)
        self._ender.expect(wanted.name)
        try:
            sandbox = await self.engine.create(wanted, self._config.deadlines.provision)
        except SandboxError as error:
            self._ender.given_up(wanted.name)
            await self._write_off(wanted.name, rate, asked, error)
            if wanted.gpu:
                # With a GPU the package creates, waits for the machine, and ends by itself what did not come up:
                # one that is not found may have been charged all the same.
                error.usd = rate * (billed_clock() - asked)
            raise
        self._ender.made(wanted.name, sandbox)
        return sandbox, asked

    async def _booted(self, job: Job, wanted: order.Order, sandbox: "Sandbox", asked: float, rate: float) -> Made:
        uid = next(self._uids)
        command = guest.command(uid, job.limits, self._boot)
        # All of the opening shares one deadline: the lifetime, and what was set aside, have room for one.
        due = asked + self._config.deadlines.provision
        try:
            streams = await sandbox.start(command, wanted.lifetime_s, due - billed_clock())
        except SandboxError as error:
            await self._write_off(wanted.name, rate, asked, error)
            raise
        link = ModalLink(streams, lambda: _is_over(sandbox), self._config.deadlines.silence)
        hold = ModalHold(wanted.name, sandbox, link, rate, asked, lambda: _ran_out_of_memory(sandbox), self._end)
        chamber = LiveChamber(hold, self._config.deadlines, self._open.discard, self._pulse)
        self._open.add(chamber)
        try:
            await within("start the chamber", chamber.greet(), due - billed_clock())
            guest.compare(chamber.facts, order.as_sold(self._config, job), uid)
        except BaseException as error:  # noqa: BLE001  it is raised again, with what it cost
            raise await chamber.give_up(guest.told(error)) from None
        return chamber, hold

    async def _end(self, name: str) -> None:
        await self._ender.end(name)

    async def _write_off(self, name: str, rate: float, asked: float, error: SandboxError) -> None:
        """End what may have come of it. The error says what it cost, and whether its end is sure.

        A refusal is no proof: it may answer a retry of a create whose own answer was lost. One that is not found did
        not come to be, unless nobody ever answered: then it may still come. Both are looked for on, for a while.
        """
        unanswered = billed_clock() - asked >= self._config.deadlines.provision
        ended = False
        try:
            ended = await self._ender.end(name)
            if not ended:
                await asyncio.sleep(LOOK_AGAIN_S)
                ended = await self._ender.end(name)
        except SandboxError:
            unanswered = True
        error.unended = unanswered and not ended
        error.chamber = name if error.unended else ""
        if ended or error.unended:
            error.usd = rate * (billed_clock() - asked)

    async def _make_ahead(self, job: Job, seconds: int) -> Standing:
        """Its worst case is set aside, under its name, before it exists."""
        name = self._new_name()
        rate = self._config.rates.per_second(job.limits)
        # If owner and warden die together, nothing but its lifetime ends it.
        if not (self.purse and await self.purse.reserve(name, rate * seconds, rate)):
            raise NotPaid("nothing is set aside for a sandbox that would only wait")
        self._unpaid[name] = (billed_clock(), 0.0)
        try:
            made = await self._make(job, seconds, name)
        except BaseException as error:
            nothing_made = isinstance(error, SandboxError) and not (error.usd or error.unended)
            if nothing_made or not self._ender.knows(name):
                self._settle(name, free=nothing_made)
            raise
        return Standing(*made, self._config.warm_idle, self._settle)

    def _settle(self, name: str, *, free: bool = False) -> None:
        """A standing sandbox is gone or taken: the purse pays what it cost until now. Others are the trial's."""
        if (unpaid := self._unpaid.pop(name, None)) and self.purse:
            asked, rate = unpaid
            self.purse.settle(name, 0.0 if free else rate * (billed_clock() - asked))


async def _unmake(making: "asyncio.Task[Made]", cancelled: BaseException) -> BaseException:
    """What to raise when nobody wants it any more: the cancellation, unless its end is in doubt."""
    try:
        chamber, _ = await making
    except SandboxError as error:  # cleaned up where it happened
        return error if error.unended else cancelled
    return await chamber.give_up(cancelled)


async def _is_over(sandbox: "Sandbox") -> bool:
    try:
        return await sandbox.ended() is not None
    except Lost:
        return True


async def _ran_out_of_memory(sandbox: "Sandbox") -> bool:
    counts = (await sandbox.ask(guest.OUT_OF_MEMORY, QUESTION_S)).split()
    return any(count.isdigit() and int(count) > 0 for count in counts)
