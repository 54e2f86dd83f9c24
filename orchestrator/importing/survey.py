"""What an evaluator does with a program, as far as its text tells: which functions it calls, what it returns, and
which of its habits a person should know of before trusting its scores.
"""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.importing.clocks import dotted, keys_reached, looks

# Those that do not stand still for the way to the other chamber.
_OTHER_CLOCKS = re.compile(r"(^|\.)(datetime\.(now|utcnow|today)|clock_gettime(_ns)?)$")
_SEEDS = re.compile(r"(^|\.)(seed|default_rng|RandomState|Random)$")
_STARTERS = re.compile(r"(^|\.)(Popen|run|call|check_call|check_output|system|create_subprocess_exec)$")
_SELF_GRADED = re.compile(r"^(is_solution|is_valid|verify|validate|check|grade|score|evaluate)(_|$)")
# What OpenEvolve and ShinkaEvolve rank by.
RANKED = "combined_score"
_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
# A text that is a path which leads out of its folder, and not to where every image has something.
_OUTSIDE = re.compile(r"\.\.(/[\w.][^\s:*?<>|]*)?|(?!/(tmp|dev|proc|bin|usr|etc)/)/[A-Za-z]\w*/[^\s:*?<>|]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Survey:
    """`metrics` are the names that its dicts have, in the order of the text; `words` all names and words in it; `timed`
    the keys under which it may keep what came of a clock.
    """

    entries: tuple[str, ...]
    metrics: tuple[str, ...]
    words: frozenset[str]
    attributes: frozenset[str]
    starts: tuple[str, ...]
    findings: tuple[str, ...]
    why_noisy: str
    timed: frozenset[str] = frozenset()
    outside: str = ""


def survey(tree: ast.Module, name: str, wanted: Sequence[str]) -> Survey:
    functions = [it for it in tree.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
    entries = tuple(it.name for it in functions if it.name in wanted)
    calls = [(node, dotted(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    metrics = tuple(dict.fromkeys(_metrics(tree)))
    return Survey(
        entries=entries,
        metrics=metrics,
        words=frozenset(_words(tree)),
        attributes=frozenset(_attributes(tree)),
        starts=tuple(dict.fromkeys(_started(calls))),
        findings=tuple(_findings(tree, calls, name)),
        why_noisy=_noise(tree, calls, set(metrics), name),
        timed=keys_reached(tree),
        outside=_outside(tree, calls),
    )


def paths_of(tree: ast.Module, wanted: Sequence[str]) -> set[str]:
    """Names under which its functions get the program's path."""
    functions = [it for it in tree.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {it.args.args[0].arg for it in functions if it.name in wanted and it.args.args} | {"program_path"}


def asks_itself(functions: list[str]) -> list[str]:
    """Those by which a program would grade its own work."""
    return [name for name in functions if _SELF_GRADED.match(name)]


def functions_handed_over(tree: ast.Module, functions: Collection[str]) -> str:
    """Where the evaluator gives a function of its own to one of these, as "12 hands sphere to minimize"; or nothing."""
    own = {it.name for it in ast.walk(tree) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)} - {*functions}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        to = next(_text_of(node.func.slice), "") if isinstance(node.func, ast.Subscript) else dotted(node.func)
        given = [*node.args, *(it.value for it in node.keywords)]
        handed = [
            "a lambda" if isinstance(it, ast.Lambda) else it.id
            for it in given
            if isinstance(it, ast.Lambda) or (isinstance(it, ast.Name) and it.id in own)
        ]
        if handed and to.rpartition(".")[2] in functions:
            return f"{node.lineno} hands {handed[0]} to {to.rpartition('.')[2]}"
    return ""


def draws_at_random(tree: ast.Module) -> bool:
    """Whether a program draws random numbers at all; a seed that it sets itself does not bind its successors."""
    return any(isinstance(it, ast.Name | ast.Attribute) and "random" in dotted(it).split(".") for it in ast.walk(tree))


def enumerations(tree: ast.Module) -> list[str]:
    """Classes at the top of a file that are enumerations by what they are made of, also by one another."""
    known = set(_ENUMS)
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(dotted(it).rpartition(".")[2] in known for it in node.bases):
            known.add(node.name)
            found.append(node.name)
    return found


def mentions(tree: ast.Module) -> set[str]:
    """Names of files and folders that its texts may mean."""
    texts = (it.value for it in ast.walk(tree) if isinstance(it, ast.Constant) and isinstance(it.value, str))
    return {part for text in texts if len(text) < 500 for part in text.split("/") if part}


def _metrics(tree: ast.Module) -> Iterator[str]:
    """Keys of dicts that are texts, where the value may be a number; and of a dataclass, what a system ranks by."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if _is_text(key) and not isinstance(value, ast.Dict | ast.List | ast.JoinedStr) and not _is_text(value):
                    yield str(key.value)  # type: ignore[union-attr]  # a constant, as was just seen
        elif isinstance(node, ast.Call) and dotted(node.func) == "dict":
            yield from (it.arg for it in node.keywords if it.arg and not _is_text(it.value))
        elif isinstance(node, ast.ClassDef):  # of settings, too, so only a name that says what it is
            yield from (it for it in _annotated(node) if it == RANKED)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_text(node.slice):
            yield str(node.slice.value)  # type: ignore[attr-defined]  # as above


def _annotated(node: ast.ClassDef) -> Iterator[str]:
    for it in node.body:
        if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name):
            yield it.target.id


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _words(tree: ast.Module) -> Iterator[str]:
    """Of texts too: an evaluator may write the program that loads the candidate's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _WORD.findall(node.value)
            yield node.value


def _attributes(tree: ast.Module) -> Iterator[str]:
    """Names that it asks of something: `it.NAME`, `getattr(it, "NAME")`, `it["NAME"]`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) in ("getattr", "hasattr") and len(node.args) > 1:
            yield from _text_of(node.args[1])
        elif isinstance(node, ast.Subscript):
            yield from _text_of(node.slice)


def _text_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _started(calls: list[tuple[ast.Call, str]]) -> Iterator[str]:
    """The programs that it starts, where their name stands in the call; "python" for the one that runs it."""
    for node, name in calls:
        if (
            not _STARTERS.search(name)
            or not node.args
            or name.split(".")[0] not in ("subprocess", "os", "asyncio", "Popen")
        ):
            continue
        first = node.args[0].elts[0] if isinstance(node.args[0], ast.List) and node.args[0].elts else node.args[0]
        if dotted(first) == "sys.executable":
            yield "python"
        elif isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.split():
            word = first.value.split()[0].rpartition("/")[2]
            yield "python" if re.fullmatch(r"python[0-9.]*", word) else word


def _findings(tree: ast.Module, calls: list[tuple[ast.Call, str]], name: str) -> Iterator[str]:
    if at := lines_of(iter(looks(tree))):
        yield (
            f"{name}:{at} looks at a clock: the way to the other chamber is taken off, but a busy machine shows more"
            " than natively; let a call have a tenth of a second of work"
        )
    if at := lines_of(node for node, called in calls if _OTHER_CLOCKS.search(called)):
        yield f"{name}:{at} looks at a clock that runs on the way to the other chamber; time.perf_counter does not"
    fixed = [node for node, called in calls if _SEEDS.search(called) and node.args and _is_constant(node.args[0])]
    if at := lines_of(iter(fixed)):
        yield f"{name}:{at} draws with a fixed seed: what it asks is the same each time, and can be learnt by heart"
    if at := _outside(tree, calls):
        yield f"{name}:{at} looks for files outside of its folder: in a chamber there are none but those of judge/"


def _outside(tree: ast.Module, calls: list[tuple[ast.Call, str]]) -> str:
    """Lines in which it looks for files outside of its folder."""
    homes = [node for node, called in calls if called.endswith(("Path.home", "expanduser"))]
    above = [
        node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and dotted(node).endswith("parent.parent")
    ]
    named = [node for node in ast.walk(tree) if any(_OUTSIDE.fullmatch(it) for it in _text_of(node))]
    return lines_of(iter([*homes, *above, *named]))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is not None


def lines_of(nodes: Iterator[ast.AST]) -> str:
    """As "12, 40 and 3 more"."""
    lines = sorted({it.lineno for it in nodes if isinstance(it, ast.expr)})
    more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return ", ".join(map(str, lines[:3])) + more


def _noise(tree: ast.Module, calls: list[tuple[ast.Call, str]], metrics: set[str], name: str) -> str:
    """Why the same program may get another score, or nothing. A clock alone is none: most only tell what it says."""
    if any("random" in called.split(".") or called.endswith("default_rng") for _, called in calls):
        return f"{name} draws random numbers"
    if any("speed" in metric for metric in metrics) and looks(tree):
        return f"{name} measures speed"
    return ""
