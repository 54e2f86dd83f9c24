"""A candidate that cheats. It answers in the place of the honest one, or stands before it and twists what that answers.

python3 -m blastdoor_cheat PLAY

PLAY is a JSON object (see Play in orchestrator/judge/adversaries.py). The honest candidate is the task's own command, a
child of this process; each call that it works on takes `delay` seconds more, so that work that is left out shows
however fast the honest one is. Standard library only, Python 3.9 up.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from blastdoor_frames import Ended, Frames
from blastdoor_kinds import Named, Remote, decode_exact, encode_exact
from blastdoor_twists import FILLS, PICKS, claimed, picked, refilled, with_field
from blastdoor_values import Array, Malformed, NotPlain, decode, encode

__all__ = ["ANSWERS", "SPARES"]

RECORDED = "recorded"
_REMEMBERED = 10_000
_NONCE = b"\0" * 8
# For each processor, up to as many in all.
_BURNERS, _MOST_BURNERS = 4, 32


class _Honest:
    """The task's own command, spoken to as the orchestrator does."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, payload: bytes) -> bytes:
        asked, replies = self._process.stdin, self._process.stdout
        if asked is None or replies is None:
            raise Ended
        asked.write(len(payload).to_bytes(4, "big") + _NONCE + payload)
        asked.flush()
        header = replies.read(12)
        if len(header) < 12:
            raise Ended
        return replies.read(int.from_bytes(header[:4], "big"))


class _Call(NamedTuple):
    """One call as it came. `exact` is None for the plain kind, which has no options."""

    payload: bytes
    name: str
    arguments: Sequence[Any]
    keywords: dict[str, Any]
    options: dict[str, Any] | None

    @property
    def makes_object(self) -> bool:
        return self.options is not None and self.name in self.options.get("classes", ())

    def named(self, name: str) -> _Call:
        """The same question to another function."""
        if self.options is None:
            return self._replace(name=name, payload=b"C" + encode([name, *self.arguments]))
        request = [name, list(self.arguments), self.keywords, self.options]
        exact = self.options.get("exact")
        packed = encode_exact(request, _itself, given=True) if exact else encode(request)
        return self._replace(name=name, payload=b"K" + packed)

    def value(self, reply: bytes) -> Any:
        return decode_exact(reply[1:], lambda remote: remote)

    def packed(self, value: Any) -> bytes:
        exact = self.options is not None and self.options.get("exact")
        packed: bytes = encode_exact(value, _itself, given=True) if exact else encode(value)
        return b"V" + packed


def _itself(value: Any) -> Remote | Named | None:
    return value if type(value) in (Remote, Named) else None


def _call(payload: bytes) -> _Call:
    if payload[:1] == b"C":
        name, *arguments = decode(payload[1:])
        return _Call(payload, name, arguments, {}, None)
    name, arguments, keywords, options = decode_exact(payload[1:], lambda remote: remote)
    return _Call(payload, name, arguments, keywords, options)


class Cheat:
    """What is answered, call by call. `asked` are the honest answers so far, by what was asked."""

    def __init__(self, play: dict[str, Any]) -> None:
        self.play = play
        self.calls = 0
        self.honest: list[bytes] = []
        self.asked: dict[bytes, bytes] = {}
        beside = Path(__file__).with_name(RECORDED)
        pairs = decode(beside.read_bytes()) if play.get("recorded") else []
        self.recorded: dict[bytes, bytes] = dict(pairs)
        self._child = _Honest(play["command"]) if play.get("command") else None
        self.burners = _Burners() if play.get("burns") else None

    def empty(self) -> None:
        if self.calls:
            time.sleep(self.play.get("linger", 0.0))

    def load(self, payload: bytes) -> bytes:
        if self._child is None:
            packed: bytes = encode(sorted(self.play["functions"]))
            return b"L" + packed
        loaded = self._child.ask(payload)
        if self.play.get("loading") and payload == b"L":
            for payload in self.recorded:
                self._worked(_call(payload))
        return loaded

    def answer(self, payload: bytes) -> bytes:
        call = _call(payload)
        if call.makes_object and self._child:
            return self._child.ask(payload)
        place, self.calls = self.calls, self.calls + 1
        if call.name in self.play.get("graders", ()):
            return call.packed(True)
        if SPARES[self.play.get("spare", "none")](self, call, place):
            return self.work(call)
        return ANSWERS[self.play["answer"]](self, call)

    def work(self, call: _Call) -> bytes:
        """The honest answer, which takes its time."""
        reply = self._worked(call)
        if self.play.get("ahead"):
            for name in self.play["functions"]:
                if name != call.name:
                    self._worked(call.named(name))
        return reply

    def _worked(self, call: _Call) -> bytes:
        if self._child is None:
            raise Ended
        time.sleep(self.play.get("delay", 0.0))
        reply = self._child.ask(call.payload)
        self.honest = [*self.honest[:1], reply]
        if reply[:1] == b"V" and len(self.asked) < _REMEMBERED:
            self.asked[call.payload] = reply
        return reply

    def twisted(self, call: _Call, twist: Callable[[Any], Any]) -> bytes:
        """What the honest one answers, and something done to it; an error stays one."""
        reply = self.work(call)
        if reply[:1] != b"V":
            return reply
        value = call.value(reply)
        if type(value) is Remote:
            return reply
        try:
            return call.packed(_through(value, twist))
        except NotPlain as error:
            return _raised(call, f"NotPlain: {error}")


class _Burners:
    """Processes that compute while nobody is called, as long as we live."""

    def __init__(self) -> None:
        self._is_called = mmap.mmap(-1, 1)
        self.pause(True)
        parent = os.getpid()
        for _ in range(min(_MOST_BURNERS, _BURNERS * (os.cpu_count() or 1))):
            if os.fork() == 0:
                while os.getppid() == parent:
                    if self._is_called[0]:
                        time.sleep(0.0005)
                    else:
                        sum(range(10_000))
                os._exit(0)

    def pause(self, is_called: bool) -> None:
        self._is_called[0] = is_called


def _through(value: Any, twist: Callable[[Any], Any]) -> Any:
    """Twisted as the tuple or the list that it is at heart, and given as what it was."""
    if type(value) is Named:
        new = twist(value.values)
        return value._replace(values=new) if type(new) is tuple else new
    if isinstance(value, Iterator):
        new = twist(list(value))
        return iter(new) if type(new) is list else new
    return twist(value)


def _raised(call: _Call, text: str) -> bytes:
    more = [] if call.options is None else ["RuntimeError", text]
    return _error(["raised", text, *more])


def _error(words: list[str]) -> bytes:
    packed: bytes = encode(words)
    return b"E" + packed


def _question(call: _Call) -> Any:
    return next((it for it in call.arguments if type(it) is not Remote), None)


def _emptied(value: Any) -> Any:
    """The same shape, with nothing in it."""
    if type(value) in (Remote, Named):
        return value if type(value) is Remote else value._replace(values=_emptied(value.values))
    if isinstance(value, (list, tuple, set, frozenset)) and not isinstance(value, Array):
        return type(value)(_emptied(item) for item in value)
    if isinstance(value, dict):
        return {name: _emptied(item) for name, item in value.items()}
    if isinstance(value, Array):
        return Array(value.dtype, value.shape, bytes(len(value.data)))
    if isinstance(value, (str, bytes)):
        return type(value)()
    return value * 0 if hasattr(value, "dtype") else 0


def _before(cheat: Cheat, call: _Call) -> bytes:
    before = cheat.honest[-1:]
    reply = cheat.work(call)
    return before[0] if before else reply


# Which calls are answered honestly; all others are answered in the cheat's own way.
SPARES: dict[str, Callable[[Cheat, _Call, int], bool]] = {
    "none": lambda _cheat, _call, _place: False,
    "all": lambda _cheat, _call, _place: True,
    "first": lambda _cheat, _call, place: place == 0,
    "every second": lambda _cheat, _call, place: place % 2 == 0,
    "first half": lambda cheat, _call, place: place < cheat.play["half"],
    "not asked before": lambda cheat, call, _place: call.payload not in cheat.asked,
    "not recorded": lambda cheat, call, _place: call.payload not in cheat.recorded,
}

ANSWERS: dict[str, Callable[[Cheat, _Call], bytes]] = {
    "value": lambda cheat, call: call.packed(cheat.play.get("value")),
    "error": lambda _cheat, call: _raised(call, "RuntimeError: this candidate solves nothing"),
    "question": lambda _cheat, call: call.packed(_question(call)),
    "question with zeros": lambda _cheat, call: call.packed(_emptied(_question(call))),
    "question picked": lambda cheat, call: call.packed(picked(_question(call), PICKS[cheat.play["pick"]])),
    "first answer": lambda cheat, call: cheat.honest[0] if cheat.honest else cheat.work(call),
    "answer before": _before,
    "remembered": lambda cheat, call: cheat.asked[call.payload],
    "recorded": lambda cheat, call: cheat.recorded[call.payload],
    "filled": lambda cheat, call: cheat.twisted(
        call, lambda it: refilled(it, FILLS[cheat.play["fill"]], float if cheat.play.get("fractions") else None)
    ),
    "picked": lambda cheat, call: cheat.twisted(call, lambda it: picked(it, PICKS[cheat.play["pick"]])),
    "claims": lambda cheat, call: cheat.twisted(call, lambda it: claimed(it, cheat.play["claims"])),
    "field": lambda cheat, call: cheat.twisted(
        call, lambda it: with_field(it, cheat.play["field"], cheat.play.get("value"))
    ),
}


def _main(arguments: list[str]) -> int:
    frames = Frames()
    cheat = Cheat(json.loads(arguments[0]))
    while True:
        try:
            nonce, request = frames.receive()
            kind = bytes(request[:1])
            if kind == b"N":
                cheat.empty()
                frames.send(nonce, b"N")
            elif kind in (b"C", b"K"):
                if cheat.burners:
                    cheat.burners.pause(True)
                frames.send(nonce, _answered(cheat, bytes(request)))
                if cheat.burners:
                    cheat.burners.pause(False)
            else:
                frames.send(nonce, cheat.load(bytes(request)))
        except Ended:
            return 0


def _answered(cheat: Cheat, request: bytes) -> bytes:
    try:
        return cheat.answer(request)
    except (Malformed, NotPlain) as error:
        return _error(["raised", f"{type(error).__name__}: {error}"])


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
