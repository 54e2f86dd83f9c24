"""Whatever SkyPilot raises, in our own words, and a deadline for each of its calls."""

import asyncio
import contextlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import requests
from sky import exceptions

from sandbox.errors import Denied, Lost, Refused, SandboxError, Unavailable
from sandbox.wire.log import printable

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_GONE = (exceptions.ClusterDoesNotExist, exceptions.ClusterNotUpError)
_STRANGERS = (
    exceptions.ApiServerAuthenticationError,
    exceptions.CloudUserIdentityError,
    exceptions.ClusterOwnerIdentityMismatchError,
    exceptions.InvalidCloudCredentials,
    exceptions.PermissionDeniedError,
)
_NEVER = (
    exceptions.APINotSupportedError,
    exceptions.APIVersionMismatchError,
    exceptions.InvalidCloudConfigs,
    exceptions.InvalidClusterNameError,
    exceptions.InvalidSkyPilotConfigError,
    exceptions.NoCloudAccessError,
    exceptions.NotSupportedError,
    exceptions.ProvisionUnsupportedError,
    exceptions.ResourcesMismatchError,
    exceptions.UserRequestRejectedByPolicy,
)

T = TypeVar("T")


@contextlib.contextmanager
def translating_sky_errors(doing: str) -> Iterator[None]:
    """Whatever SkyPilot raises leaves as Unavailable, Denied, Refused or Lost."""
    try:
        yield
    except SandboxError:
        raise
    except SystemExit as error:
        raise Unavailable(f"{doing}: SkyPilot gave up ({error.code})") from error
    except Exception as error:  # its calls raise what its server raised, builtin errors among them
        raise _translated(error, doing) from error
    finally:
        # SkyPilot hides traces when it raises, and forgets to show them again: everybody else's would be lost.
        if hasattr(sys, "tracebacklimit"):
            del sys.tracebacklimit


def _translated(error: Exception, doing: str) -> SandboxError:
    said = first_line(error)
    if isinstance(error, exceptions.ResourcesUnavailableError):
        if getattr(error, "failover_history", None):
            return Unavailable(f"{doing}: no capacity now: {said}")
        return Refused(f"{doing}: there is no such machine: {said}")
    if isinstance(error, _GONE):
        return Lost(f"{doing}: the cluster is gone")
    if isinstance(error, _STRANGERS):
        return Denied(f"{doing}: SkyPilot or the cloud does not know us; log in again and run sky check: {said}")
    if isinstance(error, _NEVER):
        return Refused(f"{doing}: {said}")
    if isinstance(error, exceptions.RequestCancelled):
        return Unavailable(f"{doing}: somebody cancelled the request")
    if isinstance(error, exceptions.ApiServerConnectionError | requests.ConnectionError):
        return Unavailable(f"{doing}: SkyPilot's server does not answer; start it with sky api start")
    return Unavailable(f"{doing}: SkyPilot failed ({type(error).__name__}): {said}")


def first_line(error: Exception) -> str:
    """What it says first, as plain text."""
    try:
        text = str(error)
    except AttributeError:  # some lose what they print on their way from the server
        text = " ".join(map(str, error.args))
    lines = [line.strip() for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    return printable((lines or ["no reason given"])[0].encode())[:300]


async def bounded(doing: str, work: Callable[[], T], timeout: float) -> T:
    """In a thread that nobody waits for at exit: SkyPilot's client has no deadline, and a server can hang."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # a result is there when no error is

    def run() -> None:
        result, error = None, None
        try:
            with translating_sky_errors(doing):
                result = work()
        except BaseException as problem:  # noqa: BLE001  handed on whole, to the one that waits
            error = problem
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name=f"skypilot {doing}", daemon=True).start()
    try:
        async with asyncio.timeout(timeout):
            return await answer
    except TimeoutError:
        raise Unavailable(f"{doing}: SkyPilot did not answer within {timeout:g} s") from None
