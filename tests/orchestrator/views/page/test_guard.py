"""Who gets in, and with what a browser is told to treat the answers (T94)."""

from urllib.parse import quote

import pytest
from starlette.types import Receive, Scope, Send

from orchestrator.views.page.entrance import CODE_S, Entrance
from orchestrator.views.page.guard import HEADERS, Guard
from tests.orchestrator.views.page.conftest import CONTROL, HOST, PLACE, PORT, TOKEN, Headers, asked, cookie_of


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the pages: it answers whatever gets through."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def let_in(app: Guard, code: str) -> Headers:
    """What a browser sends after it opened the address with a code."""
    answer = await asked(app, f"/?code={code}")
    assert answer.status == 303
    return [("host", HOST), ("cookie", answer.headers["set-cookie"].partition(";")[0])]


async def status(app: Guard, headers: Headers, target: str = "/api/campaigns") -> int:
    return (await asked(app, target, headers=headers)).status


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def entrance(clock: Clock) -> Entrance:
    return Entrance(TOKEN, place=PLACE, clock=clock)


@pytest.fixture
def app(entrance: Entrance) -> Guard:
    return Guard(inner, entrance, PORT)


async def test_the_token_opens_and_a_cookie_keeps_open(app: Guard) -> None:
    """The cookie is no token, is kept from scripts, and is never sent from another site. Answers that get through, and
    refusals, carry the policy: no inline script, no inline style, nothing from elsewhere, no frame.
    """
    answer = await asked(app, f"/?token={quote(TOKEN)}")
    cookie = answer.headers["set-cookie"]
    assert answer.status == 303
    for part in ("HttpOnly", "SameSite=Strict", f"blastdoor_{PORT}=", f"; Path=/{PLACE}/"):
        assert part in cookie
    assert TOKEN not in cookie
    assert (await asked(app, "/api/campaigns", headers=await cookie_of(app))).body == b"in"
    for it in (answer, await asked(app, "/")):
        assert {name: it.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/?token=",
        "/?token=wrong",
        f"/?token={quote(TOKEN)}&token={quote(TOKEN)}",
        f"/api/campaigns?token={quote(TOKEN)}",
        f"/?{'a&' * 30}token={quote(TOKEN)}",
        "/?code=",
        f"/?code={quote(TOKEN)}",
        "/another-place/",
        "/another-place/api/campaigns",
        "//api/campaigns",
        f"//{PLACE}/",
    ],
)
async def test_nobody_gets_in_without(app: Guard, target: str) -> None:
    """Not with a wrong token, not with two or among very many, and an answer that is data wants the cookie."""
    answer = await asked(app, target)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example"],
        [f"evil.example:{PORT}"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        [f"127.0.0.1:{PORT}.evil.example"],
        [HOST, "evil.example"],
        [f"{HOST} "],
    ],
)
async def test_a_name_that_points_here_is_not_enough(app: Guard, hosts: list[str]) -> None:
    """A site may let its own name lead to loopback: then the browser names that site, and nothing is answered."""
    cookie = await cookie_of(app)
    given: Headers = [*(("host", host) for host in hosts), *(it for it in cookie if it[0] == "cookie")]
    for target in ("/", f"/?token={quote(TOKEN)}", "/api/campaigns"):
        assert (await asked(app, target, headers=given)).status == 421


async def test_nothing_but_looking(app: Guard) -> None:
    """Another site is answered nothing, even with the cookie, as an old browser might send it."""
    cookie = await cookie_of(app)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"):
        assert (await asked(app, "/api/campaigns", method=method, headers=cookie)).status == 405
    for site, code in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert await status(app, [*cookie, ("sec-fetch-site", site)]) == code
    assert await status(app, cookie, f"/api/campaigns?{'a' * 9000}") == 414


@pytest.mark.parametrize("value", ["\x00", "\r\nset-cookie: x=1", "ü" * 400, "=;=;", f"blastdoor_{PORT}=\xff"])
async def test_a_cookie_of_another_is_none(app: Guard, value: str) -> None:
    """Bytes of any kind are compared and refused, and come back in no header."""
    answer = await asked(app, "/api/campaigns", headers=[("host", HOST), ("cookie", value)])
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


async def test_the_cookie_is_for_one_place(app: Guard) -> None:
    """A browser sends it to every server of this host, but only below a path that no other server knows; the frame of
    the page has nothing in it, and needs no more than the place.
    """
    cookie = await cookie_of(app)
    assert (await asked(app, f"/{PLACE}/", headers=[("host", HOST)])).body == b"in"
    assert [await status(app, cookie, it) for it in ("/another/api/campaigns", "/")] == [401, 401]
    assert (await asked(app, "/api/campaigns")).status == 401
    assert len(Entrance(TOKEN).place) >= 24
    assert Entrance(TOKEN).place != Entrance(TOKEN).place


async def test_a_code_opens_once(app: Guard, entrance: Entrance) -> None:
    """It is in a browser's command line: shown twice, nobody knows who was first, so both are put out. The token still
    opens.
    """
    headers = await let_in(app, code := entrance.code())
    assert await status(app, headers) == 200
    assert (await asked(app, f"/?code={code}")).status == 401
    assert [await status(app, it) for it in (headers, await cookie_of(app))] == [401, 200]


async def test_a_code_grows_old(app: Guard, entrance: Entrance, clock: Clock) -> None:
    """Later it neither opens, nor puts out the one that it let in."""
    late = entrance.code()
    clock.now += CODE_S + 1
    assert (await asked(app, f"/?code={late}")).status == 401
    headers = await let_in(app, code := entrance.code())
    clock.now += CODE_S + 1
    assert (await asked(app, f"/?code={code}")).status == 401
    assert await status(app, headers) == 200


@pytest.mark.parametrize("token", [TOKEN, CONTROL])
async def test_t103_no_session_takes_the_place_of_another(token: str) -> None:
    """One who enters over and over puts nobody out, and fills no memory."""
    entrance = Entrance(TOKEN, CONTROL, PLACE)
    app = Guard(inner, entrance, 8420)
    first = await cookie_of(app, token)
    sizes = {name: len(it) for name, it in vars(entrance).items() if hasattr(it, "__len__")}
    for _ in range(300):
        await cookie_of(app)
    assert (await asked(app, "/api/campaigns", headers=first)).status == 200
    assert {name: len(it) for name, it in vars(entrance).items() if hasattr(it, "__len__")} == sizes


def test_a_session_cannot_be_made_up() -> None:
    """Nor can one of who looks be turned into one of who acts; another server's is none."""
    entrance = Entrance(TOKEN, CONTROL, PLACE)
    looks, acts = (entrance.enter(f"token={quote(it)}".encode()) or "" for it in (TOKEN, CONTROL))
    assert [it and it.acts for it in map(entrance.session, (looks, acts))] == [False, True]
    (nonce, _, seal), other = looks.partition("."), acts.partition(".")[2]
    odd = [
        "",
        ".",
        nonce,
        f"{nonce}.",
        f".{seal}",
        f"{nonce}.{other}",
        f"{nonce}x.{seal}",
        f"{looks}=",
        "\udcff.\udcff",
    ]
    assert [entrance.session(name) for name in odd] == [None] * len(odd)
    assert Entrance(TOKEN, CONTROL, PLACE).session(acts) is None
    keys = [it and it.key for it in map(entrance.session, (looks, acts, acts))]
    assert keys[0] != keys[1] == keys[2]


async def test_tls_makes_the_cookie_secure(entrance: Entrance) -> None:
    app = Guard(inner, entrance, 443, ["page.example"], "https")
    for host in ("page.example", "page.example:443"):
        answer = await asked(app, f"/?token={quote(TOKEN)}", headers=[("host", host)])
        assert answer.headers["set-cookie"].endswith("; Secure")
    assert (await asked(app, f"/?token={quote(TOKEN)}", headers=[("host", "127.0.0.1:443")])).status == 421
