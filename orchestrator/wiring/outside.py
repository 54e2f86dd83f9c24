"""A backend that others wrote, in a shell that says whose fault things are."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from orchestrator.proposers.outside import blamed
from orchestrator.registry import told
from orchestrator.wiring.site import Provider, Site
from sandbox import SandboxError, Unavailable


class OutsideProvider:
    """What goes wrong while it is opened is an engine that is away; later, it ends the session."""

    def __init__(self, provider: Provider, who: str) -> None:
        self._provider = provider
        self._who = who
        if missing := [name for name in ("planned", "open") if not hasattr(provider, name)]:
            raise TypeError(f"it has no {missing[0]}, which a backend needs")

    def planned(self) -> Site:
        with self._blamed():
            return self._provider.planned()

    @asynccontextmanager
    async def open(self, progress: Callable[[str], None]) -> AsyncIterator[Site]:
        async with AsyncExitStack() as stack:
            with self._blamed():
                site = await stack.enter_async_context(self._provider.open(progress))
            self._guard(site.backend, "open")
            yield site

    def _guard(self, thing: Any, method: str) -> None:
        """In its place, the same method with its faults told: whatever else it is must stay what it is."""
        original = getattr(thing, method)

        async def guarded(*words: Any, **more: Any) -> Any:
            with blamed(self._who):
                result = await original(*words, **more)
                if method == "open":
                    self._guard(result, "run")
                return result

        setattr(thing, method, guarded)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except SandboxError:
            raise
        except Exception as error:
            raise Unavailable(f"{self._who} failed: {told(error)}") from error
