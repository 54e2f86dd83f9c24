"""The flags that say where candidates run, on every command that runs one."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from orchestrator.choices import BACKENDS
from orchestrator.text import printable
from orchestrator.views.parsing import Named
from orchestrator.wiring import Flags

_OPTIONS = {
    "backend": click.option("--backend", type=Named(BACKENDS), help="Where candidates run; the judge stays here."),
    "gpu": click.option(
        "--gpu", metavar="KIND", help="GPU of a candidate, kind and count, like A10 or A100-80GB:2; or none."
    ),
    "infra": click.option("--infra", metavar="WHERE", help="With skypilot: where to rent, like aws or slurm."),
    "standing": click.option(
        "--standing",
        type=click.IntRange(0, 64),
        help="Number of rented sandboxes or clusters to keep warm between trials.",
    ),
    "runtime": click.option("--runtime", help="Container runtime: runc or runsc."),
}


def site_options(*left_out: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """All of them, but those that the command has in a form of its own."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name, option in reversed(_OPTIONS.items()):
            function = function if name in left_out else option(function)
        return function

    return decorate


def flags_of(given: dict[str, Any]) -> Flags:
    return Flags(**{field.name: given.get(field.name) for field in fields(Flags)})


def say(line: str) -> None:
    """What takes a while is told on stderr."""
    click.echo(printable(line), err=True)
