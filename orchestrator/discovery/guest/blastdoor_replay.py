"""Asks a function again what it was asked before, and more: what it answers each time alike is what a judge can know of
it. Standard library only, Python 3.9 up. The plan names the module, the function, the file of
its recorded calls, and how many seconds of work all questions together should be.

    python3 -m blastdoor_replay plan.json     writes pool.bin and replay.json

The function works in a child, since nobody knows what it does with arguments that it never had: one that hangs, or
takes the process along, costs what is not yet written, and no more.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from blastdoor_batch import found, one
from blastdoor_kinds import decode_exact, encode_exact
from blastdoor_same import same
from blastdoor_values import Malformed, NotPlain, decode
from blastdoor_vary import Varied

_OUT = Path(os.environ.get("BLASTDOOR_OUT", "."))
_CALL_S = 5.0
_NEW_CALL_S = 1.0
_MOST_CALLS = 6000
_MOST_BYTES = 3 << 20
_ENOUGH_RECORDED = 24
_ROUNDS = 7
_MEASURED_S = 10.0
_OURS = Path(tempfile.mkdtemp())
_PART = _OURS / "pool"
_TOTALS = _OURS / "totals"


class _TooLong(Exception):
    """A call that nobody waits for."""


def _pool(plan: dict[str, Any]) -> None:
    """In the child: recorded calls first, then new ones, each written as soon as it is known."""
    function = found(plan["module"], plan["function"])
    raw = decode(Path(plan["calls"]).read_bytes())
    with _PART.open("ab", buffering=0) as file:
        work, size = 0.0, 0
        kept: list[bytes] = []
        # The seed is the host's secret: who has the tests, and this file, must not know what will be asked.
        rng = random.Random(plan["seed"])  # noqa: S311  # it makes questions, and nobody sees what else it draws
        rng.shuffle(raw)
        for data in raw:
            if work > plan["work"] and len(kept) >= _ENOUGH_RECORDED:
                break
            well, answer = decode_exact(data)[2:]
            entry = _asked(function, data, None)
            if entry and entry[2] is well and same(entry[3], answer):
                kept.append(data)
                size += _write(file, entry)
                work += entry[4]
        origin = Varied(lambda at: tuple(decode_exact(kept[at])[:2]), len(kept), rng.getrandbits(128))
        seen, count = set(kept), len(kept)
        while kept and count < _MOST_CALLS and size < _MOST_BYTES and work < plan["work"]:
            arguments, keywords = origin.draw()
            try:
                asked = encode_exact([arguments, keywords])
            except NotPlain:
                continue
            if asked in seen:
                continue
            seen.add(asked)
            entry = _asked(function, asked, True)
            if entry and len(asked) < _MOST_BYTES >> 4:
                size += _write(file, entry)
                work += entry[4]
                count += 1


def _asked(function: Callable[..., Any], data: bytes, wanted: bool | None) -> list[Any] | None:
    """One call as the pool has it, if a second one answers alike and the arguments stay; `wanted` is True where an
    error is of no use, as for every one that is made here.
    """
    arguments, keywords = decode_exact(data)[:2]
    before = encode_exact([arguments, keywords])
    try:
        began = time.perf_counter()
        limit = _CALL_S if wanted is None else _NEW_CALL_S
        well, answer = _bounded(function, arguments, keywords, limit)
        seconds = time.perf_counter() - began
        if wanted is not None and well is not wanted:
            return None
        if encode_exact([arguments, keywords]) != before:
            return None
        again = decode_exact(data)
        began = time.perf_counter()
        second = _bounded(function, again[0], again[1], limit)
        seconds = min(seconds, time.perf_counter() - began)
        entry = [*decode_exact(before), well, answer, seconds, wanted is True]
        answer = decode_exact(encode_exact([well, answer]))
        return entry if same(answer, decode_exact(encode_exact(second))) else None
    except (_TooLong, NotPlain, Malformed, MemoryError, RecursionError):
        return None


def _bounded(function: Callable[..., Any], arguments: Any, keywords: Any, limit: float) -> list[Any]:
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        answer: list[Any] = one(function, arguments, keywords)
        return answer
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _write(file: Any, entry: list[Any]) -> int:
    data = encode_exact(entry)
    file.write(struct.pack("<I", len(data)) + data)
    return len(data)


def _parts() -> Iterator[bytes]:
    """What the child wrote whole."""
    data, at = _PART.read_bytes() if _PART.exists() else b"", 0
    while at + 4 <= len(data):
        size = struct.unpack_from("<I", data, at)[0]
        if at + 4 + size > len(data):
            return
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _measure(plan: dict[str, Any]) -> None:
    """In a child of its own: how long all of them take, several times over."""
    function = found(plan["module"], plan["function"])
    pool = list(_parts())
    totals: list[float] = []
    while len(totals) < _ROUNDS and sum(totals) < _MEASURED_S:
        questions = [decode_exact(data)[:2] for data in pool]
        began = time.perf_counter()
        for arguments, keywords in questions:
            one(function, arguments, keywords)
        totals.append(time.perf_counter() - began)
    _TOTALS.write_text(json.dumps(totals), encoding="utf-8")


def _in_child(work: Callable[[dict[str, Any]], None], plan: dict[str, Any], seconds: float) -> None:
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.signal(signal.SIGALRM, _give_up)
            os.setpgid(0, 0)
            work(plan)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    until = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(0.02)


def _give_up(_number: int, _frame: Any) -> None:
    raise _TooLong


def _main(arguments: list[str]) -> int:
    plan = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    sys.path[:0] = [str(Path(root).resolve()) for root in plan["roots"]]
    sys.dont_write_bytecode = True
    _in_child(_pool, plan, plan["seconds"])
    _in_child(_measure, plan, plan["seconds"])
    pool = [decode_exact(data) for data in _parts()]
    (_OUT / "pool.bin").write_bytes(encode_exact(pool))
    told = {
        "recorded": len(decode(Path(plan["calls"]).read_bytes())),
        "pool": len(pool),
        "made": sum(it[5] for it in pool),
        "answers": len({encode_exact(it[3]) for it in pool if it[2]}),
        "bytes": (_OUT / "pool.bin").stat().st_size,
        "totals": json.loads(_TOTALS.read_text(encoding="utf-8")) if _TOTALS.exists() else [],
    }
    (_OUT / "replay.json").write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
