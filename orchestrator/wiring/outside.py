"""A backend that others wrote, in a shell that says whose fault things are."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from orchestrator.proposers import PluginFailed
from orchestrator.proposers.outside import blamed
from orchestrator.registry import told
from orchestrator.wiring.site import About, Progress, Provider, Reaped, Site
from sandbox import (
    Backend,
    Bill,
    Bundle,
    Chamber,
    Channel,
    Job,
    Listener,
    Outcome,
    Refused,
    Report,
    SandboxError,
    Talk,
    Unavailable,
)

if TYPE_CHECKING:
    from sandbox.attacks.attack import Target
    from sandbox.conformance.subject import Subject

# What a site is asked for; each is somebody else's code.
_CALLED = ("bake", "add_input", "usd_per_second", "ceiling", "paid_by", "stand_down", "ask_first", "keep_apart")


class OutsideProvider(Provider):
    """What goes wrong while it is opened is an engine that is away; later, it ends the session."""

    def __init__(self, provider: Any, who: str) -> None:
        self._provider = provider
        self._who = who
        if missing := [name for name in ("planned", "open") if not hasattr(provider, name)]:
            raise TypeError(f"it has no {missing[0]}, which a backend needs")

    def planned(self) -> Site:
        with self._away():
            return self._in_shell(self._provider.planned())

    def open(self, progress: Progress) -> AbstractAsyncContextManager[Site]:
        return self._opened(self._provider.open, progress)

    def alone(self, progress: Progress) -> AbstractAsyncContextManager[Site]:
        return self._opened(self._own("alone") or self._provider.open, progress)

    async def about(self) -> About:
        if own := self._own("about"):
            with self._away():
                found: About = await own()
                return found
        return await super().about()

    def subject(self) -> "Subject":
        if own := self._own("subject"):
            with self._away():
                found: Subject = own()
                return found
        return super().subject()

    def target(self) -> "Target":
        if own := self._own("target"):
            with self._away():
                found: Target = own()
                return found
        return super().target()

    async def reap(self) -> Reaped:
        if own := self._own("reap"):
            with self._away():
                return Reaped(*await own())
        return await super().reap()

    def _own(self, name: str) -> Any:
        """What it says itself, and not what follows from its site: that is to follow from its site in the shell."""
        found = getattr(self._provider, name, None)
        return None if getattr(found, "__func__", None) is getattr(Provider, name) else found

    @asynccontextmanager
    async def _opened(
        self, opening: Callable[[Progress], AbstractAsyncContextManager[Site]], progress: Progress
    ) -> AsyncIterator[Site]:
        ours = _Ours()
        with ours.own_up(), self._away():
            manager = opening(ours.told(progress))
            site = await manager.__aenter__()
        try:
            yield self._in_shell(site)
        except BaseException as error:
            # What ended the session is told, whatever is wrong with the end of the site.
            if not await self._left(manager, error):
                raise
        else:
            with self._away():
                await manager.__aexit__(None, None, None)

    async def _left(self, manager: AbstractAsyncContextManager[Site], error: BaseException) -> bool:
        try:
            return bool(await manager.__aexit__(type(error), error, error.__traceback__))
        except Exception as second:  # noqa: BLE001  told beside the first one
            if second is not error:
                error.add_note(f"{self._who} failed as it was closed: {told(second)}")
            return False

    def _in_shell(self, site: Site) -> Site:
        with blamed(self._who):
            guarded: dict[str, Any] = {name: _guarded(getattr(site, name), self._who) for name in _CALLED}
            judging = self._in_shell(site.judging) if site.judging else None
            if judging and site.judging and site.judging.add_input == site.add_input:
                guarded["add_input"] = judging.add_input  # one store, so nothing is added twice
            return replace(site, backend=OutsideBackend(site.backend, self._who), judging=judging, **guarded)

    @contextmanager
    def _away(self) -> Iterator[None]:
        try:
            yield
        except SandboxError:
            raise
        except Exception as error:
            raise Unavailable(f"{self._who} failed: {told(error)}") from error


def _guarded(function: Callable[..., Any], who: str) -> Callable[..., Any]:
    """The same, with its faults told."""

    def called(*words: Any) -> Any:
        with blamed(who):
            result = function(*words)
        return awaited(result) if isawaitable(result) else result

    async def awaited(coming: Awaitable[Any]) -> Any:
        with blamed(who):
            return await coming

    return called


class OutsideBackend:
    """What else it has stays what it is: it may be more to those who wrote it."""

    def __init__(self, backend: Backend, who: str) -> None:
        self._backend = backend
        self._who = who
        self.capabilities = backend.capabilities

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def open(self, job: Job) -> Chamber:
        with blamed(self._who):
            return OutsideChamber(await self._backend.open(job), self._who)

    async def answers(self) -> None:
        with blamed(self._who):
            ask: Callable[[], Awaitable[object]] = getattr(self._backend, "answers", self._backend.reap)
            await ask()

    async def reap(self) -> list[str]:
        if not hasattr(self._backend, "reap"):
            raise Refused(f"{self._who} does not offer `reap`; look at its provider yourself for what is left")
        with blamed(self._who):
            return list(await self._backend.reap())

    async def close(self) -> None:
        with blamed(self._who):
            await self._backend.close()


class OutsideChamber:
    def __init__(self, chamber: Chamber, who: str) -> None:
        self._chamber = chamber
        self._who = who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chamber, name)

    @property
    def facts(self) -> Mapping[str, str]:
        with blamed(self._who):
            return self._chamber.facts

    @property
    def bill(self) -> Bill:
        with blamed(self._who):
            return self._chamber.bill

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        ours = _Ours()
        with ours.own_up(), blamed(self._who):
            heard = _Heard(listener, ours) if listener else None
            return await self._chamber.run(bundle, listener=heard, talk=ours.talking(talk) if talk else None)

    async def stop(self) -> None:
        with blamed(self._who):
            await self._chamber.stop()

    async def kill(self) -> None:
        with blamed(self._who):
            await self._chamber.kill()

    async def __aenter__(self) -> Self:
        with blamed(self._who):
            await self._chamber.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with blamed(self._who):
            await self._chamber.__aexit__(kind, error, trace)


class _Ours:
    """What goes wrong in code of ours that others call, a full disk under a log for instance, is not their fault."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._error = error
            raise

    @contextmanager
    def own_up(self) -> Iterator[None]:
        try:
            yield
        except (PluginFailed, Unavailable) as failed:
            if self._error is not None and failed.__cause__ is self._error:
                raise self._error from None
            raise

    def told(self, progress: Progress) -> Progress:
        def tell(line: str) -> None:
            with self.noted():
                progress(line)

        return tell

    def talking(self, talk: Talk) -> Talk:
        async def talked(channel: Channel) -> None:
            with self.noted():
                await talk(channel)

        return talked


class _Heard:
    def __init__(self, listener: Listener, ours: _Ours) -> None:
        self._listener = listener
        self._ours = ours

    def line(self, text: str) -> None:
        with self._ours.noted():
            self._listener.line(text)

    def report(self, report: Report) -> None:
        with self._ours.noted():
            self._listener.report(report)
