"""The flags that `run` and `resume` share: caps and the shape of the search."""

from collections.abc import Callable
from typing import Any

import click

from orchestrator.task import parse_duration, parse_money, parse_rate, parse_size
from orchestrator.views.parsing import Parsed

_AT_LEAST_ONE = click.IntRange(min=1)
_OPTIONS = (
    click.option("--attempts", type=_AT_LEAST_ONE, help="Maximum number of attempts."),
    click.option("--tunes", type=click.IntRange(min=0), help="Maximum number of tune trials."),
    click.option("--usd", type=Parsed("money", parse_money), help='Maximum dollars, like "$5".'),
    click.option("--tokens", type=click.IntRange(min=0), help="Maximum number of tokens."),
    click.option("--seconds", type=Parsed("duration", parse_duration), help='Maximum time in chambers, like "2h".'),
    click.option("--wall", type=Parsed("duration", parse_duration), help='Maximum time on the clock, like "8h".'),
    click.option("--stall-losses", type=Parsed("money", parse_money), help="Maximum dollars lost to stalls."),
    click.option(
        "--artifacts",
        type=Parsed("size", parse_size),
        help='Maximum size of all kept outputs, like "2GiB"; the oldest go first.',
    ),
    click.option("--patience", type=_AT_LEAST_ONE, help="Stop after this many attempts without improvement."),
    click.option("--rate", type=Parsed("rate", parse_rate), help='Maximum rate of new attempts, like "30/min".'),
    click.option("--width", type=_AT_LEAST_ONE, help="Number of attempts at a time."),
    click.option("--review/--no-review", default=None, help="Stop after each round so that you can look at it."),
    click.option("--ask/--no-ask", default=None, help="Ask a person before a candidate becomes the best."),
)


def cap_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
