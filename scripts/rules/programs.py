"""Every program that we start on a machine is known, with the package that brings it, before a test needs it.

As far as it can be read: the first word of what Python and shell scripts run.
"""

import ast
import re
from collections.abc import Iterator

import distribution
from orchestrator.python_source import parse_python

FOLDERS = ("orchestrator", "sandbox", "scripts", "tests", "benchmarks")
# Ours, and what is taken where it is found and never asked for.
OTHERS = {"blastdoor", "uv"}
_RUN = frozenset(["run", "Popen", "check_output", "check_call", "call"])  # of subprocess
_START = frozenset(["create_subprocess_exec", "execv", "execvp", "execvpe", "which", "program", "require"])
_STARTS = re.compile(rf"\bsubprocess\.|\b({'|'.join(sorted(_START))})\(")
# Words that a shell knows itself, and those after which a command begins.
_OF_THE_SHELL = (
    "case cd command do done echo elif else esac eval exec exit export fi for if in printf read return set shift test "
    "then trap true umask unset wait while"
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WORD = re.compile(r"[a-z][a-z0-9.+-]*")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""", re.DOTALL)
_BEGINS = re.compile(r"(?:^|[;|&({!]|\b(?:do|then|else|elif|if|while|exec)\s)\s*@?(?=([^\s;|&(){}<>]+))", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*(\w+)\(\)", re.MULTILINE)


def findings(name: str, source: str) -> Iterator[tuple[int, str]]:
    """Unknown programs, but for what runs inside of chambers, where the image says which there are."""
    if "/guest/" not in name:
        for word in sorted(called_by_python(source) - set(distribution.PACKAGES) - OTHERS):
            yield 1, f"starts {word}: add it to PACKAGES in scripts/distribution.py, and to NEEDED if a test needs it"


def called_by_python(source: str) -> set[str]:
    """What is computed further away than a name of the same function, or of the file, is not seen."""
    if not _STARTS.search(source):
        return set()  # to parse every file takes half a minute
    tree = parse_python(source)
    if not tree:
        raise SyntaxError(source[:200])
    shared = _bindings(ast.Module([node for node in tree.body if not isinstance(node, _SCOPES)], []))
    return set().union(*(_called_within(scope, shared) for scope in _scopes(tree)))


def _scopes(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _scopes(node)
        else:
            yield node


def _called_within(scope: ast.stmt, shared: dict[str, list[ast.expr]]) -> set[str]:
    known = shared | _bindings(scope)
    found: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and (starter := _starter(node.func)):
            for argument in node.args if starter == "require" else node.args[:1]:
                found |= _first_words(argument, known, depth=3)
    return found


def _starter(function: ast.expr) -> str:
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    owner = function.value if isinstance(function, ast.Attribute) else None
    of_subprocess = isinstance(owner, ast.Name) and owner.id == "subprocess"
    return name if name in _START or (name in _RUN and of_subprocess) else ""


def _bindings(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """What each name of a file may stand for; for the name of a loop, the members of what it runs through."""
    known: dict[str, list[ast.expr]] = {}
    loops: list[tuple[str, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    known.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            loops.append((node.target.id, node.iter))
    for name, through in loops:
        several = known.get(through.id, []) if isinstance(through, ast.Name) else [through]
        for one in several:
            if isinstance(one, ast.List | ast.Tuple):
                known.setdefault(name, []).extend(one.elts)
    return known


def _first_words(node: ast.expr, known: dict[str, list[ast.expr]], depth: int) -> set[str]:
    match node:
        case ast.Constant(value=str(word)) if word:
            return {word}
        case (
            ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]) | ast.Starred(value=first) | ast.BinOp(left=first)
        ):
            return _first_words(first, known, depth)
        case ast.BoolOp(values=either):
            return set().union(*(_first_words(one, known, depth) for one in either))
        case ast.IfExp(body=one, orelse=other):
            return _first_words(one, known, depth) | _first_words(other, known, depth)
        case ast.Name(id=name) if depth:
            return set().union(*(_first_words(one, known, depth - 1) for one in known.get(name, [])))
    return set()


def called_by_shell(script: str) -> set[str]:
    """Of a script, and of the recipes of a Makefile."""
    plain = re.sub(r"\\\n", " ", re.sub(r"(?m)(^|\s)#.*$", "", script))
    # What stands in quotes is no command, but for what is run inside of them.
    plain = _QUOTED.sub(lambda quoted: " ".join(re.findall(r"\$\([^)]*\)", quoted[0])) or "QUOTED", plain)
    plain = re.sub(r"(?m)^\s*[\w*|]+\)", "", plain)  # the patterns of a case
    found = {word for word in _BEGINS.findall(plain) if _WORD.fullmatch(word)}
    return found - set(_OF_THE_SHELL.split()) - set(_FUNCTION.findall(plain))


def recipes(makefile: str) -> str:
    return "\n".join(line[1:].replace("$$", "$") for line in makefile.splitlines() if line.startswith("\t"))
