"""Who was let in, with what, and what for.

A token is for people: it is printed where only its owner reads, and opens as often as it is shown. A code is for the
browser that we open ourselves: its address is in a command line, which all users of the machine can see, so it opens
once, within a minute. If it is shown twice, nobody knows who was first: both are put out.

Everything is served under a place that nobody can guess. A browser sends a cookie to every server of a host, whatever
the port, but only below the cookie's path: a server of somebody else would have to know the place to be sent it.

A session is not kept here: its name carries our own seal of what it may do. So there is no room for sessions that
somebody could fill, and nobody's session gives way to another.
"""

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

CODE_S = 60.0
_MOST_FIELDS = 20


@dataclass
class Session:
    """One browser, by a name that nobody can guess. `key` is what each of its acts has to show beside the cookie: no
    other site can read it.
    """

    name: str
    acts: bool
    key: str
    is_over: bool = False


@dataclass
class _Code:
    text: str
    until: float
    session: Session | None = None


class Entrance:
    """`token` lets look, `control` lets act, too; without one nobody can. A `place` is drawn unless it is given."""

    def __init__(
        self, token: str, control: str = "", place: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tokens = {token: False} | ({control: True} if control else {})
        self.is_control = bool(control)
        self.place = place or secrets.token_urlsafe(18)
        self._clock = clock
        self._code: _Code | None = None
        self._seal = secrets.token_bytes(32)
        # Sessions of codes, which can still be put out: one for each code that we drew.
        self._by_code: dict[str, Session] = {}

    def code(self) -> str:
        """For one browser, to look."""
        self._code = _Code(secrets.token_urlsafe(32), self._clock() + CODE_S)
        return self._code.text

    def enter(self, query: bytes) -> str | None:
        """The name of a new session, for one who shows a token or the code."""
        try:
            found = parse_qs(query.decode("latin-1"), max_num_fields=_MOST_FIELDS)
        except ValueError:  # more fields than any address of ours has
            return None
        tokens, codes = found.get("token", []), found.get("code", [])
        if len(tokens) == 1 and not codes:
            for token, acts in self._tokens.items():
                if _is_same(tokens[0], token):
                    return self._admit(acts=acts).name
        if len(codes) == 1 and not tokens and self._code and _is_same(codes[0], self._code.text):
            return self._trade(self._code)
        return None

    def session(self, name: str) -> Session | None:
        """That of a cookie."""
        nonce, _, seal = name.partition(".")
        for acts in (False, True):
            if _is_same(seal, self._sealed(f"session {acts} {nonce}")):
                found = self._by_code.get(name) or Session(name, acts, self._sealed(f"key {nonce}"))
                return None if found.is_over else found
        return None

    def _trade(self, code: _Code) -> str | None:
        if self._clock() > code.until:
            return None
        if code.session:
            code.session.is_over = True
            return None
        code.session = self._admit(acts=False)
        self._by_code[code.session.name] = code.session
        return code.session.name

    def _admit(self, *, acts: bool) -> Session:
        nonce = secrets.token_urlsafe(18)
        return Session(f"{nonce}.{self._sealed(f'session {acts} {nonce}')}", acts, self._sealed(f"key {nonce}"))

    def _sealed(self, text: str) -> str:
        """What only this server could have written about the text."""
        digest = hmac.digest(self._seal, text.encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _is_same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())
