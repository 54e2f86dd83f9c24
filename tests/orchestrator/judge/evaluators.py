"""An evaluator that wants the path of a program, run by the module that a judge has for it.

The candidate is the real module that serves one, in a thread; between both stands a channel of queues.
"""

import importlib
import json
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from orchestrator.judge.guest.blastdoor_values import decode, encode

BY_SPEC = """
import importlib.util
import types

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program
"""
EVALUATE = (
    BY_SPEC
    + """
def evaluate(program_path):
    try:
        return {"combined_score": load(program_path).solve(20) + 1.5}
    except Exception as error:
        return {"combined_score": 0.0, "error": str(error)}
"""
)
Functions = dict[str, Callable[..., Any]]


class Channel:
    """The orchestrator as a judge sees it; what it wishes of the candidate goes there and comes back."""

    elapsed_s = 0.002

    def __init__(self, functions: "Functions | Callable[[], Functions]", again: Sequence[str] = ()) -> None:
        candidate = importlib.import_module("blastdoor_candidate")
        self.ended = importlib.import_module("blastdoor_frames").Ended
        self.finished: dict[str, bytes] | None = None
        self._asked: SimpleQueue[bytes | None] = SimpleQueue()
        self._answered: SimpleQueue[bytes] = SimpleQueue()
        served = _Served(self._asked, self._answered, self.ended)

        def serve() -> None:
            with suppress(self.ended):
                candidate.answer_all(served, functions if callable(functions) else lambda: functions, again)

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        names = decode(self.ask(b"L")[1:])
        self._next = b"B" + encode({"median": 0.001, "jitter": 0.001, "functions": names})

    def receive(self) -> tuple[bytes, memoryview]:
        return b"", memoryview(self._next)

    def send(self, _: bytes, *parts: bytes) -> None:
        wish = b"".join(parts)
        if wish[:1] == b"F":
            self.finished = decode(wish[1:])
        else:
            self._next = b"R" + struct.pack("<d", self.elapsed_s) + self.ask(wish)

    def ask(self, request: bytes) -> bytes:
        self._asked.put(request)
        return self._answered.get()

    def close(self) -> None:
        self._asked.put(None)
        self._thread.join()

    @property
    def result(self) -> dict[str, Any]:
        assert self.finished is not None
        found: dict[str, Any] = json.loads(self.finished["result.json"])
        return found


class _Served:
    """The candidate's end."""

    def __init__(self, asked: "SimpleQueue[bytes | None]", answered: "SimpleQueue[bytes]", ended: type) -> None:
        self._asked, self._answered, self._ended = asked, answered, ended

    def receive(self) -> tuple[bytes, memoryview]:
        request = self._asked.get()
        if request is None:
            raise self._ended
        return b"", memoryview(request)

    def send(self, _: bytes, *parts: bytes) -> None:
        self._answered.put(b"".join(parts))


Judge = Callable[..., Channel]


class Solver:
    """What a program may define."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def solve(self, x: float) -> float:
        return self.factor * x


def in_a_child(script: str) -> str:
    """An evaluator whose score is what another Python prints that has the program."""
    child = f"import runpy, sys\nprogram = runpy.run_path(sys.argv[1])\n{script}"
    return f"""
import subprocess, sys
def evaluate(program_path):
    told = subprocess.run([sys.executable, "-c", {child!r}, program_path], capture_output=True, check=True, timeout=300)
    return {{"combined_score": float(told.stdout)}}
"""
