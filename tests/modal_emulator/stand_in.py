"""The image that stands for python:3.11-slim-bookworm where no registry can be reached.

Debian's own Python is made to look like the official image's in what Modal's builder uses of it: a command `python`
and a pip, which asks no index. Set-uid programs stay, as they do there.
"""

import hashlib
import io
import tarfile
from pathlib import Path

import pip

from sandbox.answers import needed, text
from tests.modal_emulator.engine import Engine, EngineError

BASE = "python:3.11-slim-bookworm"
NAME = "blastdoor-modal-emulator:base"
_GROUNDS = (BASE, "blastdoor-base:latest", "blastdoor-trial:latest")
_LABEL = "blastdoor.modal-emulator.definition"
_LINES = """
COPY pip /var/lib/pip-to-be/pip
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED \
    && { python3 -m pip --version || cp -r /var/lib/pip-to-be/pip "$(python3 -c \
       'import sysconfig; print(sysconfig.get_path("purelib"))')/"; } \
    && { command -v python || ln -s "$(command -v python3)" /usr/local/bin/python; } \
    && rm -r /var/lib/pip-to-be && python -m pip --version
ENV PIP_NO_INDEX=1 PIP_ROOT_USER_ACTION=ignore
"""


async def stand_in(engine: Engine) -> str:
    """Made once on an engine, again when what it is made of has changed."""
    name, ground = await _ground(engine)
    digest = hashlib.sha256(f"{ground}{pip.__version__}{_LINES}".encode()).hexdigest()
    try:
        if text(await engine.json("GET", f"/images/{NAME}/json"), "Config", "Labels", _LABEL) == digest:
            return NAME
    except EngineError as failure:
        if failure.status != 404:
            raise
    lines = f"FROM {name}{_LINES}LABEL {_LABEL}={digest}\n"
    await build(engine, NAME, _context(lines))
    return NAME


async def build(engine: Engine, name: str, context: bytes, arguments: str = "{}") -> None:
    """Raises EngineError with the last words of a build that failed. It has no network."""
    said: list[str] = []
    query = {"t": name, "networkmode": "none", "buildargs": arguments, "rm": "true", "forcerm": "true"}
    async for step in engine.lines("POST", "/build", context, **query):
        said.append(step.get("stream", ""))
        if "error" in step:
            raise EngineError(500, "".join(said[-20:]) + step["error"])


async def _ground(engine: Engine) -> tuple[str, str]:
    for name in _GROUNDS:
        try:
            return name, needed(await engine.json("GET", f"/images/{name}/json"), "Id")
        except EngineError as failure:
            if failure.status != 404:
                raise
    raise EngineError(404, f"none of {', '.join(_GROUNDS)} is on the engine; run scripts/build-images")


def _context(lines: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(Path(pip.__file__).parent, "pip", filter=_without_byte_code)
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(lines.encode())
        archive.addfile(entry, io.BytesIO(lines.encode()))
    return buffer.getvalue()


def _without_byte_code(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry
