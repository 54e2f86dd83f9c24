"""Asks a function again what it was asked before, and more: what it answers each time alike is what a judge can know of
it. Standard library only, Python 3.9 up. The plan names the module, the function, the file of
its recorded calls, and how many seconds of work all questions together should be; of a Node package, the file and the
name that it exports. Where it has `more`, questions that somebody else thought of, the file is a pool as it is written
here, and gets those of them that fit.

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
from blastdoor_node import Served
from blastdoor_same import same
from blastdoor_values import Malformed, NotPlain, decode
from blastdoor_vary import Varied

_OUT = Path(os.environ.get("BLASTDOOR_OUT", "."))
_CALL_S = 5.0
_NEW_CALL_S = 1.0
_BLOCK_S = 3.0
_MOST_CALLS = 6000
_MOST_BYTES = 3 << 20
_ENOUGH_RECORDED = 24
# Beyond the work that is wanted, up to so many times as much: a judge that times only what everybody knows would time
# a table of answers.
_LEAST_MADE = 32
_MOST_WORK = 4
# So many draws in a row that bring nothing new: there are no more to be had.
_MOST_VAIN = 1000
_ROUNDS = 7
_MEASURED_S = 10.0
_OURS = Path(tempfile.mkdtemp())
_PART = _OURS / "pool"
_TOTALS = _OURS / "totals"


class _TooLong(Exception):
    """A call that nobody waits for."""


class _Imported:
    """A function of this process's own, with the times of its calls; Served is one of another."""

    together = 1

    def __init__(self, module: str, name: str) -> None:
        self._function = found(module, name)

    def ready(self) -> None:
        """It always is."""

    def one(self, arguments: list[Any], keywords: dict[str, Any]) -> list[Any]:
        """Whether it answered, the answer or the name of the error, and the seconds."""
        began = time.perf_counter()
        answer = one(self._function, arguments, keywords)
        return [*answer, time.perf_counter() - began]

    def each(self, questions: list[Any]) -> list[Any]:
        return [self.one(*it) for it in questions]


def _named(plan: dict[str, Any]) -> Any:
    return Served(*plan["node"]) if "node" in plan else _Imported(plan["module"], plan["function"])


def _pool(plan: dict[str, Any]) -> None:
    """In the child: recorded calls first, then new ones, each written as soon as it is known."""
    function = _named(plan)
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
        enough, most = count + _LEAST_MADE, max(work, plan["work"]) * _MOST_WORK
        vain = 0 if kept else _MOST_VAIN
        while count < _MOST_CALLS and size < _MOST_BYTES and work < (most if count < enough else plan["work"]):
            if vain >= _MOST_VAIN:
                break
            entries = _asked_together(function, _drawn(origin, seen, function.together))
            vain = 0 if entries else vain + function.together
            for entry in entries:
                size += _write(file, entry)
                work += entry[4]
                count += 1


def _more(plan: dict[str, Any]) -> None:
    """In the child: what is known, then those of the questions of somebody else that are new, are of the kinds of a
    known call, and are answered. They are no secret, so they do not count as made.
    """
    known = decode_exact(Path(plan["calls"]).read_bytes())
    with _PART.open("ab", buffering=0) as file:
        for entry in known:
            _write(file, entry)
        function = _named(plan)
        seen, kinds = {encode_exact(it[:2]) for it in known}, {_kinds(*it[:2]) for it in known}
        work = 0.0
        for told in plan["more"]:
            try:
                question: list[Any] = [
                    [_plain(it) for it in told[0]],
                    {name: _plain(it) for name, it in told[1].items()},
                ]
                data = encode_exact(question)
            except (NotPlain, ValueError, TypeError):
                continue
            if data in seen or _kinds(*question) not in kinds:
                continue
            seen.add(data)
            asked = _asked(function, data, True)
            if asked and work + asked[4] <= plan["work"] and len(encode_exact(asked)) < _MOST_BYTES >> 4:
                _write(file, [*asked[:5], False])
                work += asked[4]


def _kinds(arguments: list[Any], keywords: dict[str, Any]) -> tuple[Any, ...]:
    return (*map(type, arguments), *((name, type(keywords[name])) for name in sorted(keywords)))


def _plain(told: Any) -> Any:
    """The value of what was written as JSON. Raises ValueError and TypeError for what is none."""
    if type(told) is list:
        return [_plain(it) for it in told]
    if type(told) is not dict:
        return told
    if len(told) == 1:
        ((name, value),) = told.items()
        if name == "$bytes":
            return bytes.fromhex(value)
        if name in ("$tuple", "$set"):
            return (tuple if name == "$tuple" else set)(_plain(it) for it in value)
    return {name: _plain(it) for name, it in told.items()}


def _drawn(origin: Varied, seen: set[bytes], most: int) -> list[bytes]:
    """So many new questions at most, none of which was drawn before."""
    found = []
    for _ in range(most):
        try:
            asked = encode_exact(list(origin.draw()))
        except NotPlain:
            continue
        if asked not in seen and len(asked) < _MOST_BYTES >> 4:
            seen.add(asked)
            found.append(asked)
    return found


def _asked_together(function: Any, block: list[bytes]) -> list[list[Any]]:
    """Those that are answered alike twice. Where the way to a function takes longer than its calls, many go at once;
    one that takes too long costs all of them.
    """
    if function.together == 1:
        return [entry for data in block if (entry := _asked(function, data, True))]
    try:
        first, second = (
            _bounded(function, lambda: function.each([decode_exact(data) for data in block]), _BLOCK_S)
            for _ in range(2)
        )
    except (_TooLong, NotPlain, Malformed, MemoryError, RecursionError):
        return []
    both = zip(block, first, second)  # noqa: B905  # as many answers as questions
    alike = [it for it in both if it[1][0] is True and it[2][0] is True and same(it[1][1], it[2][1])]
    return [[*decode_exact(data), *one[:2], min(one[2], two[2]), True] for data, one, two in alike]


def _asked(function: Any, data: bytes, wanted: bool | None) -> list[Any] | None:
    """One call as the pool has it, if a second one answers alike and the arguments stay; `wanted` is True where an
    error is of no use, as for every one that is made here.
    """
    arguments, keywords = decode_exact(data)[:2]
    before = encode_exact([arguments, keywords])
    try:
        limit = _CALL_S if wanted is None else _NEW_CALL_S
        well, answer, seconds = _bounded(function, lambda: function.one(arguments, keywords), limit)
        if wanted is not None and well is not wanted:
            return None
        if encode_exact([arguments, keywords]) != before:
            return None
        again, kept = decode_exact(data)[:2]
        *second, took = _bounded(function, lambda: function.one(again, kept), limit)
        entry = [*decode_exact(before), well, answer, min(seconds, took), wanted is True]
        answer = decode_exact(encode_exact([well, answer]))
        return entry if same(answer, decode_exact(encode_exact(second))) else None
    except (_TooLong, NotPlain, Malformed, MemoryError, RecursionError):
        return None


def _bounded(function: Any, ask: Callable[[], list[Any]], limit: float) -> list[Any]:
    function.ready()
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return ask()
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
    function = _named(plan)
    pool = list(_parts())
    totals: list[float] = []
    until = time.monotonic() + _MEASURED_S
    while len(totals) < _ROUNDS and (not totals or time.monotonic() < until):
        questions = [decode_exact(data)[:2] for data in pool]
        totals.append(sum(it[2] for it in function.each(questions)))
        # Each as soon as it is known: who is ended before the last round has measured the others.
        part = _TOTALS.with_suffix(".part")
        part.write_text(json.dumps(totals), encoding="utf-8")
        part.rename(_TOTALS)


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
    _in_child(_more if "more" in plan else _pool, plan, plan["seconds"])
    _in_child(_measure, plan, plan["seconds"])
    pool = [decode_exact(data) for data in _parts()]
    (_OUT / "pool.bin").write_bytes(encode_exact(pool))
    told = {
        "recorded": 0 if "more" in plan else len(decode(Path(plan["calls"]).read_bytes())),
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
