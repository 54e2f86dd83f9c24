"""Who was let in, with what, and what for.

A token is for people: it is printed where only its owner reads, and opens as often as it is shown. A code is for the
browser that we open ourselves: its address is in a command line, which all users of the machine can see, so it opens
once, within a minute. If it is shown twice, nobody knows who was first: both are put out.

Everything is served under a place that nobody can guess. A browser sends a cookie to every server of a host, whatever
the port, but only below the cookie's path: a server of somebody else would have to know the place to be sent it.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs

CODE_S = 60.0
MOST_SESSIONS = 256
_MOST_FIELDS = 20


@dataclass(eq=False)
class Session:
    """One browser. `key` is what each of its acts has to show beside the cookie: no other site can read it."""

    acts: bool
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
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
        self._sessions: OrderedDict[str, Session] = OrderedDict()

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
                    return self._admit(Session(acts))
        if len(codes) == 1 and not tokens and self._code and _is_same(codes[0], self._code.text):
            return self._trade(self._code)
        return None

    def session(self, name: str) -> Session | None:
        """That of a cookie. The names are random and long, so to look them up tells nothing of them."""
        found = self._sessions.get(name)
        if found is None or found.is_over:
            return None
        self._sessions.move_to_end(name)
        return found

    def _trade(self, code: _Code) -> str | None:
        if self._clock() > code.until:
            return None
        if code.session:
            code.session.is_over = True
            return None
        code.session = Session(acts=False)
        return self._admit(code.session)

    def _admit(self, session: Session) -> str:
        name = secrets.token_urlsafe(32)
        self._sessions[name] = session
        while len(self._sessions) > MOST_SESSIONS:
            _, oldest = self._sessions.popitem(last=False)
            oldest.is_over = True
        return name


def _is_same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())
