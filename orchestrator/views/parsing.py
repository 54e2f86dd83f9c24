"""Options whose values are written as people write them."""

from collections.abc import Callable
from typing import Any

import click


class Parsed(click.ParamType):
    """Something as people write it: "$5", "90m", "30/min"."""

    def __init__(self, name: str, parse: Callable[[object], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return float(self._parse(value))  # type: ignore[arg-type]  # what can not be a number raises here
        except (TypeError, ValueError) as error:
            self.fail(str(error), param, ctx)
