"""The command line. Bad input gets one line that says what to do, and an exit code from the table in the README."""

import itertools
import logging
import os
import re
import sys
import traceback
from typing import Never

import click
from pydantic import SecretStr, ValidationError

from orchestrator import logs
from orchestrator.git import GitError
from orchestrator.ledger import LedgerError
from orchestrator.settings import Settings, unknown_variables, user_file, variable_names
from orchestrator.task import TaskError
from orchestrator.views import campaign, chamber, judging, live, running
from orchestrator.views.ci_log import guard_output
from orchestrator.views.exits import Exit
from orchestrator.wiring import CannotOpen
from sandbox import Lost, Refused, Unavailable
from sandbox.units import format_size

_PASSWORD = re.compile(r"://[^/?#@]*:[^@]*@|[?&](ssl)?password=")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="blastdoor")
@click.option("--verbose", is_flag=True, help="Show debug logs, and the trace of an error.")
@click.option("--ledger", "url", metavar="URL", help="Database of the ledger; without a password, see docs/ledger.md.")
@click.pass_context
def cli(context: click.Context, verbose: bool, url: str | None) -> None:
    """Runs code that a machine wrote to win, behind a door that holds."""
    logs.configure(logging.DEBUG if verbose else logging.WARNING)
    if unknown := unknown_variables():
        known = ", ".join(variable_names())
        raise click.UsageError(f"the variable {unknown[0]} is not a setting; settings are {known}")
    if url and _PASSWORD.search(url):
        raise click.UsageError(
            "--ledger takes no password, since everybody on this machine can read a command line; put it into"
            f" BLASTDOOR_LEDGER, into {user_file()} or into ~/.pgpass"
        )
    try:
        context.obj = Settings(ledger=SecretStr(url)) if url else Settings()
    except ValidationError as error:
        raise click.UsageError(f"settings (BLASTDOOR_… or {user_file()}): {first_line(error)}") from None
    except ValueError as error:
        raise click.UsageError(f"{user_file()} is not TOML: {error}") from None


for command in (*running.commands, *judging.commands, *campaign.commands, *live.commands, *chamber.commands):
    cli.add_command(command)


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


def main() -> Never:
    """Run a command; errors become one line on stderr and a documented exit code."""
    guard_output()
    # The flag of ours, which stands before the command; a candidate's own words come after it.
    verbose = "--verbose" in list(itertools.takewhile(lambda word: word not in cli.commands, sys.argv[1:]))
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else Exit.OK)
    except click.Abort:
        sys.exit(Exit.INTERRUPTED)
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        command = where.command_path if where else "blastdoor"
        fail(f"{error.format_message()} ({command} --help tells more)", Exit.BAD_INPUT, error, verbose)
    except ValidationError as error:
        fail(first_line(error), Exit.BAD_INPUT, error, verbose)
    except (Refused, TaskError, CannotOpen, LedgerError, GitError) as error:
        fail(str(error), Exit.BAD_INPUT, error, verbose)
    except (Unavailable, Lost) as error:
        fail(str(error), Exit.NO_ENGINE, error, verbose)
    except BrokenPipeError:
        # Whoever read our output has left; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.NOT_GOOD)
    except OSError as error:
        line = f"{error.filename or 'the system'}: {error.strerror}; check rights and free space, then run it again"
        fail(line, Exit.BAD_INPUT, error, verbose)


def fail(line: str, code: Exit, error: Exception, verbose: bool) -> Never:
    if verbose:
        traceback.print_exception(error)
    click.echo(f"blastdoor: {line}", err=True)
    sys.exit(code)
