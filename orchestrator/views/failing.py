"""What an error becomes: one line that says what to do, and an exit code from the table in docs/commands.md."""

from pydantic import ValidationError

from orchestrator.git import GitError
from orchestrator.ledger import LedgerError
from orchestrator.machine.programs import Unprepared
from orchestrator.proposers import PluginFailed
from orchestrator.task import TaskError
from orchestrator.views.exits import Exit
from orchestrator.wiring.resuming import CannotOpen
from sandbox import Lost, Refused, Unavailable
from sandbox.units import format_size


def explained(error: Exception) -> tuple[str, Exit] | None:
    """None for a fault of ours."""
    match error:
        case ValidationError():
            return first_line(error), Exit.BAD_INPUT
        case Refused() | TaskError() | CannotOpen() | LedgerError() | GitError() | PluginFailed():
            return str(error), Exit.BAD_INPUT
        case Unavailable() | Lost() | Unprepared():
            return str(error), Exit.NO_ENGINE
        case OSError():
            where = error.filename or "the system"
            return f"{where}: {error.strerror}; check rights and free space, then run it again", Exit.BAD_INPUT
    return None


def first_line(error: ValidationError) -> str:
    """The first complaint of a validation, in one line; sizes as people write them."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "literal_error":
        text = f"must be {first['ctx']['expected']}"
    bounds = {name: bound for name, bound in first.get("ctx", {}).items() if name in ("ge", "gt", "le", "lt")}
    if bounds:
        name, bound = bounds.popitem()
        words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}[name]
        shown = format_size(bound) if where.endswith(("bytes", "memory")) else f"{bound:g}"
        text = f"must be {words} {shown}"
    return f"{where}: {text}"
