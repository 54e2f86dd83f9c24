"""Who may ask the page for something, and what a browser may do with the answer.

Anybody on the machine can connect to its loopback, and so can any site that a person visits, through the browser. So
each request proves that it knows the token, says that it is meant for this server, and changes nothing.
"""

import hashlib
import hmac
from collections.abc import Collection
from urllib.parse import parse_qs

from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No inline script or style, nothing from elsewhere, and no frame around it. Text can become markup nowhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_LONGEST_QUERY = 8192
_MOST_FIELDS = 20
_OURS = ("same-origin", "none")


class Guard:
    """`port` is the one that the server has. A cookie is for a host whatever the port, so its name tells it."""

    def __init__(
        self, app: ASGIApp, token: str, port: int, hosts: Collection[str] = ("127.0.0.1", "localhost")
    ) -> None:
        self._app = app
        self._token = token.encode()
        # One who can read a cookie jar must not get what opens a browser elsewhere.
        self._session = hmac.new(self._token, b"session", hashlib.sha256).hexdigest()
        self._cookie = f"blastdoor_{port}"
        self._hosts = {f"{host}:{port}".encode() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer, known = self._judged(scope)
        cookie = f"{self._cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/" if known else ""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
                cookies = [(b"set-cookie", cookie.encode())] if cookie else []
                message = {**message, "headers": [*message["headers"], *extra, *cookies]}
            await send(message)

        await (answer or self._app)(scope, receive, guarded)

    def _judged(self, scope: Scope) -> tuple[Response | None, bool]:
        """A refusal or None, and whether the token itself was shown."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if [value for name, value in headers if name == b"host"] not in [[host] for host in self._hosts]:
            return _refused(421, "this server has another name; open the address that blastdoor serve printed"), False
        if scope["method"] != "GET":
            return _refused(405, "this page only shows; nothing can be changed through it"), False
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return _refused(414, "the address is too long"), False
        if scope["path"] == "/" and self._shown(scope["query_string"]):
            return None, True
        sites = [value.decode("latin-1") for name, value in headers if name == b"sec-fetch-site"]
        if scope["path"] != "/" and any(site not in _OURS for site in sites):
            return _refused(403, "another site asked for this"), False
        if not self._remembered(headers):
            return _refused(401, "open the address that blastdoor serve printed: it has the token"), False
        return None, False

    def _shown(self, query: bytes) -> bool:
        try:
            found = parse_qs(query.decode("latin-1"), max_num_fields=_MOST_FIELDS).get("token", [])
        except ValueError:  # more fields than any address of ours has
            return False
        return len(found) == 1 and hmac.compare_digest(found[0].encode(), self._token)

    def _remembered(self, headers: list[tuple[bytes, bytes]]) -> bool:
        for name, value in headers:
            if name == b"cookie":
                found = cookie_parser(value.decode("latin-1")).get(self._cookie, "")
                if hmac.compare_digest(found.encode("latin-1", "replace"), self._session.encode()):
                    return True
        return False


def _refused(status: int, line: str) -> Response:
    return PlainTextResponse(f"{line}\n", status)
