"""What is true of one backend alone is said in its home: nothing else asks which backend it has before it."""

import ast
from collections.abc import Iterator

from orchestrator.choices import BACKENDS

FOLDERS = ("blastdoor", "orchestrator", "sandbox")
# The machine is where one's own engine is installed and started: there "docker" is a program. Hosts are what attacks
# look at from outside: an engine's, or a runtime's.
HOMES = (
    "orchestrator/choices.py",
    "orchestrator/machine/",
    "orchestrator/wiring/backends/",
    "sandbox/attacks/hosts.py",
    "sandbox/backends/",
    "sandbox/config/",
)
NAMES = tuple(BACKENDS.built_in)
# Docker, Modal …: what their classes begin with, here and in the sandbox.
CLASSES = tuple(entry.code.rpartition(":")[2] for entry in BACKENDS.built_in.values())
ASKING = ("isinstance", "issubclass", "cast")
BEGINNING = ("startswith", "endswith", "removeprefix", "get")


# In the sandbox these are names of runtimes, which an engine has, too.
RUNTIMES = ("runc", "crun", "runsc")


def branches(code: str, names: tuple[str, ...] = NAMES) -> list[int]:
    """The lines that ask for a backend by its name or by its class."""
    if not any(name in code for name in (*names, *CLASSES)):
        return []
    return sorted({getattr(node, "lineno", 0) for node in ast.walk(ast.parse(code)) if any(_asks(node, names))})


def _asks(node: ast.AST, names: tuple[str, ...]) -> Iterator[bool]:
    match node:
        case ast.Compare():
            yield from (_is_named(part, names) for side in (node.left, *node.comparators) for part in ast.walk(side))
            yield from (_is_class(side) for side in (node.left, *node.comparators))
        case ast.Dict():
            yield from (_is_named(part, names) for key in node.keys if key for part in ast.walk(key))
        case ast.Subscript():
            yield _is_named(node.slice, names)
        case ast.MatchValue():
            yield _is_named(node.value, names)
        case ast.MatchClass():
            yield _is_class(node.cls)
        case ast.Call(func=ast.Name(id=name)) if name in ASKING:
            yield from (_is_class(part) for word in node.args for part in ast.walk(word))
        case ast.Call(func=ast.Attribute(attr=name)) if name in BEGINNING:
            yield from (_is_named(part, names) for word in node.args for part in ast.walk(word))


def _is_named(node: ast.AST, names: tuple[str, ...]) -> bool:
    """`skypilot`, and what the name of a site begins with: `skypilot/`."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and text.partition("/")[0] in names


def _is_class(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.startswith(CLASSES)
    return False


def findings(name: str, source: str) -> Iterator[tuple[int, str]]:
    """Branches on a name, and questions for a class, outside the backends' homes."""
    if not name.startswith(HOMES):
        names = tuple(it for it in NAMES if it not in RUNTIMES) if name.startswith("sandbox/") else NAMES
        yield from (
            (line, "asks which backend it has: say it in the backend's home") for line in branches(source, names)
        )
