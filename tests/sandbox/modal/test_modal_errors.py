"""Modal's failures, as everybody else here knows them."""

import asyncio
import inspect
import math
import re
from types import SimpleNamespace
from typing import cast

import aiohttp
import modal
import modal.exception
import pytest
from grpclib import GRPCError, Status
from grpclib.exceptions import StreamTerminatedError
from modal_proto import api_pb2

from sandbox.backends.modal import engine as modal_engine
from sandbox.backends.modal.bounds import within
from sandbox.backends.modal.engine import Life, ModalEngine, Sandbox, life_of, translating_modal_errors
from sandbox.errors import Denied, Lost, Refused, SandboxError, Unavailable

OWN = [kind for _, kind in inspect.getmembers(modal.exception, inspect.isclass) if issubclass(kind, modal.Error)]


def translated(error: Exception) -> SandboxError:
    with pytest.raises(SandboxError) as caught, translating_modal_errors("create"):
        raise error
    return caught.value


def made(kind: type[modal.Error], text: str = "words\nof Modal") -> modal.Error:
    return kind(text, "im-1") if kind is modal.exception.ImageBuildError else kind(text)


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
def test_none_of_modals_own_errors_is_left_unmapped(kind: type[modal.Error]) -> None:
    """Every error of the package leaves as one of ours, in one line that says what was being done."""
    said = str(translated(made(kind)))
    assert said.startswith("create: ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (made(modal.exception.AuthError), Denied),
        (made(modal.exception.PermissionDeniedError), Denied),
        (made(modal.exception.ResourceExhaustedError), Unavailable),
        (made(modal.exception.ServiceError), Unavailable),
        (made(modal.exception.InternalError), Unavailable),
        (made(modal.exception.TimeoutError), Unavailable),
        (made(modal.exception.ClientClosed), Unavailable),
        (made(modal.exception.NotFoundError), Lost),
        (made(modal.exception.ConflictError), Lost),
        (made(modal.exception.SandboxTerminatedError), Lost),
        (made(modal.exception.InvalidError), Refused),
        (made(modal.exception.ImageBuildError), Refused),
        (made(modal.exception.VersionError), Refused),
        (GRPCError(Status.INTERNAL, "beneath the package"), Unavailable),
        (StreamTerminatedError("cut"), Unavailable),
        (ConnectionRefusedError(111, "refused"), Unavailable),
        (TimeoutError(), Unavailable),
        (ValueError("Received empty message"), Unavailable),
        (aiohttp.ServerDisconnectedError(), Unavailable),
        (aiohttp.ClientPayloadError("cut"), Unavailable),
    ],
    ids=lambda item: item.__name__ if isinstance(item, type) else type(item).__name__,
)
def test_whose_fault_it_was(error: Exception, kind: type[SandboxError]) -> None:
    """A token is for a person to mend, a quota to wait for, a bad request never to repeat; what is gone is lost."""
    assert type(translated(error)) is kind


def test_a_signed_address_is_not_told() -> None:
    """Where an upload failed, the address has a signature with which anybody could write there."""
    said = str(translated(modal.Error("Put to url https://store.invalid/a?X-Key=AKIA&X-Signature=abc failed: 403")))
    assert "https://store.invalid/a?… failed: 403" in said
    assert "AKIA" not in said


def lived(*spans: tuple[float, float]) -> Life:
    ended = [(begun, api_pb2.TaskInfo(finished_at=over)) for begun, over in spans]
    return life_of([api_pb2.SandboxInfo(created_at=begun, task_info=info) for begun, info in ended])


def test_a_life_is_counted_in_whole_seconds() -> None:
    """What is no life tells no time: it would free all that was booked, or end the campaign that asks."""
    assert lived((100.0, 103.2), (100.0, 101.0)) == Life(listed=True, seconds=5)
    for odd in ((100.0, 0.0), (100.0, 99.0), (0.0, 100.0), (100.0, math.nan), (100.0, math.inf)):
        assert lived(odd) == Life(listed=True)


async def test_our_clock_comes_first() -> None:
    """A call that never ends, and does not even let itself be cancelled, is given up in time."""
    stubborn = asyncio.Event()

    async def never() -> None:
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(Unavailable, match="create: Modal did not answer within 0 s"):
        await within("create", never(), 0.01)
    stubborn.set()


async def test_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a token nobody is asked, and a person is told how to get one."""
    monkeypatch.setenv("MODAL_TOKEN_ID", "")
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "")
    with pytest.raises(Denied, match="modal token new"):
        await ModalEngine.connect("app", None)


async def test_a_package_that_hides_how_a_sandbox_ended() -> None:
    """Without that word memory cannot be told from a kill: said aloud with the version, never taken for no reason."""

    async def poll() -> int:
        return 137

    other = SimpleNamespace(poll=SimpleNamespace(aio=poll))
    with pytest.raises(Unavailable, match=rf"^poll: modal {re.escape(modal.__version__)} does not say how"):
        await Sandbox(cast("modal.Sandbox", other)).ended()


@pytest.mark.parametrize(("polled", "ends"), [(0, True), (None, False), (modal.exception.NotFoundError("gone"), True)])
async def test_a_conflict_is_no_end(
    polled: int | Exception | None, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modal was busy when it was told to end a sandbox: only what it says of the sandbox itself counts."""

    async def terminate(wait: bool) -> None:
        raise modal.exception.ConflictError("aborted")

    async def poll() -> int | None:
        if isinstance(polled, Exception):
            raise polled
        return polled

    async def detach() -> None:
        """Nothing to let go of."""

    monkeypatch.setattr(modal_engine, "END_PAUSES_S", (0.0,))
    monkeypatch.setattr(modal_engine, "status_of", lambda _: "TERMINATED")
    calls = {"terminate": terminate, "poll": poll, "detach": detach}
    inner = SimpleNamespace(**{name: SimpleNamespace(aio=work) for name, work in calls.items()})
    sandbox = Sandbox(cast("modal.Sandbox", inner))
    if ends:
        await sandbox.end()
    else:
        with pytest.raises(Unavailable, match="something else was under way"):
            await sandbox.end()
