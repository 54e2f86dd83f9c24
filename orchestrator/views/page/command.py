"""`blastdoor serve`: a page that shows campaigns in a browser, and with --control acts on them."""

import os
import secrets
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from orchestrator.units import format_size
from orchestrator.views.campaign.export import writing
from orchestrator.views.campaign.opening import given_settings
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.page.entrance import Entrance
from orchestrator.views.page.listening import LOOPBACK, PORT, Certificate, Listening, listen

_FILE = click.Path(path_type=Path)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port to listen on. [default: {PORT}, or any free one]")
@click.option("--open/--no-open", "opens", default=None, help="Open a browser. [default: where there is a screen]")
@click.option(
    "--export",
    "exported",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the page with all that it shows to one HTML file, and start no server.",
)
@click.option(
    "--control", is_flag=True, help="Print a second address, which acts: pause, resume, steer, inject, accept, cancel."
)
@click.option("--host", default=LOOPBACK, help=f"Address to listen on; beyond loopback with TLS. [default: {LOOPBACK}]")
@click.option("--name", "names", multiple=True, help="Name by which browsers come, if not --host; can be repeated.")
@click.option("--tls-cert", "chain", type=_FILE, metavar="FILE", help="Certificate with its chain, as PEM.")
@click.option("--tls-key", "key", type=_FILE, metavar="FILE", help="Its private key, as PEM.")
@click.option("--plain-http", "plain", is_flag=True, help="Listen beyond loopback without TLS.")
@click.argument("folders", nargs=-1, type=_FILE, metavar="[FOLDER]...")
def command(
    folders: Sequence[Path],
    port: int | None,
    opens: bool | None,
    control: bool,
    host: str,
    names: Sequence[str],
    chain: Path | None,
    key: Path | None,
    plain: bool,
    exported: Path | None,
) -> None:
    """Show the campaigns under each FOLDER (default: here) on a page in the browser, live; Ctrl-C ends it.

    It listens on this machine alone; the address that it prints holds a token, and nobody gets in without. From
    elsewhere, come through ssh: ssh -L 8420:127.0.0.1:8420 HOST. It only reads, unless --control is given: then the
    second address that it prints acts as you do on the command line.
    """
    places = folders or (Path(),)
    for folder in places:
        if not folder.is_dir():
            raise click.UsageError(f"{folder} is not a folder; name one with campaigns in it")
    if exported:
        _export(places, exported)
        return
    if (chain is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    listening = listen(host, port, names, Certificate(chain, key) if chain and key else None, plain=plain)
    token, acting = secrets.token_urlsafe(32), secrets.token_urlsafe(32) if control else ""
    entrance = Entrance(token, acting)
    click.echo(f"{listening.address}?token={token}{'  (looks)' if control else ''}")
    if control:
        click.echo(f"{listening.address}?token={acting}  (acts)")
    _open(listening, entrance, opens)
    # Loaded here: no other command needs a server.
    from orchestrator.views.page.running import serve

    run_in_loop(serve(places, given_settings(), listening, entrance))


def _export(folders: Sequence[Path], file: Path) -> None:
    usual = click.get_current_context().get_parameter_source
    given = [
        name
        for name in ("port", "opens", "control", "host", "names", "chain", "key", "plain")
        if usual(name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise click.UsageError("--export starts no server; it goes with folders alone")
    from orchestrator.views.page.exported import export_page

    with writing(file) as out:
        out.write(export_page(folders, given_settings()))
    click.echo(f"{file}: {format_size(file.stat().st_size)}; it opens from the disk, without a server")


def _open(listening: Listening, entrance: Entrance, opens: bool | None) -> None:
    """Everybody on this machine can read a browser's command line, so the token is not in it."""
    if opens or (opens is None and _has_screen()):
        webbrowser.open(f"{listening.address}?code={entrance.code()}")


def _has_screen() -> bool:
    """A browser in a terminal, or one at the other end of ssh, would be no help."""
    here = not os.environ.get("SSH_CONNECTION") and sys.stdout.isatty()
    return here and (sys.platform == "darwin" or any(os.environ.get(it) for it in ("DISPLAY", "WAYLAND_DISPLAY")))
