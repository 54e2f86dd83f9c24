"""Our own package as a rented machine gets it: a wheel of what is installed here, and its few needs, pinned by hash.

The same code gives the same bytes, so a machine that has it already is known by a digest.
"""

import base64
import functools
import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

WHEEL = "blastdoor_sandbox-0-py3-none-any.whl"
REQUIREMENTS = "requirements.txt"
FURNISH = "furnish.sh"
_INFO = "blastdoor_sandbox-0.dist-info"
_KINDS = (".py", ".sh", ".json", ".txt")
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Parcel:
    digest: str
    files: dict[str, bytes]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)


@functools.cache
def parcel() -> Parcel:
    box = resources.files("sandbox.box")
    files = {
        WHEEL: _wheel(),
        REQUIREMENTS: box.joinpath(REQUIREMENTS).read_bytes(),
        FURNISH: box.joinpath(FURNISH).read_bytes(),
    }
    seal = hashlib.sha256()
    for name in sorted(files):
        seal.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return Parcel(seal.hexdigest()[:16], files)


def _wheel() -> bytes:
    files = dict(_sources(resources.files("sandbox"), "sandbox"))
    files[f"{_INFO}/METADATA"] = b"Metadata-Version: 2.1\nName: blastdoor-sandbox\nVersion: 0\n"
    files[f"{_INFO}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: blastdoor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(files.items()))
    files[f"{_INFO}/RECORD"] = f"{record}{_INFO}/RECORD,,\n".encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in sorted(files.items()):
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{name}/{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, path)
        elif entry.is_file() and entry.name.endswith(_KINDS):
            yield path, entry.read_bytes()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
