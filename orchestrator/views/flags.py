"""The flags of options of a run, made from their declaration."""

from collections.abc import Callable
from typing import Any

import click
from pydantic import SecretStr

from orchestrator import run_options
from orchestrator.run_options import OPTIONS, Flags, Option, Scope, options_of
from orchestrator.text import printable
from orchestrator.views.parsing import Named, Parsed, Spelt

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class RunFlag(click.Option):
    """One that was made here."""


def site_options(*left_out: str) -> Decorator:
    """Where candidates run; without those that the command has in a form of its own."""
    return run_flags(Scope.SITE, but=left_out)


def run_flags(*scopes: Scope, but: tuple[str, ...] = ()) -> Decorator:
    """All options of these scopes."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = [name for scope in scopes for name in options_of(scope) if name not in but]
        for name in reversed(names):
            function = _flag(name, OPTIONS[name])(function)
        return function

    return decorate


def _flag(name: str, option: Option) -> Decorator:
    word, kind = name.replace("_", "-"), option.kind
    spelt = f"--{word}/--no-{word}" if isinstance(kind, run_options.Switch) else f"--{word}"
    return click.option(
        spelt, name, cls=RunFlag, type=_type(kind), metavar=kind.metavar, default=None, help=option.help
    )


def _type(kind: run_options.Text) -> click.ParamType | None:
    match kind:
        case run_options.Number(least=None, most=None):
            return click.INT
        case run_options.Number():
            return click.IntRange(kind.least, kind.most)
        case run_options.Quantity():
            return Parsed(kind.noun, kind.read)
        case run_options.Share():
            return Spelt("share", kind.parse)
        case run_options.Choice():
            return click.Choice(kind.names)
        case run_options.Named():
            return Named(kind.kind, others=kind.others)
    return None


def value_of(name: str, text: str, where: str) -> Any:
    """The value of an option that is written as text. Raises click's UsageError, which says `where` it is written."""
    kind = OPTIONS[name].kind
    found = click.BOOL if isinstance(kind, run_options.Switch) else _type(kind) or click.STRING
    try:
        return found.convert(text, None, None)
    except click.BadParameter as error:
        raise click.UsageError(f"{where}: {name}: {error.message}") from None


def notify_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """It adds to the user's setting of the same name, and is no option of a run: the ledger must not hold secrets."""

    def add(context: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
        if given:
            more = tuple(SecretStr(it) for it in given)
            context.obj = context.obj.model_copy(update={"notify": (*context.obj.notify, *more)})

    help_text = (
        "Send news of the campaign, like webhook=https://example.org/hook or command=./tell.sh; can be repeated."
        " A secret address belongs into the setting."
    )
    return click.option(
        "--notify", metavar="NAME=WHERE", multiple=True, callback=add, expose_value=False, help=help_text
    )(function)


def flags_of(given: dict[str, Any]) -> Flags:
    return Flags(**{name: given.get(name) for name in OPTIONS})


def say(line: str) -> None:
    """What takes a while is told on stderr."""
    click.echo(printable(line), err=True)
