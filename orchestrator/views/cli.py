"""The command line. Bad input gets one line that says what to do, and an exit code from the table in docs/commands.md.

Little is imported here: what a command does not need, it does not wait for.
"""

import itertools
import os
import re
import sys
from typing import Never

import click

from orchestrator.text import printable_lines, shown
from orchestrator.views.ci_log import finish_output, guard_output
from orchestrator.views.commands import COMMANDS, Commands
from orchestrator.views.exits import Exit

# It is called often and logs nothing; the library for logs would take a fifth of its time.
_SILENT = frozenset({"status"})
_LINE = 1500
_PASSWORD = re.compile(r"://[^/?#@]*:[^@]*@|[?&](ssl)?password=")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="blastdoor")
@click.option("--verbose", is_flag=True, help="Show debug logs, and the trace of an error.")
@click.option("--ledger", "url", metavar="URL", help="Database of the ledger, without a password; see docs/ledger.md.")
@click.pass_context
def cli(context: click.Context, verbose: bool, url: str | None) -> None:
    """Runs code that a machine wrote to win, behind a door that holds."""
    from pydantic import SecretStr, ValidationError

    from orchestrator.settings import Settings, unknown_variables, user_file, variable_names

    if verbose or context.invoked_subcommand not in _SILENT:
        import logging

        from orchestrator import logs

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
        from orchestrator.views.failing import first_line  # with it comes all that can fail, the whole loop too

        raise click.UsageError(f"settings (BLASTDOOR_… or {user_file()}): {first_line(error)}") from None
    except ValueError as error:
        raise click.UsageError(f"{user_file()} is not TOML: {error}") from None


def main() -> Never:
    """Run a command; errors become one line on stderr and a documented exit code."""
    _open_closed_streams()
    guard_output()
    # The flag of ours, which stands before the command; a candidate's own words come after it.
    verbose = "--verbose" in list(itertools.takewhile(lambda word: word not in COMMANDS, sys.argv[1:]))
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else Exit.OK)
    except click.Abort:
        _interrupted()
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        command = where.command_path if where else "blastdoor"
        fail(f"{error.format_message()} ({command} --help tells more)", Exit.BAD_INPUT, error, verbose)
    except BrokenPipeError:
        # The reader of our output has left; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.NOT_GOOD)
    except Exception as error:  # noqa: BLE001  whatever it is, it is told, with its trace
        if _came_of_ctrl_c(error):
            _interrupted()
        if told := _explained(error):
            fail(*told, error, verbose)
        # Python's own exit code for it is 1, which would be an answer: a gate's "rejected".
        fail(f"a fault of our own, {type(error).__name__}: {error}", Exit.BAD_INPUT, error, verbose=True)


def _open_closed_streams() -> None:
    """Where a caller closed one, the next file that is opened would get its number, and what we print."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _interrupted() -> Never:
    click.echo("blastdoor: interrupted", err=True)
    finish_output()
    os._exit(Exit.INTERRUPTED)  # all is closed; a thread that waits for an engine would hold us for minutes


def _came_of_ctrl_c(error: BaseException | None) -> bool:
    """A module that is loaded half-way fails in some other way."""
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _explained(error: Exception) -> tuple[str, Exit] | None:
    """None for a fault of ours; also where what would explain it cannot be loaded."""
    try:
        from orchestrator.views.failing import explained
    except Exception:  # noqa: BLE001  the first fault is told
        return None
    return explained(error)


def fail(line: str, code: Exit, error: Exception, verbose: bool) -> Never:
    if verbose:
        import traceback

        for told in printable_lines("".join(traceback.format_exception(error))):
            click.echo(told, err=True)
    # Whatever was quoted in it, of a command line or of a file.
    click.echo(f"blastdoor: {shown(' '.join(line.split()), _LINE)}", err=True)
    sys.exit(code)
