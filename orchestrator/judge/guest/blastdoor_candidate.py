"""Serves a Python candidate to a judge that calls it. Standard library only, Python 3.9 up.

    python3 -m blastdoor_candidate solve.py        # the functions of solve.py, by their names

or, in a program of its own,

    from blastdoor_candidate import serve
    serve(solve=solve)

A function gets plain values and returns plain values; see docs/relay.md. What it prints goes to the log.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from blastdoor_frames import Ended, Frames
from blastdoor_values import Malformed, NotPlain, decode, encode

__all__ = ["serve"]

_WORDS = 500
Functions = Mapping[str, Callable[..., Any]]


def serve(**functions: Callable[..., Any]) -> None:
    """Answer calls of these functions until nobody calls any more."""
    _answer_all(Frames(), lambda: functions)


def _answer_all(frames: Frames, load: Callable[[], Functions]) -> None:
    functions: Functions = {}
    while True:
        try:
            nonce, request = frames.receive()
        except Ended:
            return
        kind = bytes(request[:1])
        if kind == b"N":
            frames.send(nonce, b"N")
        elif kind == b"C":
            frames.send(nonce, *_answer(functions, request[1:]))
        else:
            try:
                functions = load()
                frames.send(nonce, b"L", encode(sorted(functions)))
            except BaseException as error:  # noqa: BLE001  whatever it is, it is told
                frames.send(nonce, *_failed("raised", error))


def _answer(functions: Functions, request: memoryview) -> tuple[bytes, bytes]:
    try:
        name, *arguments = decode(request)
        if name not in functions:
            known = ", ".join(sorted(functions)) or "none"
            return b"E", encode(["missing", f"there is no function {name}; there are: {known}"[:_WORDS]])
        return b"V", encode(functions[name](*arguments))
    except NotPlain as error:
        return b"E", encode(["not plain", str(error)[:_WORDS]])
    except Malformed as error:
        return b"E", encode(["malformed", str(error)[:_WORDS]])
    except BaseException as error:  # noqa: BLE001  even an exit is an answer: it raised
        return _failed("raised", error)


def _failed(kind: str, error: BaseException) -> tuple[bytes, bytes]:
    """The whole story goes to the log, its last line to the caller."""
    traceback.print_exception(type(error), error, error.__traceback__)
    line = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
    return b"E", encode([kind, line[:_WORDS]])


def _functions_of(path: Path) -> Functions:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return {name: it for name, it in vars(module).items() if not name.startswith("_") and _is_own(it, path.stem)}


def _is_own(it: Any, module: str) -> bool:
    """Whether the file defines it: what it imports is not for others to call."""
    return callable(it) and getattr(it, "__module__", None) == module


def _main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python3 -m blastdoor_candidate FILE.py\n")
        return 2
    path = Path(arguments[0]).resolve()
    sys.argv = [str(path)]
    _answer_all(Frames(), lambda: _functions_of(path))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
