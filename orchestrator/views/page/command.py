"""`blastdoor serve`: a page that shows campaigns in a browser, on this machine only."""

import asyncio
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from orchestrator.views.campaign.opening import given_settings

HOST = "127.0.0.1"
PORT = 8420


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on. [default: {PORT}, or any free one]")
@click.option("--open/--no-open", "opens", default=None, help="Open a browser. [default: where there is a screen]")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
def command(folders: Sequence[Path], port: int | None, opens: bool | None) -> None:
    """Show the campaigns under each FOLDER (default: here) on a page in the browser, live; Ctrl-C ends it.

    It only reads, and listens on this machine alone; the address that it prints holds a token, and nobody gets in
    without. From elsewhere, come through ssh: ssh -L 8420:127.0.0.1:8420 HOST.
    """
    places = folders or (Path(),)
    for folder in places:
        if not folder.is_dir():
            raise click.UsageError(f"{folder} is not a folder; name one with campaigns in it")
    listening = _bound(port)
    token = secrets.token_urlsafe(32)
    address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
    click.echo(address)
    if opens or (opens is None and _has_screen()):
        webbrowser.open(address)
    # Loaded here: no other command needs a server.
    from orchestrator.views.page.running import serve

    asyncio.run(serve(places, given_settings(), listening, token))


def _bound(port: int | None) -> socket.socket:
    """The wish of a person is kept or refused; the usual port gives way to any."""
    for wanted in (PORT, 0) if port is None else (port,):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, wanted))
            listening.listen()  # one who opens the address at once waits, and is not refused
        except OSError as error:
            listening.close()
            if port is not None:
                line = f"cannot listen on port {port}: {error.strerror}; name another, or leave out --port"
                raise click.UsageError(line) from None
            continue
        return listening
    raise click.UsageError("no port of this machine is free")


def _has_screen() -> bool:
    """A browser in a terminal, or one at the other end of ssh, would be no help."""
    here = not os.environ.get("SSH_CONNECTION") and sys.stdout.isatty()
    return here and (sys.platform == "darwin" or any(os.environ.get(it) for it in ("DISPLAY", "WAYLAND_DISPLAY")))
