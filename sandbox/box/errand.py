"""What a rented machine is asked to do: one folder with an order and, to run, the bundle.

ROOT/trials/NAME/order.json     the errand
ROOT/trials/NAME/bundle.tar     the files of the candidate
ROOT/trials/NAME/outcome/       what came of it, there all at once (see report.py)
ROOT/images/ID.tar              images that were sent, by their id
ROOT/inputs/DIGEST.tar          large inputs that were sent, by their digest
"""

import io
import tarfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, Field

from sandbox.bundle import Bundle
from sandbox.job import Job

ORDER = "order.json"
BUNDLE = "bundle.tar"
OUTCOME = "outcome"


class Doing(StrEnum):
    """Greet: make a chamber of this job, hear what it says of itself, end it. Run: the whole trial."""

    GREET = "greet"
    RUN = "run"


class Errand(BaseModel, extra="forbid", frozen=True):
    """The job names its image by id. `seconds` is the machine's own clock over all of it."""

    doing: Doing
    job: Job
    runtime: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    seconds: float = Field(gt=0)

    def write(self, folder: Path, bundle: Bundle | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ORDER).write_text(self.model_dump_json(), "utf-8")
        if bundle is not None:
            (folder / BUNDLE).write_bytes(archive(bundle.files, bundle.executable))


def read_errand(folder: Path) -> Errand:
    return Errand.model_validate_json((folder / ORDER).read_bytes())


def read_bundle(folder: Path) -> Bundle:
    """Packed by us, of files that were checked when they were packed into it."""
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    with tarfile.open(folder / BUNDLE) as packed:
        for member in packed:
            content = packed.extractfile(member)
            if content:
                files[member.name] = content.read()
                if member.mode & 0o100:
                    executable.add(member.name)
    return Bundle(files, frozenset(executable))


def archive(files: Mapping[str, bytes], executable: frozenset[str] = frozenset()) -> bytes:
    """Plain files as a plain tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as packed:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            header.mode = 0o755 if name in executable else 0o644
            packed.addfile(header, io.BytesIO(data))
    return stream.getvalue()
