"""Python of a task's tests, read: why it may run what a candidate wrote. Only a fixed list of modules and of what they
have is taken for reading files; every other import or name is a reason.
"""

import ast
from collections.abc import Iterator

from orchestrator.importing.clocks import dotted
from orchestrator.importing.packages import KNOWN

# Modules that calculate, or read files as data.
_READING = frozenset([
    "__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "bz2", "calendar", "cmath", "collections",
    "collections.abc", "configparser", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum",
    "filecmp", "fnmatch", "fractions", "functools", "glob", "gzip", "hashlib", "heapq", "hmac", "html", "html.parser",
    "io", "ipaddress", "itertools", "json", "lzma", "math", "numbers", "os", "os.path", "pathlib", "posixpath",
    "pprint", "pytest", "random", "re", "sqlite3", "stat", "statistics", "string", "struct", "sys", "tarfile",
    "tempfile", "textwrap", "time", "tomllib", "typing", "unicodedata", "unittest", "uuid", "wave", "xml.etree",
    "xml.etree.ElementTree", "zipfile", "zlib",
    "PIL", "PIL.Image", "bs4", "jsonschema", "numpy", "numpy.testing", "openpyxl", "pandas", "scipy", "scipy.stats",
    "sklearn.metrics", "toml", "yaml",
])  # fmt: skip
_OF_OS = frozenset([
    "R_OK", "W_OK", "X_OK", "F_OK", "access", "environ", "getcwd", "getenv", "linesep", "listdir", "lstat", "makedirs",
    "path", "readlink", "scandir", "sep", "stat", "walk",
])  # fmt: skip
_OF = {
    "os": _OF_OS,
    "sys": frozenset(["argv", "byteorder", "exit", "float_info", "maxsize", "stderr", "stdout", "version_info"]),
    "pytest": frozenset(["approx", "fail", "fixture", "mark", "param", "raises", "skip", "warns", "xfail"]),
    "unittest": frozenset(["TestCase", "skip", "skipIf", "skipUnless"]),
    "yaml": frozenset(["YAMLError", "safe_dump", "safe_load", "safe_load_all"]),
}
# Names that reach what is not on the list, from wherever they are taken.
_REACHING = frozenset([
    "__import__", "attrgetter", "breakpoint", "builtins", "compile", "ctypeslib", "delattr",
    "enable_load_extension", "eval", "exec", "extract", "extractall", "f2py", "getattr", "globals", "importorskip",
    "load_extension", "load_library", "loader", "locals", "methodcaller", "modules", "os", "pytest_plugins",
    "pytester", "query", "read_feather", "read_hdf", "read_orc", "read_parquet", "read_pickle", "read_sql",
    "rundocs", "runstring", "setattr", "subprocess", "sys", "syspath_prepend", "system", "testdir", "vars",
])  # fmt: skip
_PLAIN = frozenset(["__name__", "__file__", "__doc__", "__init__", "__len__", "__class__", "__version__"])


class PythonTests:
    """`own` are the modules that lie beside the tests. After `reasons`, `pip` are packages that they import."""

    def __init__(self, name: str, tree: ast.Module, own: set[str]) -> None:
        self._name = name
        self._tree = tree
        self._own = own
        self._parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.pip: list[str] = []

    def reasons(self) -> Iterator[str]:
        for node in ast.walk(self._tree):
            for what in self._about(node):
                yield f"{self._name}:{getattr(node, 'lineno', 0)} {what}"

    def _about(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._imports(alias.name)
                if alias.asname and alias.name in _OF:
                    yield f"imports {alias.name} by another name"
        elif isinstance(node, ast.ImportFrom) and node.level:
            if node.level > 1:
                yield "imports from a folder above"
        elif isinstance(node, ast.ImportFrom):
            yield from self._imports(node.module or "")
            for alias in node.names:
                allowed = _OF.get(node.module or "", {alias.name})
                if alias.name not in allowed or alias.name in _REACHING or alias.name[0] in "*_":
                    yield f"imports {alias.name} of {node.module}"
        elif isinstance(node, ast.Attribute):
            yield from self._attribute(node)
        elif isinstance(node, ast.Name):
            yield from self._named(node)
        elif isinstance(node, ast.arg) and node.arg in _REACHING:
            yield f"has {node.arg}"
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield "unpickles"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("pytest_"):
            yield f"changes how pytest works in {node.name}"

    def _imports(self, module: str) -> Iterator[str]:
        top = module.partition(".")[0]
        if top in self._own:
            return
        if module not in _READING:
            yield f"imports {module}, which is not on the list of those that only read"
        elif top in KNOWN:
            self.pip.append(KNOWN[top])

    def _attribute(self, node: ast.Attribute) -> Iterator[str]:
        if dotted(node) == "re.compile":
            return
        if isinstance(node.value, ast.Name) and node.value.id in _OF:
            if node.attr not in _OF[node.value.id]:
                what = "changes where modules are found with" if node.attr == "path" else "uses"
                yield f"{what} {node.value.id}.{node.attr}"
        elif node.attr in _REACHING or (node.attr.startswith("_") and node.attr not in _PLAIN and not _is_own(node)):
            yield f"uses .{node.attr}"

    def _named(self, node: ast.Name) -> Iterator[str]:
        if node.id in _OF:
            if not isinstance(self._parents.get(id(node)), ast.Attribute):
                yield f"passes {node.id} on"
        elif node.id in _REACHING or (node.id.startswith("__") and node.id not in _PLAIN):
            yield f"uses {node.id}"


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is a private member of the tests' own class; modules have others' modules there."""
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    return owner in ("self", "cls") and not node.attr.startswith("__")
