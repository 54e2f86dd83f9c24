"""A program that is in another chamber, as a file that others can load. Standard library only, Python 3.9 up.

The file is a stub of two lines. Whatever loads it, by an import, by `exec` or in another Python that an evaluator
starts, finds the candidate's functions there, and each is a call through the door. A process that the evaluator started
reaches the one that has the door over a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

from blastdoor_carry import lay_out, run_elsewhere
from blastdoor_judge import BadOutput
from blastdoor_kinds import (
    ENUM,
    Named,
    decode_exact,
    encode_exact,
    member_of,
    named_of,
    number_of_member,
    rebuilt,
    tuple_classes,
)
from blastdoor_programs import PROGRAM
from blastdoor_relay import BadReply, Candidate, Handle, NoFunction, NotPlain, Raised

__all__ = ["Door", "EvaluatorBroke", "Seen", "attach", "carry", "opened", "opened_programs"]

STUB = "from blastdoor_stub import attach\nattach(globals())\n"
STUB_NAME = "blastdoor_program.py"
SOCKET = "BLASTDOOR_STUB_SOCKET"
FOLDER = "BLASTDOOR_STUB_FOLDER"
SEEN = "BLASTDOOR_STUB_SEEN"
# In front of a name: what stands there is asked for, and nothing is called (blastdoor_candidate).
VALUE = "="
OF_CLASS = "@"
CALL = "__call__"
_WORDS = 300
# So many errors that led to one another are looked at; they can be made to lead in a circle.
_CHAIN = 100
_LOOK_S = 0.05
_ERRORS = {kind.__name__: kind for kind in (BadReply, NoFunction, NotPlain)}


class EvaluatorBroke(Exception):
    """The evaluator's own fault, or that of the way it was brought here: no verdict on the candidate."""


class Seen(NamedTuple):
    """What the import saw of the program: constants that the evaluator reads, enumerations in files that both have,
    fields that it reads of objects (`Class.name`), fields of named tuples by their class, functions and methods that
    are awaited, classes whose objects it holds, and those of them that one is made of.
    """

    constants: Sequence[str] = ()
    enums: Sequence[str] = ()
    fields: Sequence[str] = ()
    tuples: Mapping[str, Sequence[str]] = {}
    coroutines: Sequence[str] = ()
    classes: Sequence[str] = ()
    bases: Mapping[str, Sequence[str]] = {}


_NOTHING = Seen()


def _seen() -> Seen:
    """In every process of the evaluator's."""
    return _parsed(os.environ.get(SEEN) or "[]")


@lru_cache(maxsize=1)
def _parsed(text: str) -> Seen:
    return Seen(*json.loads(text))


def _tuples() -> dict[str, Any]:
    made: dict[str, Any] = tuple_classes(_seen().tuples)
    return made


class Door:
    """The candidate, for every thread of this process, and for other processes over a socket."""

    def __init__(self, candidate: Candidate, names: Sequence[str], seen: Seen = _NOTHING) -> None:
        self._candidate = candidate
        self.seen = seen
        # What was read of objects since the last call: a candidate says it once, and not otherwise the next time.
        self._read: dict[tuple[str, Any], Any] = {}
        # Of whatever depth in an answer, and back in whatever argument.
        candidate.new_handle = _Object
        self._lock = threading.Lock()
        self._ended = False
        self.pid = os.getpid()
        # Only what was asked for: a stub that is executed in the evaluator's own names must not replace others there.
        self.functions = [name for name in names if name in candidate.functions]
        self.calls = 0
        self.failures: list[str] = []
        # Errors of the candidate as the evaluator got them, and what was told of each.
        self.raised: list[tuple[Exception, str]] = []
        # Whether anything that the evaluator has is the candidate's word.
        self.asked = False
        self.unsendable: list[str] = []

    def call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        if not _may_be_interrupted():
            return self._call(name, arguments, keywords)
        # An alarm that raises in the middle would leave the answer in the channel, to be taken for that of the next
        # call. In a thread of its own the call goes on to its end, and the next one waits for it.
        answer: Future[Any] = Future()
        threading.Thread(target=self._call_into, args=(answer, name, arguments, keywords), daemon=True).start()
        # An alarm that goes off just before a wait begins is seen when the wait ends: so no wait is long.
        while not wait([answer], timeout=_LOOK_S).done:
            pass
        return answer.result()

    def _call_into(self, answer: Future[Any], *request: Any) -> None:
        try:
            answer.set_result(self._call(*request))
        except Exception as error:  # noqa: BLE001  it is the caller's
            answer.set_exception(error)

    def _call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        with self._lock:
            self._refuse_late(name)
            self.asked = True
            field = (name, arguments[0]) if name.startswith(VALUE) else None
            if field is None:
                self._read.clear()
            elif field in self._read:
                return self._read[field]
            try:
                value = self._candidate.value(name, *arguments, **keywords)
            except NotPlain as error:
                self.unsendable.append(f"{name}: {error}")
                raise
            except BadOutput as error:
                self.calls += 1
                self.failures.append(str(error))
                own = error.error if isinstance(error, Raised) else error
                self.raised.append((own, str(error)))
                raise own from None
            self.calls += 1
            if field:
                self._read[field] = value
            return value

    def told_of(self, error: BaseException) -> str:
        """What was told of the candidate's error that this one is, or that led to it; empty where none did."""
        left: BaseException | None = error
        for _ in range(_CHAIN):
            if left is None:
                break
            for own, told in self.raised:
                if own is left:
                    return told
            left = left.__cause__ or left.__context__
        return ""

    def text(self) -> bytes:
        """Of a program that is started; what it has is given before anything of it ran."""
        text = self._candidate.value("program")
        if type(text) is not bytes:
            raise BadReply("the candidate gave no program")
        return text

    def values(self) -> dict[str, Any]:
        """The constants that the program has, as they are now. That it lacks one is for the evaluator to notice."""
        found: dict[str, Any] = {}
        for name in self.seen.constants:
            with self._lock, contextlib.suppress(BadOutput):
                self._refuse_late(name)
                self.asked = True
                found[name] = self._candidate.value(VALUE + name)
        return found

    def _refuse_late(self, name: str) -> None:
        if self._ended:
            raise EvaluatorBroke(f"{name} was called after the evaluator had returned")

    def object(self, remote: Any) -> Any:
        """The candidate's of this number. Raises Malformed for a class that the judge did not name."""
        return self._candidate.found(remote)

    def end(self) -> None:
        """From here on nobody is called: the judge's own answer comes next. A late call of a thread is waited for."""
        with self._lock:
            self._ended = True

    def answer(self, request: Any) -> list[Any]:
        """What another process asked, as [kind, value or message]; an empty request asks for the names."""
        try:
            return ["", self.call(*request) if request else [self.functions, self.values()]]
        except Exception as error:  # noqa: BLE001  it is told to the process that called
            return [type(error).__name__, str(error)[:_WORDS]]


def _may_be_interrupted() -> bool:
    """Whether the evaluator has set an alarm; Python calls its function in the main thread only."""
    alarms = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and any(callable(signal.getsignal(it)) for it in alarms)


class _Object(Handle):  # type: ignore[misc]  # the module beside it has no types where this is checked
    """An object of the candidate's: its methods are calls like those of its functions, and so is a field of it."""

    __slots__ = ()
    _remote: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{name} of a candidate's object cannot be reached")
        member = f"{self._remote.kind}.{name}"
        if member in _seen().fields:
            return _calling(VALUE + member)(self)
        return partial(_calling(member), self)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """For another process of the evaluator's, and on the way back."""
        return _handed_on, (self._remote,)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return _calling(f"{self._remote.kind}.{CALL}")(self, *arguments, **keywords)


class _Class(type):
    """A class of the candidate's, which makes objects there. What it has itself is called there, too."""

    def __new__(cls, name: str, bases: tuple[type, ...], contents: dict[str, Any]) -> _Class:
        if bases:
            raise TypeError(f"{bases[0].__name__} is the candidate's: no class can be derived from it here")
        return super().__new__(cls, name, bases, contents)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        return _calling(cls.__name__)(*arguments, **keywords)

    def __instancecheck__(cls, it: Any) -> bool:
        kind = it._remote.kind if type(it) is _Object else ""
        return cls.__name__ in (kind, *_seen().bases.get(kind, ()))

    def __getattr__(cls, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"{name} of a candidate's class cannot be reached")
        return _calling(f"{OF_CLASS}{cls.__name__}.{name}")


def _number_of(value: Any) -> Any:
    if type(value) is _Object:
        return value._remote
    return named_of(value, _tuples()) or number_of_member(value, _seen().enums)


def _found(remote: Any) -> Any:
    """Where an answer comes from the judge's own process, which has seen to it that it may be had."""
    if isinstance(remote, Named):
        return remote.made(_tuples())
    return member_of(remote) if remote.kind.startswith(ENUM) else _Object(None, remote)


def _handed_on(remote: Any) -> Any:
    door = _own_door()
    return door.object(remote) if door else _found(remote)


_doors: list[Door] = []


def attach(namespace: dict[str, Any]) -> None:
    """Put the candidate's functions there; this is what a stub does. One that is started is the program, started."""
    if folder := os.environ.get(FOLDER):
        if namespace.get("__name__") != "__main__":
            raise ImportError("this program is started where the candidate is, and cannot be loaded")
        carry("python3", folder, PROGRAM)
    door = _own_door()
    functions, values = (door.functions, door.values()) if door else _asked([])
    namespace.update({**_tuples(), **values})
    for name in functions:
        namespace[name] = _Class(name, (), {}) if name in _seen().classes else _calling(name)
        # Pools of processes hand a function on by its name and that of its module.
        namespace[name].__module__ = str(namespace.get("__name__"))


def carry(name: str, folder: str, *first: str) -> None:
    """The whole life of a stand-in: the program of this name runs where the candidate is, with our command line."""
    os.environ[SOCKET] = str(Path(folder, "door"))
    argv = [name, *first, *sys.argv[1:]]
    sys.exit(run_elsewhere(lambda function, *arguments: _asked([function, list(arguments), {}]), argv, Path(folder)))


def _own_door() -> Door | None:
    """None in a process that the evaluator started."""
    return _doors[-1] if _doors and _doors[-1].pid == os.getpid() else None


def _calling(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        door = _own_door()
        return door.call(name, arguments, keywords) if door else _asked([name, list(arguments), keywords])

    call.__name__ = call.__qualname__ = name
    return _awaitable(call) if name in _seen().coroutines else call


def _awaitable(call: Callable[..., Any]) -> Callable[..., Any]:
    """In a thread of its own: an evaluator that stops waiting goes on, and its next call waits for this one."""

    @wraps(call)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:
        return await asyncio.to_thread(call, *arguments, **keywords)

    return awaited


def _asked(request: list[Any]) -> Any:
    """From another process: one connection for one call."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(os.environ[SOCKET])
        _send(line, request)
        kind, value = _received(line, _found)
    if kind:
        raise _ERRORS[kind](value) if kind in _ERRORS else rebuilt(kind, value)
    return value


def _send(line: socket.socket, value: Any) -> None:
    data = encode_exact(value, _number_of, given=True)
    line.sendall(struct.pack(">Q", len(data)) + data)


def _received(line: socket.socket, found: Callable[[Any], Any]) -> Any:
    """`found` makes an object of its number."""
    with line.makefile("rb") as file:
        header = file.read(8)
        if len(header) < 8:
            raise EvaluatorBroke("the judge's process is gone")
        return decode_exact(file.read(struct.unpack(">Q", header)[0]), found)


@contextlib.contextmanager
def opened(door: Door, folder: Path) -> Iterator[str]:
    """The path of a stub that leads here meanwhile, from this process and from those that it starts."""
    program, path = folder / STUB_NAME, str(folder / "door")
    program.write_text(STUB)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(64)
        threading.Thread(target=_serve, args=(listening, door), daemon=True).start()
        here = str(Path(__file__).resolve().parent)
        os.environ[SOCKET], os.environ[SEEN] = path, json.dumps(door.seen)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        _doors.append(door)
        try:
            yield str(program)
        finally:
            door.end()
            # Wakes the thread that accepts; to close alone would leave it waiting.
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def opened_programs(door: Door, folder: Path, beside: Path, names: Sequence[str], program: str) -> Iterator[str]:
    """The same for a program that is started, not loaded; `names` are those of the toolchain that runs it."""
    text = door.text()
    with opened(door, folder):
        os.environ[FOLDER] = str(folder)
        yield lay_out(folder, beside, names, program, text, STUB)


def _serve(listening: socket.socket, door: Door) -> None:
    while True:
        try:
            line, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_serve_one, args=(line, door), daemon=True).start()


def _serve_one(line: socket.socket, door: Door) -> None:
    with line, contextlib.suppress(OSError, EvaluatorBroke):
        request = _received(line, door.object)
        answer = door.answer(request)
        try:
            _send(line, answer)
        except NotPlain as error:  # it is the candidate's: one level more, and it is too deep
            door.failures.append(f"{request[0]}: the answer cannot be sent on: {error}")
            _send(line, ["BadReply", door.failures[-1][:_WORDS]])
