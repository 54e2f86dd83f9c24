"""Whether a Python file may be given to LibCST's parser, which is native code without bounds of its own.

Seen with LibCST 1.9: a few thousand brackets, `and`s or unary signs overflow its stack and kill the process, and
brackets nested in a `case` pattern take time that doubles with each. CPython's own parser has guards against both; it
goes first, and what it built tells how deep the file is.
"""

import ast
import io
import tokenize

from orchestrator.python_source import parse_python

MOST_BYTES = 128 << 10
DEPTH = 60
BRACKETS_IN_A_CASE = 4
_LINE_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT)


def parsed(data: bytes) -> ast.Module | None:
    """The file as CPython reads it, None where it is none. Nothing of it is executed."""
    try:
        return None if b"\0" in data else parse_python(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def is_safe(data: bytes, tree: ast.Module) -> bool:
    if len(data) > MOST_BYTES or not is_shallow(tree):
        return False
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.BoolOp) and len(node.values) > DEPTH for node in nodes):
        return False
    return not any(isinstance(node, ast.Match) for node in nodes) or _patterns_are_flat(data)


def is_shallow(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False


def _patterns_are_flat(data: bytes) -> bool:
    """Counted in tokens: brackets without a meaning leave no trace in the tree."""
    depth, at_start, in_case = 0, True, False
    for token in tokenize.generate_tokens(io.StringIO(data.decode("utf-8-sig")).readline):
        if token.type in _LINE_STARTS:
            at_start |= token.type != tokenize.COMMENT
            in_case &= token.type in (tokenize.NL, tokenize.COMMENT)
            continue
        if at_start and depth == 0:
            in_case = token.string == "case"
        at_start = False
        if token.type == tokenize.OP:
            depth += token.string in ("(", "[", "{")
            depth -= token.string in (")", "]", "}")
        if in_case and depth > BRACKETS_IN_A_CASE:
            return False
    return True
