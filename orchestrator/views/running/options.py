"""The flags that `run` and `resume` share: caps and the shape of the search."""

from collections.abc import Callable
from typing import Any

import click

from orchestrator.task import parse_duration, parse_money, parse_rate, parse_size
from orchestrator.views.parsing import Parsed

_AT_LEAST_ONE = click.IntRange(min=1)
_OPTIONS = (
    click.option("--attempts", type=_AT_LEAST_ONE, help="Attempts at most."),
    click.option("--tunes", type=click.IntRange(min=0), help="Tune trials at most."),
    click.option("--usd", type=Parsed("money", parse_money), help='Dollars at most, like "$5".'),
    click.option("--tokens", type=click.IntRange(min=0), help="Tokens at most."),
    click.option("--seconds", type=Parsed("duration", parse_duration), help='Time in chambers at most, like "2h".'),
    click.option("--wall", type=Parsed("duration", parse_duration), help='Time on the clock at most, like "8h".'),
    click.option("--stall-losses", type=Parsed("money", parse_money), help="Dollars at most that stalls may cost."),
    click.option(
        "--artifacts",
        type=Parsed("size", parse_size),
        help='Bytes of outputs kept at most, like "2GiB"; oldest go first.',
    ),
    click.option("--patience", type=_AT_LEAST_ONE, help="Attempts without improvement at most."),
    click.option("--rate", type=Parsed("rate", parse_rate), help='New attempts at most, like "30/min".'),
    click.option("--width", type=_AT_LEAST_ONE, help="Attempts at a time."),
    click.option("--review/--no-review", default=None, help="Stop after each round, to be looked at."),
    click.option("--ask/--no-ask", default=None, help="Ask a person before a candidate becomes the best."),
)


def cap_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
