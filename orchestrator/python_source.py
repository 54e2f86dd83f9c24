"""Python that somebody else wrote, read and never executed."""

import ast
import threading
import warnings

# CPython counts how deep it is in one place, and has one list of warnings. A second parse in the middle of one, in
# another thread or in a finalizer, spoils the count, and the first ends with a SystemError. Our own parses wait for
# each other; a trace that is printed parses as well, and does not wait.
_one_at_a_time = threading.Lock()
_TRIES = 20


def parse_python(source: bytes | str) -> ast.Module | None:
    """What CPython makes of it; None where this one does not understand it."""
    for left in reversed(range(_TRIES)):
        try:
            with _one_at_a_time, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a candidate's "\d" is not our warning
                return ast.parse(source)
        except SystemError:
            if not left:
                raise
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
    return None
