"""An engine of ours that takes a call and falls silent: before its answer, or in the middle of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from sandbox.backends.docker import engine as docker_engine
from sandbox.backends.docker.engine import Engine
from sandbox.errors import Unavailable
from tests.sandbox.backends.pretended_engine import Request, pretended_engine

TIMEOUT_S, HANG_S = 0.3, 20
Call = Callable[[Engine, Path], Awaitable[object]]


@contextmanager
def engine_that_falls_silent(at: str, *, begins: bool) -> Iterator[Engine]:
    """At calls whose path ends like that: with the beginning of an answer, or without one. It answers all others."""

    def answer(request: Request) -> None:
        request.take_in()
        if not request.path.partition("?")[0].endswith(at):
            request.say(204 if request.command == "DELETE" else 200)
            return
        if begins:
            request.send_response(200)
            request.send_header("transfer-encoding", "chunked")
            request.end_headers()
        request.fall_silent()

    with pretended_engine(answer, timeout=TIMEOUT_S, patience=2 * TIMEOUT_S) as engine:
        yield engine


def archive_in(folder: Path) -> Path:
    archive = folder / "archive.tar"
    archive.write_bytes(b"whatever")
    return archive


CALLS: dict[str, tuple[str, Call]] = {
    "attach": ("/attach", lambda engine, _: engine.attach("it")),
    "events": ("/events", lambda engine, _: engine.events("it")),
    "execute": ("/start", lambda engine, _: engine.execute("it", ["true"], {})),
    "commit": ("/commit", lambda engine, _: engine.commit("it", "name:tag", [])),
    "copy an image, out": ("/export", lambda engine, _: engine.copy_image("it", "name:tag", [], b"", {})),
    "copy an image, in": ("/images/create", lambda engine, _: engine.copy_image("it", "name:tag", [], b"", {})),
    "save an image": ("/get", lambda engine, folder: engine.save_image("it", folder / "image.tar")),
    "load an image": ("/load", lambda engine, folder: engine.load_image(archive_in(folder))),
    "copy into": ("/archive", lambda engine, folder: engine.put("it", "/folder", archive_in(folder))),
    "copy out of": ("/archive", lambda engine, folder: engine.get("it", "/folder", folder / "files.tar")),
    "logs": ("/logs", lambda engine, _: engine.logs("it")),
    "inspect": ("/json", lambda engine, _: engine.inspect("it")),
    "remove": ("/it", lambda engine, _: engine.remove("it")),
    "wait": ("/wait", lambda engine, _: engine.wait("it", TIMEOUT_S)),
}
# Their answers have no body that is waited for.
WITHOUT_A_BODY = ("attach", "copy into", "remove")
# The engine says nothing for as long as a command takes, or an image is large.
PATIENT = ("execute", "commit", "copy an image, in", "save an image", "load an image", "copy into")


@pytest.mark.parametrize(
    ("name", "begins"),
    [pytest.param(name, False, id=name) for name in CALLS]
    + [pytest.param(name, True, id=f"{name}, half an answer") for name in CALLS if name not in WITHOUT_A_BODY],
)
async def test_it_is_not_waited_for_for_ever(name: str, begins: bool, tmp_path: Path) -> None:
    """Whatever was asked, and however far the answer came."""
    at, call = CALLS[name]
    with engine_that_falls_silent(at, begins=begins) as engine, pytest.raises(Unavailable):
        await asyncio.wait_for(call(engine, tmp_path), HANG_S)


@pytest.mark.parametrize("name", PATIENT)
async def test_what_takes_long_is_waited_for_with_patience(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked by the client whose patience outlasts a large image."""
    at, call = CALLS[name]
    waits: list[float] = []
    send = docker_engine.Client.send

    def sent(client: docker_engine.Client, request: requests.PreparedRequest, **settings: object) -> requests.Response:
        if request.path_url.partition("?")[0].endswith(at):
            waits.append(client.timeout)
        return send(client, request, **settings)

    monkeypatch.setattr(docker_engine.Client, "send", sent)
    with engine_that_falls_silent(at, begins=False) as engine, pytest.raises(Unavailable):
        await asyncio.wait_for(call(engine, tmp_path), HANG_S)
    assert waits == [2 * TIMEOUT_S]
