"""Serves a Python candidate to a judge that calls it. Standard library only, Python 3.9 up.

    python3 -m blastdoor_candidate solve.py        # the functions of solve.py, by their names

or, in a program of its own,

    from blastdoor_candidate import serve
    serve(solve=solve)

A function gets plain values and returns plain values; see docs/relay.md. What it prints goes to the log.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CoroutineType, ModuleType
from typing import Any

from blastdoor_frames import Ended, Frames
from blastdoor_kinds import ENUM, Named, Remote, decode_exact, error_name, exact_pieces, member_of, number_of_member
from blastdoor_values import Malformed, NotPlain, Writer, decode, encode

__all__ = ["serve", "serve_loaded"]

# In front of a name: the value that the module, or an object, has under it is asked for, and nothing is called.
VALUE = "="
# The one name of an object that begins with an underscore and may be asked for: it is called itself.
CALL = "__call__"
# In front of `Class.name`: the class itself is asked, and no object of it.
OF_CLASS = "@"
_INIT = "__init__.py"
_RELATIVE = re.compile(rb"^\s*from\s*\.", re.MULTILINE)
_WORDS = 500
# Of one place; the judge's module has the same number.
OBJECTS = 10_000
Functions = Mapping[str, Callable[..., Any]]


def serve(**functions: Callable[..., Any]) -> None:
    """Answer calls of these functions until nobody calls any more."""
    serve_loaded(lambda: functions)


def serve_loaded(load: Callable[[], Functions], again: Sequence[str] = (), place: int = 0) -> None:
    """The same with functions that are had only once somebody asks: what loading them prints goes to the log.

    `again` is the command of another Python that does the same, to which its place is added.
    """
    answer_all(Frames(), load, again, place)


def answer_all(frames: Frames, load: Callable[[], Functions], again: Sequence[str] = (), place: int = 0) -> None:
    loads = _Loads(load, again, place)
    while True:
        try:
            nonce, request = frames.receive()
        except Ended:
            return
        kind = bytes(request[:1])
        if kind == b"N":
            frames.send(nonce, b"N")
        elif kind in (b"C", b"K"):
            frames.send(nonce, *loads.answer(kind, request))
        elif kind == b"H":
            frames.send(nonce, b"H", _profile())
        else:
            frames.send(nonce, *loads.load(request))


def _profile() -> bytes:
    """What looks on in a run that is made for a profile; nothing in any other."""
    told = getattr(sys.modules.get("sitecustomize"), "profile", None)
    return bytes(told()) if told else b""


class Offered(dict):  # type: ignore[type-arg]  # its own functions, by their names
    """The functions that a file defines, and all that it holds."""

    def __init__(self, functions: Functions, contents: Mapping[str, Any]) -> None:
        super().__init__(functions)
        self.contents = contents


class _Child:
    """Another Python with the same program. It ends with us, or when its place is given up."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request: memoryview) -> list[Any]:
        asked, answers = self._process.stdin, self._process.stdout
        try:
            asked.write(len(request).to_bytes(4, "big") + bytes(8))  # type: ignore[union-attr]  # a pipe, see above
            asked.write(request)  # type: ignore[union-attr]
            asked.flush()  # type: ignore[union-attr]
            header = answers.read(12)  # type: ignore[union-attr]
        except OSError:
            header = b""
        if len(header) < 12:
            why = "the process of the program has ended"
            return [b"E", encode(["raised", why, "RuntimeError", why])]
        return [answers.read(int.from_bytes(header[:4], "big"))]  # type: ignore[union-attr]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


class _Loads:
    """The program as often as it was loaded: each time as a module of its own. A load of another place is in a Python
    of its own, as for a process that the judge's evaluator started.
    """

    def __init__(self, load: Callable[[], Functions], again: Sequence[str], place: int) -> None:
        self._load = load
        self._again = again
        self._place = place
        self._objects = _Objects(place * OBJECTS)
        self._loaded: dict[int, Functions] = {}
        self._children: dict[int, _Child] = {}
        # Of loads in these: in which.
        self._places: dict[int, int] = {}
        self._number = 0

    def load(self, request: memoryview) -> list[Any]:
        """Load it, or go back to an earlier load: number, place, and numbers of loads that nobody has any more. The
        first time nothing is said.
        """
        try:
            number, place, gone = decode(request[1:]) if len(request) > 1 else (0, self._place, [])
            for it in gone:
                self._forget(it)
            if place != self._place and self._again:
                self._places[number] = place
                if place not in self._children:
                    self._children[place] = _Child([*self._again, str(place)])
                answer = self._children[place].ask(request)
                self._number = number if answer[0][:1] == b"L" else self._number
                return answer
            if number not in self._loaded:
                self._loaded[number] = self._load()
            self._number = number
            return [b"L", encode(sorted(self._loaded[number]))]
        except BaseException as error:  # noqa: BLE001  whatever it is, it is told
            more = [error_name(error), _message(error)] if len(request) > 1 else []
            return _failed("raised", error, *more)

    def answer(self, kind: bytes, request: memoryview) -> list[Any]:
        if self._number in self._places:
            return self._children[self._places[self._number]].ask(request)
        functions = self._loaded.get(self._number, {})
        if kind == b"C":
            return _answer(functions, request[1:])
        return _answer_with_keywords(functions, self._objects, request[1:])

    def _forget(self, number: int) -> None:
        self._loaded.pop(number, None)
        place = self._places.pop(number, None)
        if place is not None and place not in self._places.values():
            self._children.pop(place).end()


class _Missing(Exception):
    """There is no function of that name."""


class _Objects:
    """What stays here and is known elsewhere by its number: objects of classes that the judge names, and members of
    enumerations that it has, too.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self.classes: frozenset[str] = frozenset()
        self.enums: frozenset[str] = frozenset()
        self.tuples: frozenset[str] = frozenset()
        # What the candidate's module holds; and classes of named tuples that it has elsewhere.
        self.contents: Mapping[str, Any] = {}
        self._tuple_classes: dict[str, Any] = {}
        self._kept: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, value: Any) -> Remote | Named | None:
        name = self._class_of(value)
        if not name and isinstance(value, tuple) and type(value).__qualname__ in self.tuples:
            self._tuple_classes[type(value).__qualname__] = type(value)
            return Named(type(value).__qualname__, tuple(value))
        if not name:
            member: Remote | None = number_of_member(value, self.enums)
            return member
        if id(value) not in self._numbers:
            if len(self._kept) >= OBJECTS:
                raise NotPlain(f"more than {OBJECTS} objects that the judge holds")
            self._numbers[id(value)] = self._first + len(self._kept)
            self._kept.append(value)
        return Remote(name, self._numbers[id(value)])

    def object(self, remote: Remote | Named) -> Any:
        if isinstance(remote, Named):
            kind = self.contents.get(remote.kind) or self._tuple_classes.get(remote.kind)
            return getattr(kind, "_make", tuple)(remote.values)
        if remote.kind.startswith(ENUM):
            return member_of(remote)
        at = remote.number - self._first
        if not 0 <= at < len(self._kept) or self._class_of(self._kept[at]) != remote.kind:
            raise Malformed("an object that is not known here")
        return self._kept[at]

    def _class_of(self, value: Any) -> str:
        """The first of its classes, from its own upwards, that the judge names; empty where it names none."""
        return next((it.__qualname__ for it in type(value).__mro__ if it.__qualname__ in self.classes), "")


def _answer(functions: Functions, request: memoryview) -> list[Any]:
    try:
        name, *arguments = decode(request)
        return [b"V", *Writer().pieces(_awaited(_named(functions, name)(*arguments)))]
    except BaseException as error:  # noqa: BLE001  even an exit is an answer: it raised
        return _refused(error)


def _answer_with_keywords(functions: Functions, objects: _Objects, request: memoryview) -> list[Any]:
    objects.contents = getattr(functions, "contents", {})
    try:
        name, arguments, keywords, options = decode_exact(request, objects.object)
        of_class, name = name.startswith(OF_CLASS), name.removeprefix(OF_CLASS)
        objects.classes, objects.enums, objects.tuples = (
            frozenset(options.get(it, ())) for it in ("classes", "enums", "tuples")
        )
        kind, dot, member = name.removeprefix(VALUE).partition(".")
        hidden = member.startswith("_") and member != CALL
        if dot and (kind not in objects.classes or hidden or not (arguments or of_class)):
            raise _Missing(f"there is no {kind}.{member}")
        if of_class:
            value = getattr(_named(functions, kind), member)(*arguments, **keywords)
        elif name.startswith(VALUE):
            value = getattr(arguments[0], member) if dot else _value_of(functions, kind)
        elif dot:
            value = getattr(arguments[0], member)(*arguments[1:], **keywords)
        else:
            value = _named(functions, name)(*arguments, **keywords)
        value, exact = _awaited(value), options["exact"]
        return [b"V", *(exact_pieces(value, objects.number, loose=True) if exact else Writer().pieces(value))]
    except BaseException as error:  # noqa: BLE001  as above
        return _refused(error, error_name(error), _message(error))


def _message(error: BaseException) -> str:
    """A KeyError's own text has its key in quotes; one that is made again would quote it twice."""
    return error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)


def _awaited(value: Any) -> Any:
    """What an async function gives in the end. All run on one loop: what they share may belong to it."""
    return _loop().run_until_complete(value) if isinstance(value, CoroutineType) else value


@lru_cache(maxsize=1)
def _loop() -> Any:
    return importlib.import_module("asyncio").new_event_loop()


def _value_of(functions: Functions, name: str) -> Any:
    """Of a name of the module that is no function: a number, a text, a table."""
    contents = getattr(functions, "contents", {})
    if name not in contents or name.startswith("_") or callable(contents[name]):
        raise _Missing(f"there is no value {name}")
    return contents[name]


def _named(functions: Functions, name: str) -> Callable[..., Any]:
    if name not in functions:
        raise _Missing(f"there is no function {name}; there are: {', '.join(sorted(functions)) or 'none'}")
    return functions[name]


def _refused(error: BaseException, *more: str) -> list[Any]:
    kinds = {_Missing: "missing", NotPlain: "not plain", Malformed: "malformed"}
    if type(error) not in kinds:
        return _failed("raised", error, *more)
    return [b"E", encode([kinds[type(error)], _plain(str(error)), *map(_plain, more)])]


def _failed(kind: str, error: BaseException, *more: str) -> list[Any]:
    """The whole story goes to the log, its last line to the caller."""
    traceback.print_exception(type(error), error, error.__traceback__)
    return [b"E", encode([kind, *map(_plain, (f"{type(error).__name__}: {error}", *more))])]


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()[:_WORDS]


def functions_of(path: Path) -> Functions:
    name, root = _name_of(path)
    # Files of a package are not found by their bare names: they may be called like modules of Python's own.
    folders = dict.fromkeys([*([str(path.parent)] if path.name != _INIT else []), str(root)])
    sys.path[:0] = [it for it in folders if it not in sys.path[: len(folders)]]
    if name in ("", path.stem):
        module = _loaded(path.stem, path)
    elif name in sys.modules:  # only the module itself is new in the same Python, and none that it imports
        module = _loaded(name, path)
    else:
        module = importlib.import_module(name)
    own = {
        it: value for it, value in vars(module).items() if not it.startswith("_") and _is_own(value, module, path.name)
    }
    return Offered(own, vars(module))


def _name_of(path: Path) -> tuple[str, Path]:
    """By which it can be imported from which folder, where it uses a package that it is in, in the working folder."""
    parts, folder = [] if path.name == _INIT else [path.stem], path.resolve().parent
    if parts and not _RELATIVE.search(path.read_bytes()):
        return path.stem, folder
    while folder != Path.cwd() and (folder / _INIT).is_file():
        parts, folder = [folder.name, *parts], folder.parent
    return ".".join(parts), folder


def _loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_own(it: Any, module: ModuleType, file: str) -> bool:
    """Whether the file, or the package that it stands for, defines it: what it imports is not for others to call."""
    of = str(getattr(it, "__module__", None))
    inside = file == _INIT and of.startswith(f"{module.__name__}.")
    return callable(it) and (of == module.__name__ or inside)


def _main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write("usage: python3 -m blastdoor_candidate FILE.py\n")
        return 2
    path = Path(arguments[0]).resolve()
    sys.argv = [str(path)]
    again = [sys.executable, "-m", "blastdoor_candidate", str(path)]
    serve_loaded(lambda: functions_of(path), again, *map(int, arguments[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
