"""Images on disk: what `docker save` writes, and layouts of the Open Container Initiative, as a folder or a tar.

Everything is found by its digest, and compared with it: a file that was cut short or changed is refused.
"""

import errno
import gzip
import hashlib
import json
import os
import platform
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from sandbox.backends.runc.layers import Entry, Root
from sandbox.errors import Refused

_CHUNK = 1 << 20
_MOST_JSON = 4 << 20
# Engines put no more than 127 over each other.
_MOST_LAYERS = 512
# By the image's names, which are those of Go.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")


@dataclass(frozen=True, slots=True)
class Image:
    """`digest` is that of its settings, which name its layers by theirs."""

    digest: str
    settings: Mapping[str, Any]
    layers: Sequence[str]


class Archive:
    """One image, in a file or a folder."""

    def __init__(self, place: Path, tar: tarfile.TarFile | None) -> None:
        self._place = place
        self._tar = tar
        self.image = self._read()

    def unpack(self, root: Root) -> None:
        """Every layer in turn. Raises Refused for one that is not what the image's settings say."""
        self._refuse_foreign()
        wanted = self.image.settings.get("rootfs", {}).get("diff_ids", [])
        if len(wanted) != len(self.image.layers) or not wanted:
            raise Refused(f"{self._place.name} names no layers, or other ones than it has; save the image again")
        for digest, layer in zip(wanted, self.image.layers, strict=True):
            with self._opened(layer) as content:
                hashed = _Hashed(_plain(content))
                root.apply(cast(IO[bytes], hashed))
                while hashed.read(_CHUNK):
                    pass
                if hashed.digest != digest:
                    raise Refused(f"a layer in {self._place.name} is not what its image names; save the image again")

    def _refuse_foreign(self) -> None:
        """Its programs would not start, which looks like an outage then."""
        machine = platform.machine()
        ours = ("linux", _ARCHITECTURES.get(machine, machine))
        theirs = tuple(
            self.image.settings.get(name, own) for name, own in zip(("os", "architecture"), ours, strict=True)
        )
        if theirs != ours:
            raise Refused(
                f"the image is for {_shown('/'.join(map(str, theirs)))}, and this machine is {'/'.join(ours)}; "
                "save or build it for this platform"
            )

    def _read(self) -> Image:
        if self._has("manifest.json"):
            return self._saved()
        if self._has("index.json"):
            return self._layout()
        raise Refused(f"{self._place} is no image: neither what `docker save` writes, nor an OCI layout")

    def _saved(self) -> Image:
        manifests = self._json("manifest.json")
        if not isinstance(manifests, list) or len(manifests) != 1:
            raise Refused(f"{self._place.name} holds several images; save one of them")
        content = self._bytes(str(manifests[0]["Config"]))
        layers = [str(layer) for layer in manifests[0]["Layers"]]
        return self._image(content, layers)

    def _layout(self) -> Image:
        described = [it for it in self._json("index.json").get("manifests", []) if it.get("mediaType") in _MANIFESTS]
        if len(described) != 1:
            raise Refused(f"{self._place.name} holds {len(described)} images for this machine; copy one of them")
        manifest = json.loads(self._blob(described[0]["digest"]))
        settings = self._blob(manifest["config"]["digest"])
        layers = [_blob_name(str(layer["digest"])) for layer in manifest["layers"]]
        return self._image(settings, layers)

    def _image(self, content: bytes, layers: Sequence[str]) -> Image:
        settings = json.loads(content)
        if not isinstance(settings, dict):
            raise Refused(f"{self._place.name} has settings that are no table; save the image again")
        if len(layers) > _MOST_LAYERS:
            raise Refused(
                f"{self._place.name} has {len(layers)} layers, and at most {_MOST_LAYERS} are read; flatten it"
            )
        return Image(_sha256(content), settings, layers)

    def _blob(self, digest: str) -> bytes:
        content = self._bytes(_blob_name(digest))
        if _sha256(content) != digest:
            raise Refused(f"{self._place.name} is damaged: {digest[:19]} is something else; save the image again")
        return content

    def _json(self, name: str) -> Any:
        return json.loads(self._bytes(name))

    def _has(self, name: str) -> bool:
        if self._tar is None:
            return (self._place / name).is_file()
        return name in self._tar.getnames()

    def _bytes(self, name: str) -> bytes:
        with self._opened(name) as content:
            found = content.read(_MOST_JSON + 1)
        if len(found) > _MOST_JSON:
            raise Refused(f"{self._place.name} has a description of more than {_MOST_JSON >> 20} MiB; that is no image")
        return found

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        if ".." in Path(name).parts or name.startswith("/"):
            raise Refused(f"{self._place.name} names a file outside of it, {name[:100]!r}; save the image again")
        try:
            content = self._tar.extractfile(name) if self._tar else _plain_file(self._place / name)
        except (KeyError, OSError) as error:
            raise Refused(f"{self._place.name} lacks {name[:100]!r}; save the image again") from error
        if content is None:
            raise Refused(f"{self._place.name} has no file at {name[:100]!r}; save the image again")
        with content:
            yield content


@contextmanager
def open_archive(place: Path) -> Iterator[Archive]:
    """Raises Refused for what is no image."""
    if not place.exists():
        raise Refused(f"{place} is not there; name an archive or a folder that holds an image")
    try:
        if place.is_dir():
            yield Archive(place, None)
            return
        with _plain_file(place) as file, tarfile.open(fileobj=file, tarinfo=Entry) as tar:
            yield Archive(place, tar)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Refused(f"{place} is no whole archive; save the image again") from error
    except RecursionError as error:
        raise Refused(f"{place} is no image that we can read: it is nested too deeply") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Refused(f"{place} is no image that we can read ({_shown(f'{type(error).__name__}: {error}')})") from error


def _plain_file(path: Path) -> IO[bytes]:
    """Raises OSError, also for a pipe: one who opens it would wait for ever."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return os.fdopen(file, "rb")


def _shown(text: str) -> str:
    """A stranger's words: short, and nothing in them acts on a screen."""
    return ascii(text[:100])[1:-1]


class _Hashed:
    """A stream that keeps the digest of what was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self._seal = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        piece = self._content.read(size)
        self._seal.update(piece)
        return piece

    @property
    def digest(self) -> str:
        return f"sha256:{self._seal.hexdigest()}"


def _plain(content: IO[bytes]) -> IO[bytes]:
    head = content.read(4)
    content.seek(0)
    if head[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=content))
    if head == b"\x28\xb5\x2f\xfd":
        raise Refused("a layer of the image is packed with zstd; save it with gzip, or without any")
    return content


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob_name(digest: str) -> str:
    kind, _, value = digest.partition(":")
    if kind != "sha256" or len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise Refused(f"the image names a part by {digest[:80]!r}, and we know sha256 alone")
    return f"blobs/sha256/{value}"
