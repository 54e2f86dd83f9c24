"""The output of a command in a container, from an engine of ours that sends it as a quick one may."""

import asyncio

import pytest

from sandbox.backends.docker.engine import EXECUTE_BYTES
from tests.sandbox.backends.pretended_engine import Request, pretended_engine
from tests.sandbox.wire.streams import attached, pieces

HANG_S = 60
EXIT_CODE = 7


@pytest.mark.parametrize("status", ["101 UPGRADED", "200 OK"])
@pytest.mark.parametrize(
    "output",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"said in one word", id="short"),
        pytest.param(bytes(range(256)) * 48, id="12 KiB"),
        pytest.param(bytes(range(256)) * 1024, id="more than is kept"),
    ],
)
async def test_what_comes_with_the_head_is_heard(output: bytes, status: str) -> None:
    """A quick command's output may arrive together with the head of the engine's answer; none of it is lost."""

    def answer(request: Request) -> None:
        request.take_in()
        if request.path.endswith("/start"):
            framed = b"".join(attached(1, piece) for piece in pieces(output, 1000))
            request.wfile.write(f"HTTP/1.1 {status}\r\n\r\n".encode() + framed)
            request.close_connection = True
        else:
            request.say(200, {"ApiVersion": "1.45", "Id": "made", "ExitCode": EXIT_CODE})

    with pretended_engine(answer) as engine:
        heard = await asyncio.wait_for(engine.execute("it", ["true"], {}), HANG_S)
    assert heard == (EXIT_CODE, output[-EXECUTE_BYTES:])
