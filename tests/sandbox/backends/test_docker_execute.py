"""The output of a command in a container, from an engine of ours that sends it as a quick one may."""

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sandbox.backends.docker.engine import EXECUTE_BYTES, Engine

HANG_S = 60
FRAME_BYTES = 1000
EXIT_CODE = 7


def framed(output: bytes) -> bytes:
    pieces = [output[start : start + FRAME_BYTES] for start in range(0, len(output), FRAME_BYTES)]
    return b"".join(struct.pack(">BxxxI", 1, len(piece)) + piece for piece in pieces)


@contextmanager
def engine_that_sends_at_once(output: bytes, status: str) -> Iterator[Engine]:
    """The head of the answer and the whole output, in one write."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = f'{{"ApiVersion": "1.45", "Id": "made", "ExitCode": {EXIT_CODE}}}'.encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if self.path.endswith("/start"):
                self.wfile.write(f"HTTP/1.1 {status}\r\n\r\n".encode() + framed(output))
                self.close_connection = True
            else:
                self.do_GET()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        engine = Engine(f"tcp://127.0.0.1:{server.server_port}")
        try:
            yield engine
        finally:
            engine.close()
            server.shutdown()
            thread.join()


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
    with engine_that_sends_at_once(output, status) as engine:
        heard = await asyncio.wait_for(engine.execute("it", ["true"], {}), HANG_S)
    assert heard == (EXIT_CODE, output[-EXECUTE_BYTES:])
