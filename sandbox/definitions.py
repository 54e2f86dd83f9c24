"""Our own images as data: what each stands on, the lines of its Dockerfile, and the files that those lines copy.

Docker reads the same Dockerfiles itself (`blastdoor images build`), and what it made is what SkyPilot ships. Without a
daemon the lines are followed one by one. A provider that builds images on its own, like Modal, is given them on a base
that it can reach.
"""

import re
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sandbox.errors import Refused
from sandbox.wheels import Interpreter, fetch_pinned

_OURS = re.compile(r"blastdoor-([a-z]+)(?::latest)?")
_HEAD = re.compile(r"ARG BASE=(\S+)\nFROM \$\{BASE\}\n")
# What Modal builds on, and what the pinned wheels are made for.
RENTED_PYTHON = Interpreter("3.11", "x86_64", 36)


class Layered(Protocol):
    """An image that Dockerfile lines can be put on, like Modal's."""

    def dockerfile_commands(self, *dockerfile_commands: str | list[str], context_dir: Path | str | None = None) -> Any:
        """The image with these lines on top; nothing is built yet."""


T = TypeVar("T", bound=Layered)


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """What it stands on unless somebody says otherwise, and its instructions from there on, a line for each."""

    base: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """One image. `base` is the name that it stands on, `lines` one instruction each, `folder` where its files are."""

    name: str
    base: str
    lines: tuple[str, ...]
    folder: Path

    async def gather(self, python: Interpreter, folder: Path) -> None:
        """Everything that the lines copy, in `folder`. Raises like the fetching of wheels."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        if (self.folder / "requirements.txt").exists():
            (folder / "wheels").mkdir()
            await fetch_pinned(folder / "requirements.txt", python, folder / "wheels")


def lineage(image: str) -> tuple[Definition, ...]:
    """How one of our images is made, from the first that stands on somebody else's; empty for one that is not ours.

    Raises Refused for one that only a Docker engine can build.
    """
    found: list[Definition] = []
    while (ours := _OURS.fullmatch(image)) and (folder := _folder(ours[1])):
        found.insert(0, _read(ours[1], folder))
        image = found[0].base
    return tuple(found)


async def layered(
    image: T, definitions: tuple[Definition, ...], folder: Path, python: Interpreter = RENTED_PYTHON
) -> T:
    """The image with all of them on top. The folder must stay until the provider has built it."""
    for definition in definitions:
        context = folder / definition.name
        await definition.gather(python, context)
        image = image.dockerfile_commands(list(definition.lines), context_dir=context)
    return image


def read_dockerfile(file: Path) -> Dockerfile | None:
    """None for one that does not begin with its base, and with nothing but that."""
    text = file.read_text("utf-8")
    head = _HEAD.match(text)
    if not head:
        return None
    whole = text[head.end() :].replace("\\\n", " ")
    lines = (" ".join(line.split()) for line in whole.splitlines())
    return Dockerfile(head[1], tuple(line for line in lines if line and not line.startswith("#")))


def _folder(name: str) -> Path | None:
    folder = Path(str(resources.files("sandbox").joinpath("images", name)))
    return folder if (folder / "Dockerfile").is_file() else None


def _read(name: str, folder: Path) -> Definition:
    dockerfile = read_dockerfile(folder / "Dockerfile")
    if not dockerfile or (folder / "npm.json").exists():
        raise Refused(
            f"the image blastdoor-{name} is built by a Docker engine only (`blastdoor images build {name}`);"
            " name another image for a provider that builds its own"
        )
    return Definition(name, dockerfile.base, dockerfile.lines, folder)
