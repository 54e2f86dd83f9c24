"""A program that is in another chamber, as a file that others can load. Standard library only, Python 3.9 up.

The file is a stub of two lines. Whatever loads it, by an import, by `exec` or in another Python that an evaluator
starts, finds the candidate's functions there, and each is a call through the door. A process that the evaluator started
reaches the one that has the door over a socket. Each load is one of the program, too, as it would be without a door: a
module of its own, and for a process that the evaluator started, a Python of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import Any

from blastdoor_carry import lay_out, run_elsewhere
from blastdoor_clock import clocks
from blastdoor_door import VALUE, Door, EvaluatorBroke, Load, Seen
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
from blastdoor_relay import BadReply, Handle, NoFunction, NotPlain
from blastdoor_source import note_load, note_other_load, placed

__all__ = ["attach", "carry", "opened", "opened_programs"]

STUB = "from blastdoor_stub import attach\nattach(globals())\n"
STUB_NAME = "blastdoor_program.py"
SOCKET = "BLASTDOOR_STUB_SOCKET"
FOLDER = "BLASTDOOR_STUB_FOLDER"
SEEN = "BLASTDOOR_STUB_SEEN"
# In front of `Class.name`: the class itself is asked (blastdoor_candidate).
OF_CLASS = "@"
CALL = "__call__"
_WORDS = 300
_ERRORS = {kind.__name__: kind for kind in (BadReply, NoFunction, NotPlain)}


def _seen() -> Seen:
    """In every process of the evaluator's."""
    return _parsed(os.environ.get(SEEN) or "[]")


@lru_cache(maxsize=1)
def _parsed(text: str) -> Seen:
    return Seen(*json.loads(text))


def _tuples() -> dict[str, Any]:
    made: dict[str, Any] = tuple_classes(_seen().tuples)
    return made


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

    _load: _Held

    def __new__(cls, name: str, bases: tuple[type, ...], contents: dict[str, Any]) -> _Class:
        if bases:
            raise TypeError(f"{bases[0].__name__} is the candidate's: no class can be derived from it here")
        return super().__new__(cls, name, bases, contents)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        return _calling(cls.__name__, cls._load)(*arguments, **keywords)

    def __instancecheck__(cls, it: Any) -> bool:
        kind = it._remote.kind if type(it) is _Object else ""
        return cls.__name__ in (kind, *_seen().bases.get(kind, ()))

    def __getattr__(cls, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"{name} of a candidate's class cannot be reached")
        return _calling(f"{OF_CLASS}{cls.__name__}.{name}", cls._load)


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
# In other processes: where each of them has its Python, and the lines by which it is known that they live.
_places: dict[int, int] = {}
_lines: list[socket.socket] = []


class _Held:
    """A load, as long as a function or a class of it is held."""

    def __init__(self, load: Load | None) -> None:
        self.load = load


def attach(namespace: dict[str, Any]) -> None:
    """Put the candidate's functions there; this is what a stub does. One that is started is the program, started."""
    if folder := os.environ.get(FOLDER):
        if namespace.get("__name__") != "__main__":
            raise ImportError("this program is started where the candidate is, and cannot be loaded")
        carry("python3", folder, PROGRAM)
    door = _own_door()
    note_load(sys._getframe(1))
    load = _Held(door.load() if door else None)
    if door:
        weakref.finalize(load, door.forget, load.load)
        functions, values = door.functions, door.values(load.load)
    else:
        load.load, functions, values = _loaded()
    namespace.update({**_tuples(), **values})
    for name in functions:
        namespace[name] = _Class(name, (), {"_load": load}) if name in _seen().classes else _calling(name, load)
        if name not in _seen().classes:
            placed(namespace[name], name)
        # Pools of processes hand a function on by its name and that of its module.
        namespace[name].__module__ = str(namespace.get("__name__"))


def carry(name: str, folder: str, *first: str) -> None:
    """The whole life of a stand-in: the program of this name runs where the candidate is, with our command line."""
    os.environ[SOCKET] = str(Path(folder, "door"))
    argv = [name, *first, *sys.argv[1:]]
    ask = lambda function, *arguments: _asked([function, list(arguments), {}, None])  # noqa: E731
    sys.exit(run_elsewhere(ask, argv, Path(folder)))


def _own_door() -> Door | None:
    """None in a process that the evaluator started."""
    return _doors[-1] if _doors and _doors[-1].pid == os.getpid() else None


def _calling(name: str, held: _Held | None = None) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        door, load = _own_door(), held and held.load
        return (
            door.call(name, arguments, keywords, load)
            if door
            else _asked([name, list(arguments), keywords, load and tuple(load)])
        )

    call.__name__ = call.__qualname__ = name
    return _awaitable(call) if name in _seen().coroutines else call


def _awaitable(call: Callable[..., Any]) -> Callable[..., Any]:
    """In a thread of its own: an evaluator that stops waiting goes on, and its next call waits for this one."""

    @wraps(call)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:
        return await asyncio.to_thread(call, *arguments, **keywords)

    return awaited


def _asked(request: Any) -> Any:
    """From another process: one connection for one call."""
    with _line() as line:
        return _answered(line, request)


def _loaded() -> Any:
    """In another process, which has a Python of its own there for as long as a line of it is open."""
    line = _line()
    found = _answered(line, _places.get(os.getpid()))
    _lines.append(line)
    load = Load(*found[0])
    _places[os.getpid()] = load.place
    return load, *found[1:]


def _line() -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(os.environ[SOCKET])
    return line


def _answered(line: socket.socket, request: Any) -> Any:
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
    # Of whatever depth in an answer, and back in whatever argument.
    door.candidate.new_handle = _Object
    _lay_python(folder)
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
            with clocks():
                yield str(program)
        finally:
            door.end()
            # Wakes the thread that accepts; to close alone would leave it waiting.
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)


def _lay_python(folder: Path) -> None:
    """A `python` on the PATH, by which many evaluators start another one; there are images that have none."""
    if not shutil.which("python"):
        (folder / "python").mkdir()
        (folder / "python" / "python").symlink_to(sys.executable)
        os.environ["PATH"] = f"{os.environ.get('PATH', '/usr/bin:/bin')}:{folder / 'python'}"


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
        if type(request) is not list:
            note_other_load()
        answer = door.answer(request)
        try:
            _send(line, answer)
        except NotPlain as error:  # it is the candidate's: one level more, and it is too deep
            door.failures.append(f"{request[0] if request else 'the program'}: the answer cannot be sent on: {error}")
            _send(line, ["BadReply", door.failures[-1][:_WORDS]])
        if type(request) is not list and not answer[0]:
            line.recv(1)  # it lives
            door.forget_place(Load(*answer[1][0]))
