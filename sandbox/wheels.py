"""Wheels, fetched with this machine's own pip and its configuration. Nothing of a package is run or even unpacked here.

So no address or credential of an index enters an image. pip chooses dependencies by the machine that it runs on, not by
the one that it fetches for: what the image then misses is asked for by name, in a second round.
"""

import asyncio
import importlib.util
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from sandbox.baking import last_word
from sandbox.environment import PIP, child_environment
from sandbox.errors import Refused, Unavailable

_KEPT_BYTES = 65_536
_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}
_OLDER_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_NO_PIP = "this machine has no pip to fetch packages with; install it (python3 -m ensurepip, or your package manager)"
# What is left of a failure to reach an index, once pip has given up: "no such package" would be the wrong answer.
_NETWORK = (b"WARNING: Retrying", b"Could not fetch URL", b"ReadTimeoutError", b"Connection broken")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The image's Python, in its own words."""

    version: str
    machine: str
    glibc_minor: int

    def __str__(self) -> str:
        return f"Python {self.version} on {self.machine}"

    def platforms(self) -> list[str]:
        """The tags of wheels that run on it, best first; pip takes the list as it is and expands nothing."""
        oldest = _OLDEST_GLIBC.get(self.machine, 17)
        tags = []
        for minor in range(self.glibc_minor, oldest - 1, -1):
            tags.append(f"manylinux_2_{minor}_{self.machine}")
            if minor in _OLDER_NAMES:
                tags.append(f"{_OLDER_NAMES[minor]}_{self.machine}")
        return [*tags, f"linux_{self.machine}"]


async def fetch_pip(python: Interpreter, folder: Path) -> None:
    """A pip for the image's Python, as a wheel: it can be run as it is, so the image needs none."""
    await _download(["--no-deps", "--python-version", python.version, "pip"], folder, python)


async def fetch_wheels(wanted: tuple[str, ...], python: Interpreter, folder: Path) -> None:
    """The packages and what they depend on. Raises Refused when one has no wheel, Unavailable without an index."""
    await _download([*_target(python), *wanted], folder, python)


async def fetch_pinned(requirements: Path, python: Interpreter, folder: Path) -> None:
    """The packages of a file (a whole path), each with its hash there, and nothing else; raises like fetch_wheels."""
    pinned = ["--no-deps", "--require-hashes", "--requirement", str(requirements)]
    await _download([*_target(python), *pinned], folder, python)


def _target(python: Interpreter) -> list[str]:
    platforms = [word for tag in python.platforms() for word in ("--platform", tag)]
    return ["--implementation", "cp", "--python-version", python.version, *platforms]


async def _download(arguments: list[str], folder: Path, python: Interpreter) -> None:
    options = ["--only-binary=:all:", "--no-input", "--no-color", "--progress-bar=off", "--dest", str(folder)]
    code, output = await _pip(["download", *options, *arguments], folder)
    if code == 0:
        return
    line = last_word(output, ["ERROR:", "PermissionError:"])
    if any(sign in output for sign in _NETWORK):
        raise Unavailable(f"the package index could not be reached: {line}")
    why = ""
    if "No matching distribution" in line:
        why = f" (as a wheel for {python}; sources are not used: building them would run their code on this machine)"
    raise Refused(f"pip: {line}{why}")


async def _pip(arguments: list[str], folder: Path) -> tuple[int, bytes]:
    """Exit code and the end of the output. The working folder is one of ours: no file there is taken for a package."""
    guard = resources.files("sandbox").joinpath("pip_guard.py").read_text("utf-8")
    process = await asyncio.create_subprocess_exec(
        *(await _interpreter_with_pip(), "-c", guard, *arguments),
        cwd=folder,
        env=child_environment(PIP, PIP_DISABLE_PIP_VERSION_CHECK="1"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    output = b""
    try:
        while process.stdout and (chunk := await process.stdout.read(8192)):
            output = (output + chunk)[-_KEPT_BYTES:]
        return await process.wait(), output
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _interpreter_with_pip() -> str:
    """Our own interpreter, else the first Python on the path: not every tool that installs us brings a pip."""
    if importlib.util.find_spec("pip"):
        return sys.executable
    if python := shutil.which("python3"):
        look = await asyncio.create_subprocess_exec(
            python, "-c", "import pip", env=child_environment(), stderr=asyncio.subprocess.DEVNULL
        )
        if await look.wait() == 0:
            return python
    raise Refused(_NO_PIP)
