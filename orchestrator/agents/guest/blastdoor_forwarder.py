"""What looks like the Messages API in an agent's chamber: a server on loopback, whose every request goes up and whose
answers come down. Standard library only, Python 3.9 up.
"""

from __future__ import annotations

import contextlib
import http.server
import itertools
import json
import queue
import select
import socket
import sys
import threading
from typing import Any

BATCH_BYTES = 8 << 20
LOOK_S = 0.5


class Post:
    """Messages that wait for the way up, and those who wait for an answer from there."""

    def __init__(self) -> None:
        self._up: list[Any] = []
        self._news = threading.Condition()
        self._waiting: dict[int, queue.Queue[Any]] = {}
        self._ids = itertools.count(1)

    def open(self) -> tuple[int, queue.Queue[Any]]:
        number = next(self._ids)
        answers: queue.Queue[Any] = queue.Queue()
        self._waiting[number] = answers
        return number, answers

    def close(self, number: int) -> None:
        self._waiting.pop(number, None)

    def send(self, message: list[Any]) -> None:
        with self._news:
            self._up.append(message)
            self._news.notify()

    def collect(self, seconds: float) -> list[Any]:
        """What waits, as soon as there is something; only so much at a time as fits into a frame."""
        with self._news:
            self._news.wait_for(lambda: self._up, seconds)
            count, size = 0, 0
            for message in self._up:
                size += _size(message)
                if count and size > BATCH_BYTES:
                    break
                count += 1
            taken, self._up = self._up[:count], self._up[count:]
            return taken

    def deliver(self, message: list[Any]) -> None:
        answers = self._waiting.get(message[1])
        if answers is not None:
            answers.put(message)


def _size(message: Any) -> int:
    if isinstance(message, (list, tuple)):
        return sum(map(_size, message))
    if isinstance(message, dict):
        return sum(len(name) + _size(value) for name, value in message.items())
    return len(message) if isinstance(message, (str, bytes)) else 8


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection of the agent's; as many requests as it likes, one after the other."""

    protocol_version = "HTTP/1.1"
    post: Post
    tools: Any
    body_bytes: int

    def log_message(self, *_: object) -> None:
        pass

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self._read_body()
        if body is None:
            self.send_error(413, "the request is too large")
            self.close_connection = True
        elif self.path.startswith("/blastdoor/"):
            code, text = self.tools(self.path.rpartition("/")[2], body.decode("utf-8", "replace"))
            self._answer(200, [["content-type", "application/json"]], [json.dumps([code, text]).encode()])
        else:
            self._forward(body)

    def _read_body(self) -> bytes | None:
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            return self._read_chunks()
        length = int(self.headers.get("content-length") or 0)
        return self.rfile.read(length) if length <= self.body_bytes else None

    def _read_chunks(self) -> bytes | None:
        body = b""
        while True:
            length = int(self.rfile.readline(1024).split(b";")[0], 16)
            if len(body) + length > self.body_bytes:
                return None
            body += self.rfile.read(length)
            self.rfile.readline(1024)
            if not length:
                return body

    def _forward(self, body: bytes) -> None:
        number, answers = self.post.open()
        headers = [[name.lower(), value] for name, value in self.headers.items()]
        self.post.send(["request", number, self.command, self.path, headers, body])
        try:
            head = self._next(answers)
            if head[0] == "head":
                self._answer(head[2], head[3], self._pieces(answers))
            else:
                self.close_connection = True
        except (ConnectionError, _Gone):
            self.post.send(["gone", number])
            self.close_connection = True
        finally:
            self.post.close(number)

    def _pieces(self, answers: queue.Queue[Any]) -> Any:
        while True:
            message = self._next(answers)
            if message[0] == "body":
                yield message[2]
            elif message[0] == "cut":
                raise _Gone
            else:
                return

    def _next(self, answers: queue.Queue[Any]) -> Any:
        """The next message, unless the one who asked has gone away meanwhile."""
        while True:
            with contextlib.suppress(queue.Empty):
                return answers.get(timeout=LOOK_S)
            if select.select([self.connection], [], [], 0)[0]:
                peeked = self.connection.recv(1, socket.MSG_PEEK)
                if not peeked:
                    raise _Gone

    def _answer(self, status: int, headers: list[list[str]], pieces: Any) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        if self.command == "HEAD":  # the next answer begins where this head ends
            self.end_headers()
            for _ in pieces:
                pass
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class _Gone(Exception):
    """Nobody waits for the answer any more."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        sys.stderr.write(f"blastdoor: a request was not understood: {sys.exc_info()[1]!r}\n")
