"""Runs the tests of a Node package with blastdoor_watch.cjs looking on, and asks its functions again. Standard library
only, Python 3.9 up.

    python3 -m blastdoor_node plan.json     writes node.json, and a file of calls for each function

The plan says which `tests` to run and how (`runner`, the words before the name of a file), for how many `seconds`, and
whose exports to watch (`files`). Everything written is the word of a stranger's code.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from blastdoor_kinds import decode_exact, encode_exact
from blastdoor_values import Malformed, encode

__all__ = ["Served"]

_OUT = Path(os.environ.get("BLASTDOOR_OUT", "."))
_HERE = Path(__file__).resolve().parent
_START = 'exec node "$@" 3<&0 4>&1 </dev/null >&2'
_MOST_FUNCTIONS = 60
_MOST_CALLS = 300
_MOST_BYTES = 3 << 20
_MOST_SEEN = 64 << 20
_MOST_HOT = 12
_FAILED = 200
_NONCE = b"\0" * 8


class Served:
    """A function of a package, in a process of its own: an error of it is an answer, by its name."""

    # So many questions are worth one way there and back.
    together = 64

    def __init__(self, file: str, name: str) -> None:
        self._words = ["sh", "-c", _START, "node", str(_HERE / "blastdoor_batch.cjs"), file, name]
        self._process: Any = None

    def ready(self) -> None:
        """It is started before anybody counts the time of a call. Raises Malformed."""
        if self._process is None:
            self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            if self._asked(b"L")[:1] != b"L":
                raise Malformed("it cannot be loaded")

    def one(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Whether it answered, the answer or the name of the error, and the seconds by its own clock. Raises Malformed
        where there is no answer that can be had.
        """
        return list(self.each([[arguments, keywords]])[0])

    def each(self, questions: list[Any]) -> list[Any]:
        self.ready()
        answer = self._asked(b"K" + encode_exact(["timed", [questions], {}, {}]))
        found = decode_exact(answer[1:])
        if answer[:1] != b"V" or type(found) is not list or len(found) != len(questions):
            raise Malformed("it gives no plain answer")
        return found

    def _asked(self, request: bytes) -> bytes:
        whole = False
        try:
            self._process.stdin.write(len(request).to_bytes(4, "big") + _NONCE + request)
            self._process.stdin.flush()
            size = int.from_bytes(self._process.stdout.read(12)[:4], "big")
            answer: bytes = self._process.stdout.read(size)
            whole = size > 0 and len(answer) == size
        except BrokenPipeError:
            pass
        finally:
            if not whole:  # one that was given up still works on what it was asked
                self._process.kill()
                self._process.wait()
                self._process = None
        if not whole:
            raise Malformed("it ended")
        return answer


def _tests(plan: dict[str, Any], until: float, env: dict[str, str]) -> dict[str, Any]:
    """File by file: one passes that ends with 0."""
    passed, failed = 0, list[str]()
    for at, name in enumerate(plan["tests"]):
        left = until - time.monotonic()
        if left <= 0:
            return {"passed": passed, "failed": failed + plan["tests"][at:], "cut": True}
        process = subprocess.Popen([*plan["runner"], name], env=env, start_new_session=True, stdin=subprocess.DEVNULL)
        try:
            good = process.wait(left) == 0
        except subprocess.TimeoutExpired:
            good = False
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        passed += good
        failed += [] if good else [name]
    return {"passed": passed, "failed": failed[:_FAILED], "cut": False}


class _Seen:
    """One function, over all processes that called it."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.errors = 0
        self.bytes = 0
        self.why = ""
        self.kept: dict[bytes, bytes] = {}
        self.spots: dict[tuple[str, int, str], float] = defaultdict(float)

    def add(self, told: dict[str, Any]) -> None:
        self.calls += told["calls"]
        self.seconds += told["seconds"]
        self.why = self.why or told["why"]
        for text in told["kept"]:
            data = base64.b64decode(text)
            found = decode_exact(data)
            key = encode_exact(found[:2])
            if key not in self.kept and len(self.kept) < _MOST_CALLS and self.bytes + len(data) <= _MOST_BYTES:
                self.kept[key] = data
                self.bytes += len(data)
                self.errors += not found[2]

    def told(self, file: str, name: str) -> dict[str, Any]:
        hot = sorted(self.spots.items(), key=lambda it: -it[1])[:_MOST_HOT]
        return {
            "file": file,
            "name": name,
            "calls": self.calls,
            "seconds": self.seconds,
            "why": self.why,
            "kept": len(self.kept) - self.errors,
            "hot": [[*place, seconds] for place, seconds in hot],
        }


def _merged(folder: Path) -> tuple[dict[tuple[str, str], _Seen], float]:
    """What all processes left; one that left no whole file counts as not seen."""
    found: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
    total, size = 0.0, 0
    for path in sorted(folder.glob("*.json")):
        size += path.stat().st_size
        if size > _MOST_SEEN:
            break
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            for it in told["functions"]:
                found[it["file"], it["name"]].add(it)
            for file, line, name, seconds, beneath in told["spots"]:
                total += seconds
                for owner in beneath:
                    found[owner[0], owner[1]].spots[file, line, name] += seconds
        except (ValueError, KeyError, TypeError, Malformed) as error:
            sys.stderr.write(f"{path.name}: {error}\n")
    return found, total


def _main(arguments: list[str]) -> int:
    plan_path = Path(arguments[0]).resolve()
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    folder = Path(tempfile.mkdtemp())
    env = {
        **os.environ,
        "BLASTDOOR_PLAN": str(plan_path),
        "BLASTDOOR_ROOT": str(Path.cwd()),
        "BLASTDOOR_SEEN": str(folder),
        "NODE_OPTIONS": f"--require={_HERE / 'blastdoor_watch.cjs'}",
    }
    began = time.monotonic()
    tests = _tests(plan, began + plan["seconds"], env)
    seconds = time.monotonic() - began
    found, total = _merged(folder)
    shutil.rmtree(folder, ignore_errors=True)
    most = sorted(found.items(), key=lambda it: -it[1].seconds)[:_MOST_FUNCTIONS]
    for number, (_, it) in enumerate(most):
        (_OUT / f"calls-{number}.bin").write_bytes(encode(list(it.kept.values())))
    told = {
        "seconds": seconds,
        "profiled": total,
        "tests": tests,
        "functions": [it.told(*names) for names, it in most],
    }
    (_OUT / "node.json").write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
