"""Programs and servers of the tests that get news."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WRITES = """#!{python}
import os, sys
with open({into!r}, "a") as file:
    file.write(sys.stdin.read())
with open({into!r} + ".names", "w") as file:
    file.write("\\n".join(os.environ))
"""


def writing_program(folder: Path) -> tuple[Path, Path]:
    """A program that appends what it gets to a file, and that file."""
    program, into = folder / "tell", folder / "news.jsonl"
    program.write_text(WRITES.format(python=sys.executable, into=str(into)))
    program.chmod(0o755)
    return program, into


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@contextmanager
def hook(*answers: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of a server that gives these answers in turn, the last one for ever, and what it was sent."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            answer = answers[min(len(got), len(answers)) - 1]
            self.send_response(answer)
            if answer in (301, 302, 307, 308):
                self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Sequence[object]) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook?token=s3cret", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
