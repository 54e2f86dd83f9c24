"""Who gets in, and with what a browser is told to treat the answers."""

from urllib.parse import quote

import pytest
from starlette.types import Receive, Scope, Send

from orchestrator.views.page.guard import HEADERS, Guard
from tests.orchestrator.views.page.conftest import HOST, PORT, TOKEN, Headers, asked, cookie_of


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the pages: it answers whatever gets through."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


@pytest.fixture
def app() -> Guard:
    return Guard(inner, TOKEN, PORT)


async def test_the_token_opens_and_a_cookie_keeps_open(app: Guard) -> None:
    """The cookie is no token, is kept from scripts, and is never sent from another site."""
    answer = await asked(app, f"/?token={quote(TOKEN)}")
    cookie = answer.headers["set-cookie"]
    assert answer.status == 200
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert f"blastdoor_{PORT}=" in cookie
    assert TOKEN not in cookie
    assert (await asked(app, "/api/campaigns", headers=await cookie_of(app))).body == b"in"


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/?token=",
        "/?token=wrong",
        f"/?token={quote(TOKEN)}&token={quote(TOKEN)}",
        f"/api/campaigns?token={quote(TOKEN)}",
        f"/?{'a&' * 30}token={quote(TOKEN)}",
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


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
async def test_nothing_but_looking(app: Guard, method: str) -> None:
    assert (await asked(app, "/api/campaigns", method=method, headers=await cookie_of(app))).status == 405


async def test_another_site_is_answered_nothing(app: Guard) -> None:
    """Even with the cookie, as an old browser might send it."""
    cookie = await cookie_of(app)
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert (await asked(app, "/api/campaigns", headers=[*cookie, ("sec-fetch-site", site)])).status == status


async def test_every_answer_carries_the_policy(app: Guard) -> None:
    """Refusals, too. No inline script, no inline style, nothing from elsewhere, no frame."""
    for target in ("/", f"/?token={quote(TOKEN)}"):
        answer = await asked(app, target)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("value", ["\x00", "\r\nset-cookie: x=1", "ü" * 400, "=;=;", f"blastdoor_{PORT}=\xff"])
async def test_a_cookie_of_another_is_none(app: Guard, value: str) -> None:
    """Bytes of any kind are compared and refused, and come back in no header."""
    answer = await asked(app, "/api/campaigns", headers=[("host", HOST), ("cookie", value)])
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


async def test_a_long_address_is_refused(app: Guard) -> None:
    cookie = await cookie_of(app)
    assert (await asked(app, f"/api/campaigns?{'a' * 9000}", headers=cookie)).status == 414
