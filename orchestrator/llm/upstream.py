"""The provider: the one place that holds the key, and the one address that it is sent to.

A try that the provider answered with an error is not billed, and neither is one that never reached it: these are tried
again. A try that went out and brought no answer may be billed: nobody here repeats it on the same reservation.

NotAnswered
├─ Declined      the provider said no, for good or after all tries; costs nothing
├─ Unreachable   no connection came about, after all tries; costs nothing
└─ Unknown       it was sent, and what became of it is not known; costs its worst case
"""

import email.utils
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import structlog
from pydantic import SecretStr
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_ERROR = 64 << 10
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class NotAnswered(Exception):
    """One line for a person."""


class Declined(NotAnswered):
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"the provider answered with status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Unreachable(NotAnswered):
    pass


class Unknown(NotAnswered):
    """`late` is true where it is the time that ran out."""

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.late = late


@dataclass(frozen=True)
class Patience:
    """How long the provider is waited for. `idle_s` is the longest silence of a stream, pings included."""

    tries: int = 6
    connect_s: float = 10.0
    idle_s: float = 600.0
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0


class Answering:
    """An answer whose head is there. Iterate over the bytes once, and close it whatever happens."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Raises Unknown where the stream breaks off."""
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx2.HTTPError as error:
            late = isinstance(error, httpx2.TimeoutException)
            raise Unknown(_told("the stream broke off", error), late=late) from None

    async def close(self) -> None:
        await self._response.aclose()


class Upstream:
    def __init__(self, url: str, key: SecretStr, patience: Patience | None = None) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self._patience = patience or Patience()
        parts = urlsplit(self._url)
        self._host = parts.hostname
        safe = parts.scheme == "https"
        if not safe and self._host not in _LOOPBACK:
            structlog.get_logger().warning("gateway.key_in_the_clear", host=self._host)
        # At its most talkative it logs the heads of answers, and a provider may tell back there what it was sent.
        logging.getLogger("httpcore2").setLevel(logging.INFO)
        idle, connect = self._patience.idle_s, self._patience.connect_s
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(idle, connect=connect, pool=None),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            follow_redirects=False,
            trust_env=safe,
            # Where nothing is encrypted, nobody has to be trusted: to read whom this machine trusts takes a while.
            verify=True if safe else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def __repr__(self) -> str:
        return f"Upstream({self._host!r})"

    async def post(
        self, path: str, headers: Mapping[str, str], body: bytes, waits: Callable[[], None], sent: Callable[[], None]
    ) -> Answering:
        """`waits` is called before each wait for another try, `sent` before each that may reach the provider.

        Raises Declined, Unreachable and Unknown.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._patience.tries),
            wait=self._wait,
            retry=retry_if_exception_type(_Again),
            before_sleep=lambda _: waits(),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    sent()
                    return await self._once(path, headers, body)
        except _Again as again:
            raise again.final from None
        raise AssertionError("a retry ends with an answer or an exception")

    async def _once(self, path: str, headers: Mapping[str, str], body: bytes) -> Answering:
        ours = {
            "content-type": "application/json",
            "accept-encoding": "identity",
            "user-agent": "blastdoor",
            "x-api-key": self._key.get_secret_value(),
        }
        request = self._client.build_request("POST", self._url + path, headers={**headers, **ours}, content=body)
        try:
            response = await self._client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise _Again(Unreachable(_told("the provider cannot be reached", error))) from None
        except httpx2.HTTPError as error:
            late = isinstance(error, httpx2.TimeoutException)
            raise Unknown(_told("no answer came from the provider", error), late=late) from None
        if response.status_code == 200:
            return Answering(response)
        declined = Declined(response.status_code, response.headers, await self._error(response))
        if response.status_code in AGAIN and response.headers.get("x-should-retry") != "false":
            raise _Again(declined)
        raise declined

    async def _error(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LONGEST_ERROR:
                    break
        except httpx2.HTTPError:
            body.clear()
        finally:
            await response.aclose()
        # A provider may tell back what it was sent.
        return bytes(body).replace(self._key.get_secret_value().encode(), b"[key]")

    def _wait(self, state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        final = fault.final if isinstance(fault, _Again) else None
        asked = retry_after(final.headers) if isinstance(final, Declined) else None
        longest = self._patience.longest_wait_s
        if asked is not None:
            return min(asked, longest)
        doubled: float = self._patience.first_wait_s * 2 ** (state.attempt_number - 1)
        return min(doubled, longest) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing

    async def close(self) -> None:
        await self._client.aclose()


class _Again(Exception):
    """Worth another try; `final` is what is said when there is none."""

    def __init__(self, final: NotAnswered) -> None:
        super().__init__(str(final))
        self.final = final


def _told(what: str, error: Exception) -> str:
    """The error's own words may quote what was sent; its kind does not."""
    return f"{what} ({type(error).__name__})"


def retry_after(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if (value := headers.get(name)) is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            date = email.utils.parsedate_tz(value)
            seconds = email.utils.mktime_tz(date) - time.time() if date else -1.0
        if 0 <= seconds < float("inf"):
            return seconds
    return None
