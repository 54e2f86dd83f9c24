"""A service made of plain coroutines: recorded, authenticated, struck by faults, and honest about what it has not.

What an RPC does, it does to its end even if the caller has gone meanwhile: a provider does not undo a create because
the client was killed while it waited for the answer.
"""

import asyncio
import inspect
import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from grpclib import GRPCError, Status
from grpclib.server import Stream

from tests.modal_emulator.faults import Cut, Faults

Message = Any  # a protobuf message of one of some sixty types
Metadata = Mapping[str, Any]
Effect = Callable[[Message], Awaitable[Message]] | Callable[[Message], AsyncIterator[Message]]


_connection_of = operator.attrgetter("_stream.connection")  # grpclib has no face for it


class Journal:
    """What was called, in order; what was called that is not there; where the emulator itself broke."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.unimplemented: list[str] = []
        self.broken: list[str] = []
        self.working: set[asyncio.Task[Message]] = set()
        self.sought: list[bytes] = []
        self.found: set[bytes] = set()

    def receive(self, request: Message) -> None:
        """Everything that a client sends passes here."""
        if self.sought:
            sent = request.SerializeToString()
            self.found.update(needle for needle in self.sought if needle in sent)

    def clear(self) -> None:
        self.sought = []
        self.found = set()
        for kept in (self.calls, self.unimplemented, self.broken):
            kept.clear()


def abort(connection: Any) -> None:
    """The wire is cut. One that is closed has no transport."""
    if transport := getattr(connection, "_transport", None):
        transport.abort()


class Service(Protocol):
    """Public methods are RPCs: `async def Name(self, request)` answers once, an async generator streams."""

    faults: Faults
    journal: Journal

    def admit(self, rpc: str, metadata: Metadata) -> None:
        """Raises GRPCError when the caller may not call this."""

    def app_of(self, request: Message) -> str:
        """The name of the app that it concerns, or nothing."""


def serve(base: type[Any], service: Service) -> Any:
    """The generated base, each of its abstract methods given to the service, or answered with UNIMPLEMENTED."""
    methods = {name: _method(service, name) for name in base.__abstractmethods__}
    return type(base.__name__.removesuffix("Base"), (base,), methods)()


def _method(service: Service, rpc: str) -> Callable[[Any, "Stream[Any, Any]"], Awaitable[None]]:
    effect: Effect | None = getattr(service, rpc, None)

    async def method(self: Any, stream: "Stream[Any, Any]") -> None:
        if effect is None:
            service.journal.unimplemented.append(rpc)
            raise GRPCError(Status.UNIMPLEMENTED, f"the emulator has no {rpc}")
        service.journal.calls.append(rpc)
        service.admit(rpc, stream.metadata or {})
        request = await stream.recv_message()
        service.journal.receive(request)
        try:
            if inspect.isasyncgenfunction(effect):
                await _stream(service, rpc, service.app_of(request), effect(request), stream)
            else:
                await stream.send_message(await _once(service, rpc, effect, request))
        except Cut:
            abort(_connection_of(stream))

    return method


async def _once(service: Service, rpc: str, effect: Any, request: Message) -> Message:
    task = asyncio.create_task(_whole(service, rpc, effect, request))
    # Without a hold on it, what nobody waits for any more is collected in the middle of its work.
    service.journal.working.add(task)
    task.add_done_callback(service.journal.working.discard)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, if nobody waits for it
    return await asyncio.shield(task)


async def _whole(service: Service, rpc: str, effect: Any, request: Message) -> Message:
    app = service.app_of(request)
    await service.faults.strike(rpc, "before", app)
    answer = await _done(service, rpc, effect(request))
    await service.faults.strike(rpc, "after", app)
    return answer


async def _done(service: Service, rpc: str, work: Awaitable[Message]) -> Message:
    try:
        return await work
    except (GRPCError, asyncio.CancelledError):
        raise
    except Exception as failure:
        service.journal.broken.append(f"{rpc}: {failure!r}")
        raise


async def _stream(
    service: Service, rpc: str, app: str, answers: AsyncIterator[Message], stream: "Stream[Any, Any]"
) -> None:
    """`after` strikes when the first message is out: the stream breaks in its middle."""
    await service.faults.strike(rpc, "before", app)
    async for answer in answers:
        await stream.send_message(answer)
        await service.faults.strike(rpc, "after", app)
    await service.faults.strike(rpc, "after", app)
