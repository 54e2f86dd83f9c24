"""`blastdoor up` and `blastdoor down`: a private Docker engine for a machine that has none."""

from pathlib import Path

import click

from orchestrator.machine.engine import run_with_engine, start_engine
from orchestrator.machine.private_engine import PrivateEngine
from orchestrator.views.exits import Exit
from sandbox.config.own_engine import OwnEngine, forget, own_engine, remember, state_folder

_folder_option = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of its data, images included. [default: ~/.local/state/blastdoor/engine]",
)


@click.command("up", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_folder_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]...")
def up(words: tuple[str, ...], folder: Path | None) -> int:
    """Start a private Docker engine, where no engine answers yet; later commands find it by themselves.

    With a COMMAND, run it with DOCKER_HOST set and stop the engine afterwards; the exit code is the command's.

    An engine that DOCKER_HOST, the settings or the default socket lead to is used as it is. A private one needs root.
    On Debian and Ubuntu, what is missing is installed: Docker, gVisor and mmdebstrap. Its data, its socket and its
    log are in one folder that only you can enter. Exit code 3 when no engine can be had.
    """
    private = PrivateEngine(_folder(folder))
    if words:
        return run_with_engine(private, list(words))
    host = start_engine(private)
    if host != private.host:
        click.echo(f"an engine answers at {host} already, and commands use it: there is nothing to start")
        return Exit.OK
    remember(OwnEngine(host, str(private.home)))
    click.echo(f"a private engine answers at {host}, and later commands use it; `blastdoor down` stops it")
    click.echo(f"for other programs: export DOCKER_HOST={host}")
    return Exit.OK


@click.command("down")
@_folder_option
@click.option("--clean", is_flag=True, help="Remove its data, too: images, containers and logs.")
@click.option("--force", is_flag=True, help="Stop it though chambers run or a command uses it.")
def down(folder: Path | None, clean: bool, force: bool) -> int:
    """Stop the private engine that `up` started. Its images stay for the next `up`, unless --clean is given.

    Exit code 3 when it is in use: nothing is changed then.
    """
    private = PrivateEngine(_folder(folder))
    there = private.end(force=force)
    started = own_engine()
    if started and started.folder == str(private.home):
        forget()
    click.echo(f"the private engine in {private.home} is stopped" if there else "no private engine runs")
    if clean and private.home.exists():
        private.clean()
        click.echo(f"{private.home} is removed")
    return Exit.OK


def _folder(given: Path | None) -> Path:
    """Raises UsageError where another engine runs than the one that is named."""
    started = own_engine()
    if given is None:
        return Path(started.folder) if started else state_folder() / "engine"
    if started and started.listens() and Path(started.folder) != given.absolute():
        raise click.UsageError(f"the engine in {started.folder} runs: stop it first with `blastdoor down`")
    return given
