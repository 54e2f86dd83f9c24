"""What works where evaluator and program are in one process, and not where each has a chamber of its own."""

import ast
from collections.abc import Collection, Iterator

from orchestrator.importing.clocks import dotted
from orchestrator.importing.survey import lines_of

_WRITERS = (
    "write_text", "write_bytes", "dump", "save", "savez", "savez_compressed", "savetxt", "savefig", "to_csv", "to_json",
    "to_parquet", "to_pickle", "tofile",
)  # fmt: skip


def unreached(
    evaluator: ast.Module, program: ast.Module, files: tuple[str, str], called: Collection[str]
) -> Iterator[str]:
    """One line for each habit that would be noticed only by a poor score; `files` are the names of both."""
    theirs, own = files
    for it in program.body:
        if isinstance(it, ast.FunctionDef) and it.name in called and _takes(it) and not _gives(it):
            yield f"{it.name} of {own} gives nothing back: what it changes in its arguments does not reach {theirs}"
    if at := lines_of(it for it in ast.walk(program) if isinstance(it, ast.Call) and _writes(it)):
        yield f"{own}:{at} writes files: they stay in the candidate's chamber"
    names = {*called, *(to.id for it in program.body for to in _targets(it))}
    sets = [it for it in ast.walk(evaluator) if isinstance(it, ast.Attribute) and _is_set(it) and it.attr in names]
    if at := lines_of(iter(sets)):
        yield f"{theirs}:{at} sets {sets[0].attr}: where that is the program's, the candidate does not see it"
    catches = [it for it in ast.walk(evaluator) if isinstance(it, ast.Attribute | ast.Name) and _catches(it)]
    if at := lines_of(iter(catches)):
        yield f"{theirs}:{at} catches what is printed: what the program prints goes to the log of its own chamber"
    asks = (it for it in ast.walk(evaluator) if isinstance(it, ast.Call) and dotted(it.func) == "inspect.signature")
    if at := lines_of(asks):
        yield f"{theirs}:{at} asks for a signature: every function of the program has that of a stub"


def _takes(function: ast.FunctionDef) -> bool:
    given = function.args
    return bool(given.args or given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg)


def _gives(function: ast.FunctionDef) -> bool:
    """Functions within it are left out: what these return is not its own."""
    left: list[ast.AST] = [*function.body]
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom) or (isinstance(node, ast.Return) and node.value is not None):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)
    return False


def _writes(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == "open":
        given = [*call.args[1:2], *(it.value for it in call.keywords if it.arg == "mode")]
        return any(isinstance(it, ast.Constant) and set("wax+") & set(str(it.value)) for it in given)
    return isinstance(call.func, ast.Attribute) and call.func.attr in _WRITERS


def _targets(statement: ast.stmt) -> list[ast.Name]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [it for it in targets if isinstance(it, ast.Name)]


def _is_set(node: ast.Attribute) -> bool:
    """Not of an object of the evaluator's own."""
    return isinstance(node.ctx, ast.Store) and not (isinstance(node.value, ast.Name) and node.value.id == "self")


def _catches(node: ast.Attribute | ast.Name) -> bool:
    stored = isinstance(node.ctx, ast.Store) and dotted(node) == "sys.stdout"
    return stored or dotted(node).rpartition(".")[2] == "redirect_stdout"
