"""`blastdoor images`: what chambers start from, and which of it is there."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from orchestrator.apart import read_apart
from orchestrator.choices import OWN_ENGINE, WITHOUT_DAEMON
from orchestrator.machine.docker_builder import DockerBuilder
from orchestrator.machine.images import LATEST, NAMES, Builder, Found, Image, plan
from orchestrator.machine.programs import Unprepared
from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import json_option, print_json
from orchestrator.views.campaign.screen import open_screen
from orchestrator.wiring.backends.runc_builder import RuncBuilder
from sandbox import Refused, RuncConfig
from sandbox.backends.runc.images import Images
from sandbox.baking import is_baked
from sandbox.config.docker import default_docker_host
from sandbox.config.own_engine import state_folder
from sandbox.config.runc import default_images_folder
from sandbox.units import format_size

_BASE = "BLASTDOOR_BASE_IMAGE"
# Of processor to take an image in, beside one for each MiB that it has: a small one can unpack without end.
SECONDS = 60
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")


@click.group("images", invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the images that chambers start from: which are there, and which are not of today's definition."""
    if context.invoked_subcommand is None:
        rows = _found(context.obj)
        if as_json:
            print_json(rows)
        else:
            _show(rows)


@command.command("build")
@click.option(
    "--base",
    envvar=_BASE,
    metavar="IMAGE",
    help="An official image to stand on, like python:3.11-slim-bookworm; without it, Debian's packages.",
)
@click.option(
    "--backend",
    type=click.Choice((OWN_ENGINE, *WITHOUT_DAEMON)),
    help="Who starts from them: an engine, or chambers without a daemon.",
)
@click.option("--tag", default=LATEST, show_default=True, metavar="TAG", help="Tag of the images.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.pass_obj
def build(settings: Settings, names: tuple[str, ...], base: str | None, backend: str | None, tag: str) -> None:
    """Build images on the engine: trial and attack, or those that are named, and what they stand on.

    Those of today's definition stay as they are. Nothing is pulled from a registry, unless --base names an image
    there. With --backend runc, crun or runsc, which share their images, no engine is needed: --base is then an image
    that was loaded. On Debian and Ubuntu and as root, missing programs are installed. Exit code 3 when one cannot be
    built.
    """
    if unknown := [name for name in names if name not in NAMES]:
        raise click.UsageError(f"there is no image {unknown[0]}; images are {', '.join(NAMES)}")
    planned = plan(base, names, tag)
    where = backend or settings.backend
    builder = _on_disk(settings, where) if where in WITHOUT_DAEMON else _on_engine(settings)
    builder.build(planned)
    found = builder.present(planned)
    for image in planned:
        click.echo(f"{image.tag}  {format_size(found[image.tag].size)}")


@command.command("load")
@click.argument("place", type=click.Path(path_type=Path), metavar="PATH")
@click.argument("name", metavar="NAME")
@click.pass_obj
def load(settings: Settings, place: Path, name: str) -> None:
    """Take an image from disk, for chambers without a daemon.

    It is what `docker save` writes, or an OCI layout, as a folder or a tar; NAME is what jobs call it from now on. No
    Docker engine is needed. Exit code 2 for what is no image, or not whole, or takes too much to read.
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError(f"{name!r} is no name of an image; write it like blastdoor-trial:latest")
    unpacked, seconds = _unpacked(settings), SECONDS + (_bytes_on_disk(place) >> 20)
    try:
        id_ = read_apart(lambda: unpacked.load(place, name), str, place, Refused, seconds=seconds)
    except Refused:
        unpacked.sweep()
        raise
    click.echo(f"{name}  sha256:{id_}")


@command.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def remove(settings: Settings, names: tuple[str, ...]) -> None:
    """Remove names of images on disk, for chambers without a daemon.

    They stand for nothing there any more, so that an engine is asked for them again, where one answers. Their files go
    with `blastdoor images prune`, which leaves what a live process uses. A Docker engine's own images are not touched.
    Exit code 2 for a name that is not on disk.
    """
    unpacked = _unpacked(settings)
    for name in names:
        unpacked.unname(name)
        click.echo(f"removed  {name}; `blastdoor images prune` frees what no name stands for")


@command.command("prune")
@click.pass_obj
def prune(settings: Settings) -> None:
    """Remove unpacked images that no name stands for, for chambers without a daemon.

    An image that was built or loaded again under its name leaves the old one unpacked. Copies for gold and suites go,
    too, and images that were baked here: they are made again when they are needed. What a live process uses stays. A
    Docker engine's own images are not touched.
    """
    removed = _unpacked(settings).prune()
    for name in removed:
        click.echo(f"removed  {name}")
    if not removed:
        click.echo("nothing to remove")


def _bytes_on_disk(place: Path) -> int:
    """Those of an archive, or of the layers of a folder. Holes in a file are cheap to make, and do not count."""
    files = [place] if not place.is_dir() else [*place.glob("blobs/sha256/*"), *place.glob("*/layer.tar")]
    return sum(it.stat().st_blocks * 512 for it in files if it.is_file())


def _unpacked(settings: Settings) -> Images:
    return Images(default_images_folder(), settings.docker_host or default_docker_host())


def _on_engine(settings: Settings) -> Builder:
    return DockerBuilder(settings.docker_host or default_docker_host(), state_folder())


def _on_disk(settings: Settings, runtime: str) -> Builder:
    config = {"runtime": runtime, "image_host": settings.docker_host or default_docker_host()}
    return RuncBuilder(RuncConfig.model_validate(config), state_folder())


def _found(settings: Settings) -> list[dict[str, Any]]:
    """Those of the engine, and those on disk; where no engine answers, the latter alone, if there are any.

    What is missing is told of the place that chambers start from.
    """
    images = plan(os.environ.get(_BASE) or None, NAMES)
    without_daemon = settings.backend in WITHOUT_DAEMON
    on_disk = _rows_on_disk(settings, images, with_missing=without_daemon)
    try:
        there = _on_engine(settings).present(images)
    except Unprepared:
        if not on_disk:
            raise
        return on_disk
    if without_daemon:
        images = [image for image in images if image.tag in there]
    return [*(_row(image.tag, "engine", _state(image, there), there.get(image.tag)) for image in images), *on_disk]


def _rows_on_disk(settings: Settings, images: Sequence[Image], *, with_missing: bool) -> list[dict[str, Any]]:
    """One of ours carries its definition also where it was saved by an engine; of others only the name is known."""
    there, ours = _on_disk(settings, WITHOUT_DAEMON[0]).present(images), {image.tag: image for image in images}
    rows, unpacked = [], _unpacked(settings)
    for name, id_ in sorted(unpacked.loaded().items()):
        labelled = name in ours and bool(there[name].digest)
        state = _state(ours[name], there) if labelled else "baked" if is_baked(name) else "loaded"
        rows.append(_row(name, "disk", state, there.get(name) or Found("", unpacked.size(id_))))
    missing = [_row(image.tag, "disk", "missing", None) for image in images if image.tag not in there]
    return [*rows, *missing] if with_missing else rows


def _state(image: Image, there: dict[str, Found]) -> str:
    found = there.get(image.tag)
    return "missing" if found is None else "ready" if found.digest == image.digest else "stale"


def _row(name: str, where: str, state: str, found: Found | None) -> dict[str, Any]:
    return {"image": name, "on": where, "state": state, "bytes": found.size if found else None}


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(row["image"], row["on"], row["state"], format_size(row["bytes"]) if row["bytes"] else "")
    open_screen().show(table)
    for where, how in (("engine", "docker"), ("disk", "runc")):
        if any((row["state"], row["on"]) == ("stale", where) for row in rows):
            again = f"`blastdoor images build --backend {how} NAME`"
            click.echo(f"stale on {where}: not of the definition in this version, or on another base; {again}")
    if any(row["on"] == "disk" for row in rows):
        click.echo("disk: for chambers without a daemon, which ask an engine only for what is not here")
    if any(row["state"] == "baked" for row in rows):
        click.echo("baked: packages of a task; `blastdoor images prune` removes them")
