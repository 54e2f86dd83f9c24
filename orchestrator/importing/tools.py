"""Programs that an evaluator starts for a candidate's program, and the Debian packages that bring them."""

import ast
import re
from collections.abc import Iterator, Sequence

from orchestrator.importing.clocks import dotted

# Debian's packages come from its own archive: none of these names can be taken by anybody else.
TOOLCHAINS: dict[str, tuple[str, ...]] = {
    "R": ("r-base-core",),
    "Rscript": ("r-base-core",),
    "awk": (),
    "bash": (),
    "c++": ("g++",),
    "cargo": ("cargo", "rustc"),
    "cc": ("gcc", "libc6-dev"),
    "clang": ("clang",),
    "clang++": ("clang",),
    "cmake": ("cmake", "make"),
    "g++": ("g++",),
    "gcc": ("gcc", "libc6-dev"),
    "gfortran": ("gfortran",),
    "ghc": ("ghc",),
    "go": ("golang-go",),
    "iverilog": ("iverilog",),
    "java": ("default-jre-headless",),
    "javac": ("default-jdk-headless",),
    "lua": ("lua5.4",),
    "make": ("make",),
    "node": ("nodejs",),
    "ocamlfind": ("ocaml-findlib", "ocaml"),
    "perl": ("perl",),
    "php": ("php-cli",),
    "ruby": ("ruby",),
    "rustc": ("rustc",),
    "sbcl": ("sbcl",),
    "sh": (),
    "swipl": ("swi-prolog-nox",),
    "tcc": ("tcc", "libc6-dev"),
    "vvp": ("iverilog",),
    "yosys": ("yosys",),
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+.-]*")
_R_PACKAGE = re.compile(r"(?:library|require)\((?:\"|')?([A-Za-z][A-Za-z0-9.]+)|\b([A-Za-z][A-Za-z0-9.]+)::[a-zA-Z]")
_R_OWN = {"base", "compiler", "datasets", "graphics", "grDevices", "grid", "methods", "parallel", "splines", "stats"}
_R_OWN |= {"stats4", "tcltk", "tools", "utils"}


def tools_of(trees: Sequence[ast.Module], started: Sequence[str]) -> list[str]:
    """Those that it starts, by their names: in a call, at the front of a list of words, or looked up on the PATH.
    Empty for an evaluator that starts nothing; where it cannot be told what it starts, one of them has no package.
    """
    found = [word for word in started if word != "python"]
    words = [word for tree in trees for word in _first_words(tree)]
    found += [word for word in words if word in TOOLCHAINS]
    if not found and any(_starts_something(tree) for tree in trees):
        found += [word for word in words if _NAME.fullmatch(word)][:1] or ["a program"]
    return list(dict.fromkeys(found))


def starts_python(tree: ast.Module) -> bool:
    """At the front of a list of words, wherever that is made."""
    firsts = [node.elts[0] for node in ast.walk(tree) if isinstance(node, ast.List) and node.elts]
    return _starts_something(tree) and any(
        dotted(it) == "sys.executable" or re.fullmatch(r"(.*/)?python[0-9.]*", _text(it)) for it in firsts
    )


def _starts_something(tree: ast.Module) -> bool:
    """Whether it has the means to."""
    named = {name for node in ast.walk(tree) for name in _modules(node)}
    called = {dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return bool(named & {"subprocess", "pexpect", "pty"} or called & {"os.system", "os.popen"})


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [(node.module or "").partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def _first_words(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.List) and node.elts:
            yield _text(node.elts[0])
        elif isinstance(node, ast.Call) and node.args and dotted(node.func).endswith("which"):
            yield _text(node.args[0])


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def apt_of(tools: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The Debian packages of these tools, and of what the texts of R load."""
    found = [package for tool in tools for package in TOOLCHAINS.get(tool, ())]
    if "Rscript" in tools or "R" in tools:
        names = {one or other for text in texts for one, other in _R_PACKAGE.findall(text)}
        found += [f"r-cran-{name.lower()}" for name in sorted(names - _R_OWN)]
    return list(dict.fromkeys(found))
