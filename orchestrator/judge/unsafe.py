"""Ways in which a judge's own code would let a candidate's output run, or would trust it too far. Warnings, not proofs.

The judge's chamber holds the answers. Whatever unpickles, imports or executes what a candidate left runs the
candidate's code beside them, and no container helps against that. The code is read, never run.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.python_source import parse_python

MAX_PARSED = 4 << 20  # bytes of all files together: seconds of processor, whatever is in them
OUTPUTS = re.compile(r"(?:^|[^a-z])(?:outputs?|candidate)(?:[^a-z]|$)", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    what: str
    instead: str


_PICKLE = "unpickles, which runs whatever code the file names"
_PLAIN = (
    "let the candidate write JSON, CSV or .npy, and read it with load_json, load_csv or load_npy of blastdoor_judge"
)
_EXECUTES = "executes text as code"
_PARSE = "parse it as data: load_json of blastdoor_judge, or ast.literal_eval on a short text"
_RUNS = "runs a program on, or from, what the candidate left"
_NO_RUN = "read the outputs as data; what must be run belongs into the trial's command"
_IMPORTS = "imports code from what the candidate left"
_XML = "an XML parser that expands entities: a small file can fill the memory"
_NO_XML = "use defusedxml, or let the candidate write JSON"
_UNPACKS = "unpacks an archive: names can point outside, sizes are not limited"
_NO_UNPACK = "let the candidate leave plain files: they are harvested one by one"
_YAML = "builds any Python object that the file names"

_ALWAYS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        [
            *(f"{module}.{name}" for module in ("pickle", "_pickle", "cPickle", "dill", "cloudpickle")
              for name in ("load", "loads", "Unpickler")),
            "joblib.load", "shelve.open", "marshal.load", "marshal.loads", "pandas.read_pickle", "jsonpickle.decode",
        ],
        (_PICKLE, _PLAIN),
    ),
    **dict.fromkeys(["yaml.unsafe_load", "yaml.full_load"], (_YAML, "use yaml.safe_load")),
    **dict.fromkeys(
        [
            *(f"xml.etree.ElementTree.{name}" for name in ("parse", "fromstring", "iterparse", "XML", "XMLParser")),
            *(f"xml.dom.{name}" for name in ("minidom.parse", "minidom.parseString", "pulldom.parse")),
            "xml.sax.parse", "xml.sax.parseString", "xml.sax.make_parser", "lxml.etree.parse", "lxml.etree.fromstring",
        ],
        (_XML, _NO_XML),
    ),
    "shutil.unpack_archive": (_UNPACKS, _NO_UNPACK),
}  # fmt: skip
_ON_VARIABLE = {"eval", "exec", "compile", "builtins.eval", "builtins.exec", "builtins.compile"}
_ON_OUTPUTS = {
    "__import__": _IMPORTS,
    "importlib.import_module": _IMPORTS,
    "importlib.util.spec_from_file_location": _IMPORTS,
    "importlib.machinery.SourceFileLoader": _IMPORTS,
    "runpy.run_path": _IMPORTS,
    "runpy.run_module": _IMPORTS,
    "site.addsitedir": _IMPORTS,
    "sys.path.insert": _IMPORTS,
    "sys.path.append": _IMPORTS,
    "sys.path.extend": _IMPORTS,
    "ctypes.CDLL": _IMPORTS,
    **dict.fromkeys(
        [f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output", "getoutput")], _RUNS
    ),
    **dict.fromkeys([f"os.{name}" for name in ("system", "popen", "execv", "execvp", "execl", "execlp")], _RUNS),
}
# Their first argument is what the module is to be called, wherever it lies.
_NAMED = {"importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader"}
_IN_TEXT = [
    (re.compile(r"\b(?:c?[pP]ickle|dill|cloudpickle|joblib|marshal)\.loads?\b"), _PICKLE, _PLAIN),
    (re.compile(r"\bread_pickle\b|\bshelve\.open\b"), _PICKLE, _PLAIN),
    (re.compile(r"\ballow_pickle\s*=\s*True|\btorch\.load\s*\((?!.*weights_only\s*=\s*True)"), _PICKLE, _PLAIN),
    (re.compile(r"\byaml\.(?:unsafe_|full_)?load\s*\((?!.*SafeLoader)"), _YAML, "use yaml.safe_load"),
    (re.compile(r"(?<![\w.])(?:eval|exec)\s*\("), _EXECUTES, _PARSE),
    (re.compile(r"\.extractall\s*\("), _UNPACKS, _NO_UNPACK),
]


def unsafe_loaders(files: Mapping[str, bytes]) -> list[Finding]:
    """What to warn of in a judge's Python files, in the order of files and lines."""
    found: set[Finding] = set()
    left = MAX_PARSED
    for path, data in files.items():
        if path.endswith(".py") or (data.startswith(b"#!") and b"python" in data[:80]):
            # Python that this interpreter does not understand, or too much of it, is looked through as text.
            tree = parse_python(data) if len(data) <= left else None
            left -= len(data) if tree else 0
            found.update(_Reader(path).findings(tree) if tree else _in_text(path, data))
    return sorted(found)


def _in_text(path: str, data: bytes) -> Iterator[Finding]:
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        code = line[:1000].split("#", 1)[0]
        for pattern, what, instead in _IN_TEXT:
            if pattern.search(code):
                yield Finding(path, number, what, instead)


class _Reader:
    """One file: first what its names stand for, then every call."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._imported: dict[str, str] = {}
        self._tainted: set[str] = set()
        self._from: set[int] = set()
        self._special: dict[str, Callable[[ast.Call], tuple[str, str] | None]] = {
            "numpy.load": self._numpy_load,
            "torch.load": self._torch_load,
            "yaml.load": self._yaml_load,
            "yaml.load_all": self._yaml_load,
        }

    def findings(self, tree: ast.Module) -> Iterator[Finding]:
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._note_imports(node)
        self._follow([node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.With)])
        self._mark(nodes)
        for node in nodes:
            reason = self._about(node)
            if reason and isinstance(node, ast.expr | ast.stmt):
                yield Finding(self._path, node.lineno, *reason)

    def _note_imports(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                self._imported[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _follow(self, binding: list[ast.stmt]) -> None:
        """Names that hold a path of the outputs, or something made from one; three steps are enough for a judge."""
        for _ in range(3):
            for node in binding:
                if isinstance(node, ast.With):
                    for item in node.items:
                        self._bind(item.optional_vars, item.context_expr)
                elif isinstance(node, ast.For):
                    self._bind(node.target, node.iter)
                elif isinstance(node, ast.Assign):
                    self._bind(ast.Tuple(node.targets, ast.Store()), node.value)
                elif isinstance(node, ast.AnnAssign):
                    self._bind(node.target, node.value)

    def _bind(self, target: ast.expr | None, value: ast.expr | None) -> None:
        if target is not None and value is not None and any(map(self._is_output, ast.walk(value))):
            self._tainted.update(node.id for node in ast.walk(target) if isinstance(node, ast.Name))

    def _mark(self, nodes: Sequence[ast.AST]) -> None:
        """Each part once, what is inside first: calls in calls are asked for one by one."""
        for node in reversed(nodes):
            if self._is_output(node) or any(map(self._from_outputs, ast.iter_child_nodes(node))):
                self._from.add(id(node))

    def _is_output(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and bool(OUTPUTS.search(node.value))
        return isinstance(node, ast.Name) and (node.id in self._tainted or bool(OUTPUTS.search(node.id)))

    def _from_outputs(self, node: ast.AST) -> bool:
        return id(node) in self._from

    def _about(self, node: ast.AST) -> tuple[str, str] | None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            outside = any(name.split(".")[0] in ("outputs", "candidate") for name in names)
            return (_IMPORTS, _NO_RUN) if outside else None
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            into_path = any(self._name(target) == "sys.path" for target in targets)
            return (_IMPORTS, _NO_RUN) if into_path and self._from_outputs(node.value) else None
        return self._about_call(node) if isinstance(node, ast.Call) else None

    def _about_call(self, call: ast.Call) -> tuple[str, str] | None:
        name = self._name(call.func)
        if name in _ALWAYS:
            return _ALWAYS[name]
        if name in self._special:
            return self._special[name](call)
        if name in _ON_VARIABLE:
            return (_EXECUTES, _PARSE) if call.args and not isinstance(call.args[0], ast.Constant) else None
        if name in _ON_OUTPUTS:
            given = any(map(self._from_outputs, _arguments(call, name in _NAMED)))
            return (_ON_OUTPUTS[name], _NO_RUN) if given else None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "extractall":
            return _UNPACKS, _NO_UNPACK
        return None

    def _name(self, node: ast.expr) -> str:
        """The dotted name that an expression stands for, with imports resolved; empty for anything else."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self._name(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        return ""

    def _numpy_load(self, call: ast.Call) -> tuple[str, str] | None:
        given = _keyword(call, "allow_pickle") or (call.args[2] if len(call.args) > 2 else None)
        return None if given is None or _is(given, False) else (_PICKLE, "leave out allow_pickle, or use load_npy")

    def _torch_load(self, call: ast.Call) -> tuple[str, str] | None:
        given = _keyword(call, "weights_only")
        return None if given is not None and _is(given, True) else (_PICKLE, f"weights_only=True; better, {_PLAIN}")

    def _yaml_load(self, call: ast.Call) -> tuple[str, str] | None:
        loader = _keyword(call, "Loader") or (call.args[1] if len(call.args) > 1 else None)
        safe = loader is not None and self._name(loader).endswith(("SafeLoader", "BaseLoader"))
        return None if safe else (_YAML, "use yaml.safe_load")


def _arguments(call: ast.Call, first: int) -> list[ast.expr]:
    return [*call.args[first:], *(keyword.value for keyword in call.keywords)]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _is(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
