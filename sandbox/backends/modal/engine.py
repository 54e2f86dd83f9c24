"""The only file that knows the modal package: each call within a time of ours, its errors translated once.

The package tries for a minute to reach a service that is not there, and for twenty to get a GPU; nobody here waits
that long. A call that is given up is cancelled and left behind: whatever it did is found by name or by tag.
"""

import asyncio
import contextlib
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import modal
from aiohttp import ClientError
from grpclib.exceptions import GRPCError, StreamTerminatedError
from modal._utils.async_utils import synchronize_api, synchronizer
from modal.config import config as modal_settings
from modal.exception import (
    AlreadyExistsError,
    AuthError,
    ConflictError,
    ImageBuildError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    RequestSizeError,
    ResourceExhaustedError,
    SandboxTerminatedError,
    SandboxTimeoutError,
    UnimplementedError,
    VersionError,
)
from modal.sandbox._impl_v2 import SandboxImplV2
from modal_proto import api_pb2

from sandbox.backends.modal.bounds import within
from sandbox.backends.modal.order import Order
from sandbox.baking import last_word
from sandbox.errors import Denied, Lost, Refused, SandboxError, Unavailable
from sandbox.wire.demux import Stream

CONNECT_S = 20.0
CALL_S = 10.0
END_TRY_S = 7.0
END_PAUSES_S = (0.2, 1.0)
FRESH_S = 5.0
CREATE_TRIES = 3
CREATE_PAUSE_S = 0.3
LOOKS_AT_ONCE = 16
HOW_TO_GET_A_TOKEN = "make one with `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"  # noqa: S105

T = TypeVar("T")

_SIGNED = re.compile(r"\?[^\s'\")>]+")  # addresses of uploads are signed, and the holder of one may write there
# Besides the package's own tree: what it lets through of the libraries beneath it.
_PROVIDER_ERRORS = (
    *(modal.Error, GRPCError, StreamTerminatedError, ClientError),
    *(OSError, EOFError, TimeoutError, ValueError, BufferError),
)
_NO_CHANCE = (InvalidError, RequestSizeError, UnimplementedError, AlreadyExistsError)


@contextlib.contextmanager
def translating_modal_errors(doing: str) -> Iterator[None]:
    """Whatever the modal package raises leaves as Unavailable, Refused or Lost."""
    try:
        yield
    except SandboxError:
        raise
    except _PROVIDER_ERRORS as error:
        raise _translated(error, doing) from error


def _translated(error: Exception, doing: str) -> SandboxError:
    text = _SIGNED.sub("?…", " ".join(str(error).split()))[:300]
    match error:
        case AuthError():
            return Denied(f"{doing}: Modal does not accept the token (expired?); {HOW_TO_GET_A_TOKEN}")
        case PermissionDeniedError():
            return Denied(f"{doing}: Modal does not allow it to this token: {text}")
        case ResourceExhaustedError():
            return Unavailable(f"{doing}: a quota, a rate limit or the capacity of Modal is exhausted ({text})")
        case NotFoundError() | ConflictError() | SandboxTerminatedError() | SandboxTimeoutError():
            return Lost(f"{doing}: Modal no longer has it ({text or type(error).__name__})")
        case ImageBuildError():
            return Refused(f"{doing}: {last_word(str(error).encode())}")
        case VersionError():
            return Refused(f"{doing}: Modal no longer takes this version of its package; upgrade modal ({text})")
        case modal.Error() if isinstance(error, _NO_CHANCE):
            return Refused(f"{doing}: Modal refused: {text}")
        case modal.exception.ConnectionError():
            return Unavailable(f"{doing}: Modal does not answer; is there a way to it? ({text})")
        case modal.Error() | GRPCError():
            return Unavailable(f"{doing}: Modal failed ({type(error).__name__}: {text})")
    return Unavailable(f"{doing}: Modal does not answer ({type(error).__name__})")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a sandbox ended, in the provider's own word for it."""

    status: str
    code: int | None


@dataclass(frozen=True, slots=True)
class Life:
    """Whether Modal lists a sandbox at all, and the seconds that it lived; None while it runs."""

    listed: bool = False
    seconds: float | None = None


class Command:
    """One command that runs in a sandbox, with live streams."""

    def __init__(self, process: "modal.container_process.ContainerProcess[bytes]") -> None:
        self._process = process

    async def write(self, data: bytes | memoryview) -> None:
        """Raises Lost when the command has ended."""
        with translating_modal_errors("send"):
            self._process.stdin.write(data)
            await self._process.stdin.drain.aio()

    async def read(self, stream: Stream) -> AsyncIterator[bytes]:
        source = self._process.stdout if stream is Stream.STDOUT else self._process.stderr
        with translating_modal_errors("receive"):
            async for piece in source:
                yield piece


class Sandbox:
    """A sandbox, whether we made it or found it."""

    def __init__(self, inner: modal.Sandbox) -> None:
        self._inner = inner
        self._ending = asyncio.Lock()
        self._is_over = False

    @property
    def sandbox_id(self) -> str:
        return self._inner.object_id

    async def start(self, command: Sequence[str], timeout_s: int, within_s: float) -> Command:
        work = self._inner.exec.aio(*command, text=False, timeout=timeout_s)
        return Command(await call("exec", work, within_s))

    async def ask(self, command: Sequence[str], within_s: float) -> bytes:
        """What a short command of our own says on stdout."""

        async def said() -> bytes:
            asked = await self.start(command, int(within_s), within_s)
            return b"".join([piece async for piece in asked.read(Stream.STDOUT)])

        return await call("ask", said(), within_s)

    async def tags(self) -> dict[str, str]:
        return await call("tags", self._inner.get_tags.aio(), CALL_S)

    async def ended(self) -> Ended | None:
        """None while it runs. Raises Lost when Modal has forgotten it."""
        code = await call("poll", self._inner.poll.aio(), CALL_S)
        return None if code is None else Ended(status_of(self._inner), code)

    async def end(self) -> None:
        """Terminate, confirmed by Modal; what fails is tried again. Harmless when it is gone.

        Two may end it at once; once it is over and detached, the package would take the second for a failure.
        """
        async with self._ending:
            if not self._is_over:
                await self._end()
                self._is_over = True
                # Only our own side of the connection: nothing depends on it.
                with contextlib.suppress(SandboxError):
                    await call("detach", self._inner.detach.aio(), CALL_S)  # type: ignore[no-untyped-call]  # no types

    async def _end(self) -> None:
        for pause in (*END_PAUSES_S, None):
            try:
                await self._terminate()
            except Unavailable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def _terminate(self) -> None:
        try:
            await call("terminate", self._inner.terminate.aio(wait=True), END_TRY_S)
        except Lost as error:
            if _is_conflict(error) and not await self._is_gone():
                raise Unavailable("terminate: Modal did not end it, something else was under way") from error

    async def _is_gone(self) -> bool:
        try:
            return await self.ended() is not None
        except Lost as error:
            return not _is_conflict(error)


def _is_conflict(error: Lost) -> bool:
    """Modal was busy with it, or in a state of its own: that tells nothing of whether it is gone."""
    return isinstance(error.__cause__, ConflictError)


def _original(sandbox: modal.Sandbox) -> object:
    found: object = synchronizer._translate_in(sandbox)  # type: ignore[no-untyped-call]  # the package's own, untyped
    return found


def status_of(sandbox: modal.Sandbox) -> str:
    """The package shows an exit code only; the status that came with it tells memory from a kill, and lies beneath."""
    result = getattr(getattr(_original(sandbox), "_impl", None), "result", None)
    if result is None:
        raise Unavailable(f"poll: modal {modal.__version__} does not say how a sandbox ended; install modal>=1.6,<1.7")
    return str(type(result).GenericStatus.Name(result.status)).removeprefix("GENERIC_STATUS_")


class ModalEngine:
    """One account at Modal, one app in it. Every method may raise Unavailable; what else it raises stands with it."""

    def __init__(self, client: modal.Client, app: modal.App, name: str, environment: str | None) -> None:
        self._client = client
        self._app = app
        self._name = name
        self._environment = environment
        self._heard = 0.0

    @property
    def app_id(self) -> str:
        return str(self._app.app_id)

    @classmethod
    async def connect(cls, app: str, environment: str | None) -> Self:
        """A client of our own, never the process-wide one. The app is made when it is not there yet."""
        token = modal_settings.get("token_id"), modal_settings.get("token_secret")
        if not all(token):
            raise Denied(f"there is no token for Modal; {HOW_TO_GET_A_TOKEN}")
        client = await call("connect", modal.Client.from_credentials.aio(*token), CONNECT_S)
        try:
            lookup = modal.App.lookup.aio(app, client=client, environment_name=environment, create_if_missing=True)
            return cls(client, await call("connect", lookup, CONNECT_S), app, environment)
        except BaseException:
            await _close(client)
            raise

    async def close(self) -> None:
        await _close(self._client)

    async def check(self) -> None:
        """Whether anybody answers, asked before something is made: one that is away is known at once, at no cost.

        Not asked again within moments: one that opens many chambers need not.
        """
        if time.monotonic() - self._heard > FRESH_S:
            await self.hello()

    async def hello(self) -> None:
        await call("connect", self._client.hello.aio(), CALL_S)  # type: ignore[no-untyped-call]  # it has no types
        self._heard = time.monotonic()

    async def create(self, order: Order, within_s: float) -> Sandbox:
        """A lost reply is safe to retry: the name is unique and ours. Whatever is raised, it may have been made."""
        until = time.monotonic() + within_s
        for left in reversed(range(CREATE_TRIES)):
            try:
                made = Sandbox(await within("create", self._creating(order), until - time.monotonic()))
                self._heard = time.monotonic()
                return made
            except AlreadyExistsError:
                if found := await self.find(order.name):
                    return found
                raise Lost(f"create: {order.name} exists and is gone again; try again") from None
            except _PROVIDER_ERRORS as error:
                failure = _translated(error, "create")
                is_final = isinstance(failure, Refused | Denied | Lost) or isinstance(error, ResourceExhaustedError)
                if is_final or not left or until - time.monotonic() < CREATE_PAUSE_S:
                    raise failure from error
            await asyncio.sleep(CREATE_PAUSE_S)
        raise Unavailable("create: Modal does not answer")

    def _creating(self, order: Order) -> Coroutine[Any, Any, modal.Sandbox]:
        return modal.Sandbox.create.aio(
            *order.command,
            app=self._app,
            client=self._client,
            name=order.name,
            tags=dict(order.tags),
            image=order.image,
            cpu=(order.cpus, order.cpus),
            memory=(order.memory, order.memory),
            gpu=order.gpu,
            timeout=order.lifetime_s,
            block_network=True,
        )

    async def find(self, name: str) -> Sandbox | None:
        """The running sandbox of this name."""
        looking = modal.Sandbox.from_name.aio(self._name, name, environment_name=self._environment, client=self._client)
        try:
            return Sandbox(await call("look up", looking, CALL_S))
        except Lost as error:
            if _is_conflict(error):
                raise Unavailable(str(error)) from error
            return None

    async def running(self, tags: Mapping[str, str]) -> list[tuple[Sandbox, dict[str, str]]]:
        """All that run in our app and carry at least these tags, each with all of its tags."""

        async def listed() -> list[Sandbox]:
            found = modal.Sandbox.list.aio(app_id=self._app.app_id, tags=dict(tags), client=self._client)
            return [Sandbox(item) async for item in found]

        gate = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def look(sandbox: Sandbox) -> tuple[Sandbox, dict[str, str]] | None:
            async with gate:
                try:
                    return sandbox, await sandbox.tags()
                except Lost:  # it ended between the two calls
                    return None

        looks = await asyncio.gather(*map(look, await call("list", listed(), 2 * CALL_S)))
        return [item for item in looks if item]

    async def lives(self, wanted: Sequence[Mapping[str, str]]) -> list[Life]:
        """Of sandboxes in our app that carry these tags, each set of tags that of one; those that are over, too."""
        gate = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def look(tags: Mapping[str, str]) -> Life:
            listed = [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]
            request = api_pb2.SandboxListRequest(app_id=self.app_id, include_finished=True, tags=listed)
            async with gate:
                page = await call("list what is over", _listed(self._client, request), CALL_S)
            return life_of(page.sandboxes)

        return list(await asyncio.gather(*map(look, wanted)))

    async def image_of_id(self, image_id: str, within_s: float) -> modal.Image:
        """Raises Refused when Modal has no such image."""
        try:
            return await self.build(modal.Image.from_id(image_id, client=self._client), within_s)
        except Lost:
            raise Refused(f"Modal has no image {image_id}; bake it again") from None

    async def build(self, image: modal.Image, within_s: float) -> modal.Image:
        """Built by Modal unless it has it. Raises Refused with the last word of a build that failed."""
        return await call("build the image", image.build.aio(self._app), within_s)


async def _page(client: "modal.client._Client", request: api_pb2.SandboxListRequest) -> api_pb2.SandboxListResponse:
    """The package's own list leaves out what is over, and the times, which its service tells."""
    return await SandboxImplV2.list_page(client, request)


_listed = synchronize_api(_page).aio  # type: ignore[no-untyped-call]  # the package's own, untyped


def life_of(found: Sequence[api_pb2.SandboxInfo]) -> Life:
    """Rounded up to whole seconds; a retried create may have made more than one. An end that is none, or that came
    before its beginning, tells no time.
    """
    if any(not 0 < it.created_at <= it.task_info.finished_at < math.inf for it in found):
        return Life(listed=True)
    seconds = sum(math.ceil(it.task_info.finished_at - it.created_at) for it in found)
    return Life(listed=True, seconds=seconds) if found else Life()


def image_id(image: modal.Image) -> str:
    return image.object_id


def registry_image(base: str) -> modal.Image:
    """Defined, not yet built."""
    return modal.Image.from_registry(base)


def with_added(image: modal.Image, apt: Sequence[str], pip: Sequence[str], run: Sequence[str]) -> modal.Image:
    """Wheels only, as on Docker: no package's own code runs to install it."""
    if apt:
        image = image.apt_install(*apt)
    if pip:
        image = image.pip_install(*pip, extra_options="--only-binary=:all:")
    return image.run_commands(*run) if run else image


def with_folder(image: modal.Image, local: str, remote: str) -> modal.Image:
    """Files beside the image, sent once by content and laid into each sandbox when it starts."""
    return image.add_local_dir(local, remote)


async def call(doing: str, work: Awaitable[T], within_s: float) -> T:
    with translating_modal_errors(doing):
        return await within(doing, work, within_s)


async def _close(client: modal.Client) -> None:
    with contextlib.suppress(SandboxError):
        await call("close", client._close.aio(), CALL_S)
