"""Programs of ours as processes: words, an environment and streams of their own, and an exit code.

Each is forked from a process that did nothing but import: that takes more than a second of processor, and hundreds
are started. From there on it is as a fresh one, its end included. `FRESH` is what starts a fresh one.

The process that forks ends when nobody holds its socket any more.
"""

import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from orchestrator.views.commands import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[1]
BLASTDOOR = "orchestrator.views.cli:main"
WARM = ("orchestrator.views.failing", *(f"orchestrator.views.{it.code.partition(':')[0]}" for it in COMMANDS.values()))
WITH_MODELS = (*WARM, "orchestrator.llm.asking")  # as much again, and few need it
WITH_MODAL = (*WARM, "sandbox.backends.modal.engine")
FRESH = (sys.executable, "-c", "from orchestrator.views.cli import main; main()")
HANG_S = 600.0
_LONGEST = 1 << 20  # bytes of words and environment
_STREAMS = (0, 1, 2)


class Started:
    """A process at work. A stream that is not given is the null device; `stdout` of PIPE is read from `said`."""

    def __init__(
        self,
        *words: str | Path,
        program: str = BLASTDOOR,
        warm: tuple[str, ...] = WARM,
        env: Mapping[str, str] | None = None,
        stdin: IO[Any] | int | None = None,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
    ) -> None:
        asked = {
            "program": program,
            "words": [str(word) for word in words],
            "env": dict(os.environ if env is None else env),
            "folder": str(Path.cwd()),
        }
        ours, end = os.pipe()
        self.said = os.fdopen(ours)
        self._news, theirs = socket.socketpair()
        with theirs, Path(os.devnull).open("r+b") as null, os.fdopen(end, "wb") as pipe:
            wanted = (stdin, pipe if stdout == subprocess.PIPE else stdout, stderr)
            streams = [null if stream is None else stream for stream in wanted]
            numbers = [stream if isinstance(stream, int) else stream.fileno() for stream in streams]
            socket.send_fds(_forker(warm), [json.dumps(asked).encode()], [*numbers, theirs.fileno()])
        self.returncode: int | None = None
        self.pid = self._told(HANG_S)

    def wait(self, timeout: float = HANG_S) -> int:
        """Its exit code, or the negative number of the signal that ended it."""
        if self.returncode is None:
            self.returncode = self._told(timeout)
            self._news.close()
        return self.returncode

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._news], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _told(self, seconds: float) -> int:
        self._news.settimeout(seconds)
        return int.from_bytes(self._news.recv(8), signed=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        self.wait()
        self.said.close()


def completed(
    *words: str | Path,
    warm: tuple[str, ...] = WARM,
    env: Mapping[str, str] | None = None,
    timeout: float = HANG_S,
) -> subprocess.CompletedProcess[str]:
    """What it said and how it ended. One that does not end is ended, and the test with it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with Started(*words, warm=warm, env=env, stdout=out, stderr=err) as started:
            code = started.wait(timeout)
        texts = [_text(stream) for stream in (out, err)]
    return subprocess.CompletedProcess(words, code, *texts)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


@functools.cache
def _forker(warm: tuple[str, ...]) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-P", "-c", "from tests.started import serve; serve()", str(theirs.fileno()), *warm],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours


def serve() -> None:
    """For each request a child, in which this function goes on with the program."""
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()
    program = _fork_for(socket.socket(fileno=int(sys.argv[1])))
    module, _, name = program.partition(":")
    getattr(importlib.import_module(module), name)()


def _fork_for(asking: socket.socket) -> str:
    """Answer requests, each by a process that says what became of its child; in a child, return its program when
    all else is set up.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, numbers, _, _ = socket.recv_fds(asking, _LONGEST, len(_STREAMS) + 1)
        if not asked:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asking.close()
            if not (child := os.fork()):
                return _become(json.loads(asked), numbers)
            with socket.socket(fileno=numbers[-1]) as news:
                for number in numbers[:-1]:
                    os.close(number)
                news.send(child.to_bytes(8, signed=True))
                _, status = os.waitpid(child, 0)
                news.send(os.waitstatus_to_exitcode(status).to_bytes(8, signed=True))
            os._exit(0)
        for number in numbers:
            os.close(number)


def _become(asked: dict[str, Any], numbers: list[int]) -> str:
    for number, stream in zip(numbers[:-1], _STREAMS, strict=True):
        os.dup2(number, stream)
    for number in numbers:
        os.close(number)
    # What is known of a stream, and that it can be rewound, was known of another one.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - it stays open
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - so does this
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - and this
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["folder"])
    sys.argv[:] = ["blastdoor", *asked["words"]]
    return str(asked["program"])
