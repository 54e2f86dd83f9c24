"""The tests of a task of Harbor, read: whether they only look at files that a candidate left, or run what it wrote.

In doubt they run it: a verdict of the tier `data` must not rest on a guess.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import basename

from orchestrator.change import shown
from orchestrator.importing.dockerfile import commands_of, installs
from orchestrator.importing.packages import KNOWN
from orchestrator.importing.source import Source
from orchestrator.importing.survey import dotted
from orchestrator.judge.unsafe import unsafe_loaders

SCRIPT = "tests/test.sh"
# Words of the shell before a command, and commands that only look, say or install.
_BEFORE = {"if", "then", "else", "elif", "do", "while", "!", "{", "}", "(", "time", "exec", "env", "command"}
_HARMLESS = {
    "[", "[[", "case", "cat", "cd", "chmod", "cmp", "curl", "date", "diff", "done", "echo", "esac", "exit", "false",
    "fi", "grep", "head", "jq", "local", "ls", "md5sum", "mkdir", "printf", "pwd", "return", "rm", "set", "sha256sum",
    "shopt", "sleep", "sort", "tail", "tee", "test", "touch", "true", "unset", "uv", "wc", "wget",
}  # fmt: skip
_WITHIN = re.compile(r"(?:[$<>]\(|`)\s*([^\s)`(]*)")
_INSTALLED = re.compile(r"(\$HOME|\$\{HOME\}|~|/root)/\.(local|cargo)/(bin/)?env")
_PYTHON = re.compile(r"python[0-9.]*")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_WITH = {"-w", "--with", "--from"}
_SKIPPED = {"-p", "--python", *_WITH}
_STARTING = {
    "cffi", "ctypes", "imp", "importlib", "multiprocessing", "pexpect", "pty", "runpy", "subprocess", "zipimport",
}  # fmt: skip
_TALKING = {
    "aiohttp", "http", "httpx", "paramiko", "psutil", "psycopg2", "redis", "requests", "socket", "urllib",
}  # fmt: skip
_CALLS = re.compile(
    r"(^|\.)(system|popen|exec[lv]p?e?|posix_spawn|spawn[lv]p?e?|__import__|exec|eval|compile|import_module)$"
)
# Folders of the machine itself, which is read-only in a chamber.
_MACHINE = re.compile(r"/(etc|root|home|var|opt|srv|run)(/[A-Za-z0-9_. -]+)*/?")


@dataclass
class Tests:
    """`why_shared` is empty where they only look at files; `outside` are paths that no candidate can write."""

    apt: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    why_shared: str = ""
    outside: str = ""


def read_tests(source: Source, root: str) -> Tests:
    found = Tests()
    reasons = [*_in_shell(source, found, root)]
    own = {name.rpartition("/")[2].removesuffix(".py") for name in source.names if name.startswith("tests/")}
    for name in source.names:
        if name.startswith("tests/") and name.endswith(".py"):
            tree = source.python(name)
            reasons += _in_python(name, tree, own, found)
            reasons += [f"{it.path}:{it.line} {it.what}" for it in unsafe_loaders({name: source.read(name)})]
            found.outside = found.outside or next(_outside(name, tree, root), "")
        elif name.startswith("tests/") and name != SCRIPT and name.endswith((".sh", ".js", ".ts", ".rb", ".pl")):
            reasons.append(f"{name} may run anything")
    found.why_shared = reasons[0] if reasons else ""
    found.apt = [it for it in dict.fromkeys(found.apt) if it not in ("curl", "wget", "ca-certificates")]
    return found


def _in_shell(source: Source, found: Tests, root: str) -> Iterator[str]:
    """Why the script runs what a candidate left, if it does; what it installs is added to what was found."""
    text, before = source.text(SCRIPT), ""
    for inner in _WITHIN.findall(text):
        if inner not in _HARMLESS and not inner.startswith("("):
            yield f"{SCRIPT} starts {shown(inner, 60)} within another line"
    for words in commands_of(text):
        # An installer that was fetched: here nothing is fetched, so it is empty.
        fetched, before = before in ("curl", "wget") and words in (["sh"], ["bash"]), words[0]
        if not fetched and (why := _started(words, found, root)):
            yield f"{SCRIPT} {why}"


def _started(words: list[str], found: Tests, root: str) -> str:
    """What one command does that lets a candidate's files run; empty where it does not."""
    said = shown(" ".join(words), 60)
    while words and (words[0] in _BEFORE or _ASSIGNED.match(words[0])):
        if words[0].startswith(("PYTHON", "PATH=", "LD_", "BASH")):
            return f"sets {said}"
        words = words[1:]
    if not words:
        return ""
    if (given := installs(words)) is not None:
        found.apt += given.apt
        found.pip += given.pip
        return ""
    if words[0] in ("source", "."):
        return "" if len(words) > 1 and _INSTALLED.fullmatch(words[1]) else f"reads commands: {said}"
    if words[0] == "export":
        return f"sets {said}" if root in said or any(it.startswith(("PYTHON", "LD_", "BASH")) for it in words) else ""
    if (rest := _tool(words, found)) is not None:
        return "" if _of_tests(rest, root) else f"starts {said}"
    return "" if words[0] in _HARMLESS else f"starts {said}"


def _tool(words: list[str], found: Tests) -> list[str] | None:
    """What pytest or Python is given, where that is what is started, and then what brings it is noted."""
    if words[0] in ("uvx", "uv"):
        words = words[1:] if words[0] == "uvx" else words[2:] if words[1:2] == ["run"] else []
        while words and words[0].startswith("-"):
            if words[0] in _WITH and len(words) > 1:
                found.pip += words[1].split(",")
            words = words[2 if words[0] in _SKIPPED else 1 :]
        if not words:
            return None
    if _PYTHON.fullmatch(words[0]):
        words = words[2:] if words[1:2] == ["-m"] and words[2:3] == ["pytest"] else words[1:]
        if not words or words[0] != "pytest":
            return words
    if basename(words[0]) != "pytest":
        return None
    if not any(re.match(r"pytest([=<>~!]|$)", it) for it in found.pip):
        found.pip.append("pytest")
    return words[1:]


def _of_tests(words: list[str], root: str) -> bool:
    """Whether what is started is the tests' own."""
    files = [it for it in words if not it.startswith("-")]
    named = [it for it in files if it.startswith(("/tests", "$TEST_DIR", "${TEST_DIR"))]
    return bool(named) and not any(it.startswith((root, "./", "..")) for it in files)


def _in_python(name: str, tree: ast.Module, own: set[str], found: Tests) -> Iterator[str]:
    for node in ast.walk(tree):
        modules: list[str] = []
        at = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            modules = [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules = [(node.module or "").partition(".")[0]]
        elif isinstance(node, ast.Call) and _CALLS.search(called := dotted(node.func)) and called != "re.compile":
            yield f"{name}:{node.lineno} calls {called}"
        elif isinstance(node, ast.Attribute) and dotted(node).endswith("sys.path"):
            yield f"{name}:{node.lineno} changes where modules are found"
        for module in modules:
            if module in _STARTING or module in _TALKING:
                what = "starts programs or loads code" if module in _STARTING else "talks to a running program"
                yield f"{name}:{at} imports {module}: it {what}"
            elif module not in sys.stdlib_module_names and module not in own and module != "pytest":
                if module in KNOWN:
                    found.pip.append(KNOWN[module])
                else:
                    yield f"{name}:{at} imports {module}, which may be the candidate's"


def _outside(name: str, tree: ast.Module, root: str) -> Iterator[str]:
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if _MACHINE.fullmatch(text) and not f"{text}/".startswith(f"{root}/"):
            yield f"{name}:{getattr(node, 'lineno', 0)} looks at {text}"
