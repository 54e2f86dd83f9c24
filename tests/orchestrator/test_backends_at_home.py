"""What is true of one backend alone is said in its home: nothing else asks which backend it has before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.choices import BACKENDS

ROOT = Path(__file__).parents[2]
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


def _files() -> list[str]:
    found = (path for top in ("blastdoor", "orchestrator", "sandbox") for path in (ROOT / top).rglob("*.py"))
    names = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return [name for name in names if not name.startswith(HOMES)]


def test_nobody_asks_which_backend_it_is() -> None:
    """Outside the backends' homes there is no branch on a name, and no question for a class."""
    assert len(_files()) > 300
    sandboxed = tuple(name for name in NAMES if name not in RUNTIMES)
    found = {
        name: lines
        for name in _files()
        if (
            lines := branches(
                (ROOT / name).read_text(encoding="utf-8"), sandboxed if name.startswith("sandbox/") else NAMES
            )
        )
    }
    assert found == {}


@pytest.mark.parametrize(
    "line",
    [
        'if choice.backend == "docker": ...',
        'if choice.backend in ("modal", "skypilot"): ...',
        'later = site.name.startswith("skypilot")',
        'later = site.name.startswith("skypilot/")',
        'package = {"modal": "modal"}[name]',
        'lines = {("docker", "infra"): "means nothing"}',
        "if isinstance(config, ModalConfig | SkyPilotConfig): ...",
        "backend = cast(DockerBackend, backend)",
        "if type(config) is sandbox.DockerConfig: ...",
        'match backend:\n case "docker": ...',
        "match config:\n case DockerConfig(): ...",
    ],
)
def test_a_branch_is_found(line: str) -> None:
    """Each way to ask is seen."""
    assert branches(line)


def test_what_is_no_branch() -> None:
    """To hand a backend over, to look for a program or to name a default is no question."""
    code = (
        'config = DockerConfig(runtime="runc")\nwhich("docker")\nbackend: str = OWN_ENGINE\n"docker of others" == text'
    )
    assert branches(code) == []
