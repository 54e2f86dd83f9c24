"""Options whose values are written as people write them."""

from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from orchestrator.registry import ChoiceError, Kind


class Parsed(click.ParamType):
    """Something as people write it: "$5", "90m", "30/min"."""

    def __init__(self, name: str, parse: Callable[[object], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return float(self._parse(value))  # type: ignore[arg-type]  # what cannot be a number raises here
        except (TypeError, ValueError) as error:
            self.fail(str(error), param, ctx)


class Spelt(click.ParamType):
    """A number, or one of some words."""

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Named(click.ParamType):
    """Something that has a name, built in or brought by a package. Packages are looked at only when it is needed.

    `others`: names that nobody knows are let through, since the task may say what they mean.
    """

    def __init__(self, kind: Kind, *, others: bool = False) -> None:
        self.name = kind.noun
        self.kind = kind
        self._others = others

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        del param, ctx
        return f"[{'|'.join(self.kind.names())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            if not self._others:
                self.kind.find(value)
        except ChoiceError as error:
            self.fail(str(error), param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        return [CompletionItem(name) for name in self.kind.names() if name.startswith(incomplete)]
