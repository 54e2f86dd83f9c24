"""Who may ask the page for something, and what a browser may do with the answer.

Anybody on the machine can connect to its loopback, and so can any site that a person visits, through the browser. So
each request proves that it was let in, and says that it is meant for this server. One that changes something proves
besides that our own page sent it.
"""

import hmac
from collections.abc import Iterable

from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.units import format_size
from orchestrator.views.page.entrance import Entrance, Session

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
# A change of the longest kind, with every character of it escaped.
LONGEST_BODY = 7 << 20
KEY = "x-blastdoor-key"
_LONGEST_QUERY = 8192
_OURS = ("same-origin", "none")

Headers = list[tuple[bytes, bytes]]


class Guard:
    """`port` is the one that the server has, `hosts` are the names that browsers may know it by. The application gets
    its requests without the place, and each with the session that it belongs to.
    """

    def __init__(
        self,
        app: ASGIApp,
        entrance: Entrance,
        port: int,
        hosts: Iterable[str] = ("127.0.0.1", "localhost"),
        scheme: str = "http",
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._cookie = f"blastdoor_{port}"
        self._scheme = scheme
        usual = {"http": 80, "https": 443}[scheme]
        names = [f"{host}:{port}" for host in hosts] + ([*hosts] if port == usual else [])
        self._hosts = [[name.encode()] for name in names]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = self._judged(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        if isinstance(answer, Response):
            await answer(scope, receive, guarded)
        else:
            await self._app(answer, receive, guarded)

    def _judged(self, scope: Scope) -> Response | Scope:
        """An answer, or the request as the application gets it."""
        headers: Headers = scope["headers"]
        if _all(headers, "host") not in self._hosts:
            return _refused(421, "this server has another name; open the address that blastdoor serve printed")
        if scope["method"] != "GET" and not (scope["method"] == "POST" and self._entrance.is_control):
            return _refused(405, "this page only shows; nothing can be changed through it")
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return _refused(414, "the address is too long")
        if scope["path"] == "/" and scope["method"] == "GET":
            return self._at_the_door(scope["query_string"])
        place, _, rest = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(place.encode("utf-8", "replace"), self._entrance.place.encode()):
            return _unknown()
        if not rest and scope["method"] == "GET":
            # The frame of the page has nothing in it; one who follows a link to it from elsewhere brings no cookie.
            return _inside(scope, rest, None)
        if any(site.decode("latin-1") not in _OURS for site in _all(headers, "sec-fetch-site")):
            return _refused(403, "another site asked for this")
        session = self._remembered(headers)
        if session is None:
            return _unknown()
        refused = self._act_refused(headers, session) if scope["method"] == "POST" else None
        return refused or _inside(scope, rest, session)

    def _at_the_door(self, query: bytes) -> Response:
        name = self._entrance.enter(query)
        if name is None:
            return _unknown()
        secure = "; Secure" if self._scheme == "https" else ""
        path = f"/{self._entrance.place}/"
        cookie = f"{self._cookie}={name}; HttpOnly; SameSite=Strict; Path={path}{secure}"
        return RedirectResponse(path, 303, headers={"set-cookie": cookie})

    def _remembered(self, headers: Headers) -> Session | None:
        for value in _all(headers, "cookie"):
            found = self._entrance.session(cookie_parser(value.decode("latin-1")).get(self._cookie, ""))
            if found:
                return found
        return None

    def _act_refused(self, headers: Headers, session: Session) -> Response | None:
        """Each of these alone would keep other sites out."""
        if not session.acts:
            return _refused(403, "this address only looks; blastdoor serve --control printed another one to act with")
        host = _all(headers, "host")[0]
        if _all(headers, "origin") != [f"{self._scheme}://".encode() + host]:
            return _refused(403, "another site asked for this")
        kinds = [value.split(b";")[0].strip().lower() for value in _all(headers, "content-type")]
        if kinds != [b"application/json"]:
            return _refused(415, "what is asked for is JSON")
        keys = _all(headers, KEY)
        if len(keys) != 1 or not hmac.compare_digest(keys[0], session.key.encode()):
            return _refused(403, "the page is an old one; load it again")
        lengths = _all(headers, "content-length")
        if len(lengths) != 1 or not lengths[0].isdigit():
            return _refused(411, "how long it is has to be said")
        if len(lengths[0]) > 9 or int(lengths[0]) > LONGEST_BODY:
            return _refused(413, f"a request has at most {format_size(LONGEST_BODY)}")
        return None


def _inside(scope: Scope, rest: str, session: Session | None) -> Scope:
    return {**scope, "path": f"/{rest}", "raw_path": b"", "session": session}


def _all(headers: Headers, name: str) -> list[bytes]:
    return [value for found, value in headers if found == name.encode()]


def _unknown() -> Response:
    return _refused(401, "open the address that blastdoor serve printed: it has the token")


def _refused(status: int, line: str) -> Response:
    """One who is refused keeps no connection, either."""
    return PlainTextResponse(f"{line}\n", status, headers={"connection": "close"})
