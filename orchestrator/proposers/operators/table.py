"""All operators by name, with how often each is tried before anything is known."""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from orchestrator.proposers.operators.calls import call
from orchestrator.proposers.operators.code import Code
from orchestrator.proposers.operators.constants import constant, flag, numbers, onward
from orchestrator.proposers.operators.crossing import crossover
from orchestrator.proposers.operators.edit import Edit
from orchestrator.proposers.operators.hints import Hints
from orchestrator.proposers.operators.lines import (
    Page,
    line_clone,
    line_crossover,
    line_delete,
    line_number,
    line_numbers,
    line_onward,
    line_swap,
)
from orchestrator.proposers.operators.loops import loop
from orchestrator.proposers.operators.statements import clone, delete, move
from orchestrator.proposers.operators.swaps import arithmetic, comparison, condition, factor


class OnCode(NamedTuple):
    work: Callable[[Code, random.Random, Hints], Edit | None]
    weight: float


class OnLines(NamedTuple):
    work: Callable[[Page, random.Random, Hints], Edit | None]
    weight: float


ON_CODE: Mapping[str, OnCode] = {
    "constant": OnCode(constant, 3.0),
    "numbers": OnCode(numbers, 1.5),
    "onward": OnCode(onward, 2.0),
    "flag": OnCode(flag, 0.5),
    "comparison": OnCode(comparison, 1.0),
    "arithmetic": OnCode(arithmetic, 1.0),
    "condition": OnCode(condition, 0.7),
    "factor": OnCode(factor, 1.0),
    "clone": OnCode(clone, 0.7),
    "move": OnCode(move, 0.5),
    "delete": OnCode(delete, 0.7),
    "crossover": OnCode(crossover, 0.7),
    "loop": OnCode(loop, 1.0),
    "call": OnCode(call, 0.7),
}
ON_LINES: Mapping[str, OnLines] = {
    "line number": OnLines(line_number, 3.0),
    "line numbers": OnLines(line_numbers, 1.5),
    "line onward": OnLines(line_onward, 2.0),
    "line swap": OnLines(line_swap, 0.5),
    "line clone": OnLines(line_clone, 0.5),
    "line delete": OnLines(line_delete, 0.5),
    "line crossover": OnLines(line_crossover, 0.7),
}
