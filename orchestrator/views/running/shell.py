"""`blastdoor shell`: look around in a chamber like the one that a node ran in."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from orchestrator.examine.shell import Answer, ShellEnd, run_shell
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import parse_duration
from orchestrator.text import printable, printable_lines
from orchestrator.views.campaign.opening import json_option, node_argument, print_json, task_argument
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.views.parsing import Parsed
from orchestrator.views.running.parts import Place, open_place


@click.command("shell")
@click.option("-c", "line", metavar="LINE", help="Run this one line and exit.")
@click.option("--wall", type=Parsed("duration", parse_duration), default="30m", help="Lifetime of the chamber.")
@site_options()
@json_option
@node_argument
@task_argument
@click.pass_obj
def command(
    settings: Settings, /, node: str, task: Path, line: str | None, wall: float, as_json: bool, **given: Any
) -> int:
    """Open a shell in a fresh chamber with NODE's files, image, inputs and limits; nothing in it is kept.

    A chamber has no terminal: each line is run and its output is shown. Ctrl-D or exit leaves.

    With -c, and after exit, the exit code is that of the line; 1 if the chamber ended before it answered.
    """
    if as_json and line is None:
        raise click.UsageError("--json needs -c LINE; a conversation has no end to print")
    said: list[str] = []
    end = run_in_loop(_shell(settings, task, node, line, wall, flags_of(given), said.append if as_json else click.echo))
    if as_json:
        print_json({"node": node, "line": line, "output": said, "exit_code": end.code, "ended": end.reason})
    elif line is None or end.code is None:
        click.echo(f"left: {printable(end.reason)}", err=True)
    return Exit.NOT_GOOD if end.code is None else end.code


async def _shell(
    settings: Settings,
    task: Path,
    node: str,
    line: str | None,
    wall: float,
    flags: Flags,
    show: Callable[[str], object],
) -> ShellEnd:
    async with open_place(settings, task, node, flags) as place:
        lines = iter([line]) if line is not None else None

        async def ask() -> str | None:
            if lines is not None:
                return next(lines, None)
            return await asyncio.to_thread(_read, place)

        def say(answer: Answer) -> None:
            output = answer.output.rstrip(b"\n")
            for text in printable_lines(output) if output.strip(b"\n") else ():
                show(text)
            if answer.code and line is None and not answer.left:
                show(f"(exit code {answer.code})")

        return await run_shell(place.parts, place.tree, wall, ask, say)


def _read(place: Place) -> str | None:
    prompt = f"{place.node.id} $ " if sys.stdin.isatty() else ""
    try:
        return input(prompt)
    except EOFError:
        return None
