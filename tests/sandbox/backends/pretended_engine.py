"""An engine of ours on loopback, which answers as the test says, and a client of it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sandbox.backends.docker.engine import Engine

ABOUT = {"ApiVersion": "1.45", "Id": "made"}


class Request(BaseHTTPRequestHandler):
    """`over` is set when the test has ended: until then one may be silent."""

    protocol_version = "HTTP/1.1"
    over: threading.Event

    def take_in(self) -> None:
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + len(b"\r\n"))
            self.rfile.readline()
        self.rfile.read(int(self.headers.get("content-length") or 0))

    def say(self, status: int = 200, answer: object = ABOUT) -> None:
        body = b"" if status == 204 else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fall_silent(self) -> None:
        self.over.wait()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """The client hung up."""


@contextmanager
def pretended_engine(answer: Callable[[Request], None], **of_client: float) -> Iterator[Engine]:
    """`answer` is given every request."""

    class Handler(Request):
        over = threading.Event()

        def do_GET(self) -> None:
            answer(self)

        do_POST = do_PUT = do_DELETE = do_GET

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        engine = Engine(f"tcp://127.0.0.1:{server.server_port}", **of_client)  # type: ignore[arg-type]  # no threads
        try:
            yield engine
        finally:
            Handler.over.set()
            engine.close()
            server.shutdown()
            thread.join()
