"""Python that somebody else wrote, read and never executed."""

import ast
import threading
import warnings

# CPython counts how deep it is in one place for all threads, and has one list of warnings: of two that parse at once,
# one may be told that the count is wrong (SystemError).
_one_at_a_time = threading.Lock()


def parse_python(source: bytes | str) -> ast.Module | None:
    """What CPython makes of it; None where this one does not understand it."""
    try:
        with _one_at_a_time, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate's "\d" is not our warning
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
