"""The tests of a task of Harbor, read: whether they only look at files that a candidate left, or run what it wrote.

Only what is on fixed lists counts as looking. In doubt they run it: a verdict of the tier `data` must not rest on a
guess.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.change import shown
from orchestrator.importing.dockerfile import installs
from orchestrator.importing.harbor_python import PythonTests
from orchestrator.importing.shell import SUBSTITUTED, Command, NotRead, read_shell
from orchestrator.importing.source import Source
from orchestrator.judge.unsafe import unsafe_loaders

SCRIPT = "tests/test.sh"
# Words of the shell before a command, and commands that only look, say or install whatever they are given.
_BEFORE = {"if", "then", "else", "elif", "!"}
_HARMLESS = {
    "cat", "cd", "chmod", "cmp", "curl", "date", "diff", "echo", "exit", "false", "fi", "grep", "head", "jq", "ls",
    "md5sum", "mkdir", "pwd", "rm", "sha256sum", "sleep", "tail", "touch", "true", "wc", "wget",
}  # fmt: skip
_WRITTEN = re.compile(r"/logs/[A-Za-z0-9_./-]+|/dev/null")
_INSTALLED = re.compile(r"(\$HOME|\$\{HOME\}|~|/root)/\.(local|cargo)/(bin/)?env")
_INSTALLED_PATH = re.compile(r"(\$HOME|\$\{HOME\}|/root)/\.(local|cargo)/bin:(\$PATH|\$\{PATH\})")
_PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")
_PYTEST = re.compile(r"pytest((==|@)[0-9.]+)?")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# Variables that decide what is started, or what Python, pytest and the shell load.
_STEERING = re.compile(r"PATH|CDPATH|HOME|ENV|IFS|PS4|SHELLOPTS|TEST_DIR|(LD_|BASH|PYTHON|PYTEST|UV_|COV_).*")
_ONLY_TALK = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONHASHSEED", "PYTHONUTF8"}
_OF_TESTS = re.compile(r"(/tests|\$TEST_DIR|\$\{TEST_DIR(:-/tests)?\})(/[A-Za-z0-9_.*-]+)*/?(::[A-Za-z0-9_:]+)?")
# What an installer builds from a folder or reads from a file, instead of taking it by name.
_BUILT = re.compile(r"[./~$]|.*/|-e|-r|-c|--(editable|requirement|constraint|find-links)")
_WITH = {"-w", "--with", "--from"}
_UV_FLAGS = {"-q", "--quiet", "--isolated", "--no-cache", "--no-project", "--refresh"}
_PYTEST_FLAGS = re.compile(
    r"-[vqsxl]+|-r[A-Za-z]*|--tb=[a-z]+|--color=[a-z]+|--durations=[0-9]+|--maxfail=[0-9]+|--json-report|--no-header"
    r"|(--ctrf|--json-report-file|--junitxml|--junit-xml)=/logs/[A-Za-z0-9_./-]+"
)
_PYTEST_FILES = {"--ctrf", "--json-report-file", "--junitxml", "--junit-xml"}
# Operators of [[ that calculate, and so run what stands in a variable.
_CALCULATING = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"}
# Folders of the machine itself, which is read-only in a chamber.
_MACHINE = re.compile(r"/(etc|root|home|var|opt|srv|run)(/[A-Za-z0-9_. -]+)*/?")


@dataclass
class Tests:
    """`why_shared` is empty where they only look at files; `outside` are paths that no candidate can write."""

    apt: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    why_shared: str = ""
    outside: str = ""


def read_tests(source: Source, root: str, env: Mapping[str, str] | None = None, copied: Collection[str] = ()) -> Tests:
    """`env` are variables that the tests get, `copied` files that lie where they are in both chambers, read-only."""
    found = Tests()
    reasons = [
        f"the tests get {it}, which steers what they load" for it, value in (env or {}).items() if _sets(it, value)
    ]
    reasons += _in_shell(source, found)
    own = {name.rpartition("/")[2].removesuffix(".py") for name in source.names if name.startswith("tests/")}
    for name in source.names:
        if name.startswith("tests/") and name.endswith(".py"):
            tree = source.python(name)
            reader = PythonTests(name, tree, own)
            reasons += reader.reasons()
            found.pip += reader.pip
            reasons += [f"{it.path}:{it.line} {it.what}" for it in unsafe_loaders({name: source.read(name)})]
            found.outside = found.outside or next(_outside(name, tree, root, copied), "")
        elif name.startswith("tests/") and name != SCRIPT and name.endswith((".sh", ".js", ".ts", ".rb", ".pl")):
            reasons.append(f"{name} may run anything")
    found.why_shared = reasons[0] if reasons else ""
    found.apt = [it for it in dict.fromkeys(found.apt) if it not in ("curl", "wget", "ca-certificates")]
    return found


def _steers(variable: str) -> bool:
    return bool(_STEERING.fullmatch(variable)) and variable not in _ONLY_TALK


def _in_shell(source: Source, found: Tests) -> Iterator[str]:
    """Why the script runs what a candidate left, if it does; what it installs is added to what was found."""
    commands: list[Command] = []
    not_read = ""
    try:
        commands.extend(read_shell(source.text(SCRIPT)))
    except NotRead as error:
        not_read = str(error)
    numbers, before = _numbers(commands), list[str]()
    for command in commands:
        command.loose = [it for it in command.loose if it not in numbers]
        # An installer that was fetched: here nothing is fetched, so it is empty.
        fetched = before[:1] in (["curl"], ["wget"]) and command.before == "|"
        if not (fetched and command.words in (["sh"], ["bash"])) and (why := _reason(command, found)):
            yield f"{SCRIPT} {why}"
        before = command.words
    if not_read:
        yield f"{SCRIPT} has a construct that is not read: {shown(not_read, 60)}"


def _numbers(commands: list[Command]) -> set[str]:
    """Variables that only ever are exit codes, or numbers that stand there: they stay one word."""
    found: dict[str, bool] = {}
    for word in (word for command in commands for word in command.words):
        if assigned := _ASSIGNED.fullmatch(word):
            is_number = assigned[2] == "$?" or assigned[2].isdecimal()
            found[assigned[1]] = found.get(assigned[1], True) and is_number
    return {text for name, is_number in found.items() if is_number for text in (f"${name}", f"${{{name}}}")}


def _reason(command: Command, found: Tests) -> str:
    said = shown(" ".join(command.words), 60)
    for inner in command.within:
        if _reason(inner, found) or not inner.words or inner.words[0] not in _HARMLESS:
            return f"starts {shown(' '.join(inner.words), 60)} within another line"
    if wrong := next((it for it in command.writes if not _WRITTEN.fullmatch(it) or ".." in it), None):
        return f"writes {shown(wrong, 60)}"
    words, at = command.words, 0
    while at < len(words) and words[at] in _BEFORE:
        at += 1
    while at < len(words) and (assigned := _ASSIGNED.fullmatch(words[at])):
        if _sets(assigned[1], assigned[2]):
            return f"sets {said}"
        at += 1
    return _started(words[at:], command, found, said) if words[at:] else ""


def _sets(name: str, value: str) -> bool:
    """Whether it steers what is loaded; the folder that installers of tools use is our own."""
    if name == "PATH":
        return not _INSTALLED_PATH.fullmatch(value)
    if name == "TEST_DIR":
        return value not in ("/tests", "${TEST_DIR:-/tests}")
    return _steers(name)


def _started(words: list[str], command: Command, found: Tests, said: str) -> str:
    """What one command does that lets a candidate's files run; empty where it does not."""
    first, rest = words[0], words[1:]
    if (given := installs(words)) is not None and not command.loose:
        if any(_BUILT.match(it) for it in rest):
            return f"builds {said}"
        found.apt += given.apt
        found.pip += given.pip
        return ""
    if first in ("source", "."):
        return "" if len(rest) == 1 and _INSTALLED.fullmatch(rest[0]) else f"reads commands: {said}"
    if first == "export":
        set_here = [_ASSIGNED.fullmatch(it) for it in rest]
        return "" if all(it and not _sets(it[1], it[2]) for it in set_here) else f"sets {said}"
    safe = _only_looks(first, rest, loose=bool(command.loose))
    if not safe and (given_to := _tool(words, found)):
        tool, arguments = given_to
        safe = _own_tests(arguments) if tool == "pytest" else _own_script(arguments)
    return "" if safe else f"starts {said}"


def _only_looks(first: str, rest: list[str], *, loose: bool) -> bool:
    """What a variable has may become options, or names that the shell calculates with, where it is not in quotes."""
    if first in ("echo", "cat"):
        return True
    if first in ("[", "test"):
        several = {"-a", "-o"} & {*rest} and any("$" in it for it in rest if it != "$?")
        return not (loose or several or "-v" in rest)
    if first == "[[":
        return not _CALCULATING & {*rest} or not any("$" in it for it in rest if it != "$?")
    if first == "printf":
        return bool(rest) and not rest[0].startswith("-") and "$" not in rest[0]
    if first == "tee":
        return all(it == "-a" or _WRITTEN.fullmatch(it) for it in rest) and ".." not in "".join(rest)
    if first == "set":
        return all(re.fullmatch(r"[-+][euxo]+|pipefail", it) for it in rest)
    if first == "uv":
        return rest[:1] in (["venv"], ["init"], ["sync"], ["--version"]) and not loose
    return first in _HARMLESS and not loose


def _tool(words: list[str], found: Tests) -> tuple[str, list[str]] | None:
    """pytest or python and what it is given, where that is what is started; what brings it is noted."""
    if words[0] in ("uvx", "uv"):
        skipped = 1 if words[0] == "uvx" else 2 if words[1:2] == ["run"] else 3 if words[1:3] == ["tool", "run"] else 0
        words = words[skipped:] if skipped else []
        while words and words[0].startswith("-"):
            if words[0] in _WITH and len(words) > 1:
                found.pip += words[1].split(",")
            elif words[0] not in ("-p", "--python", *_UV_FLAGS):
                return None
            words = words[1 if words[0] in _UV_FLAGS else 2 :]
    if words and _PYTHON.fullmatch(words[0]):
        if words[1:3] != ["-m", "pytest"]:
            return "python", words[1:]
        words = words[2:]
    if not words or not _PYTEST.fullmatch(words[0]):
        return None
    if not any(re.match(r"pytest([=<>~!]|$)", it) for it in found.pip):
        found.pip.append("pytest")
    return "pytest", words[1:]


def _own_tests(words: list[str]) -> bool:
    """Whether pytest is given nothing but the tests' own files, and options that load nothing."""
    files = 0
    while words:
        if words[0] in _PYTEST_FILES:
            if not _WRITTEN.fullmatch("".join(words[1:2])) or ".." in words[1]:
                return False
            words = words[1:]
        elif _of_tests(words[0]):
            files += 1
        elif not _PYTEST_FLAGS.fullmatch(words[0]) or ".." in words[0]:
            return False
        words = words[1:]
    return files > 0


def _own_script(words: list[str]) -> bool:
    """Whether Python is given a file of the tests; what follows is text for it."""
    while words and words[0] in ("-u", "-B"):
        words = words[1:]
    return bool(words) and _of_tests(words[0]) and words[0].endswith(".py") and "*" not in words[0]


def _of_tests(word: str) -> bool:
    return bool(_OF_TESTS.fullmatch(word)) and ".." not in word and SUBSTITUTED not in word


def _outside(name: str, tree: ast.Module, root: str, copied: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        folder = f"{text.rstrip('/')}/"
        there = text in copied or any(path.startswith(folder) for path in copied)
        if _MACHINE.fullmatch(text) and not there and not folder.startswith(f"{root}/"):
            yield f"{name}:{getattr(node, 'lineno', 0)} looks at {text}"
