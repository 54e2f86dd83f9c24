"""Images: Dockerfile lines built on the engine, from bases that are there already, since no registry is asked."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from grpclib import GRPCError, Status
from modal_proto import api_pb2

from tests.modal_emulator.engine import Engine, EngineError
from tests.modal_emulator.sandboxes import new_id
from tests.modal_emulator.stand_in import BASE, build, stand_in

BUILDER_VERSION = "2025.06"


class Files:
    """Local files that the SDK uploads, by digest, and the trees made of them."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._mounts: dict[str, list[api_pb2.MountFile]] = {}

    def missing(self, digests: list[str]) -> list[str]:
        return [digest for digest in digests if digest not in self._contents]

    def put(self, digest: str, data: bytes) -> None:
        if hashlib.sha256(data).hexdigest() != digest:
            raise GRPCError(Status.INVALID_ARGUMENT, "the content is not what its digest says")
        self._contents[digest] = data

    def mount(self, files: list[api_pb2.MountFile]) -> str:
        mount_id = new_id("mo")
        self._mounts[mount_id] = files
        return mount_id

    def archive(self, mount_ids: list[str], extra: Mapping[str, bytes] | None = None) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for mount_id in mount_ids:
                for file in self._mounts[mount_id]:
                    _add(archive, file.filename.lstrip("/"), self._contents[file.sha256_hex], file.mode)
            for name, data in (extra or {}).items():
                _add(archive, name, data, 0o644)
        return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), (mode & 0o7777) or 0o644
    archive.addfile(entry, io.BytesIO(data))


class Images:
    def __init__(self, engine: Engine, files: Files, emulator: str) -> None:
        self._engine = engine
        self._files = files
        self._emulator = emulator
        self._base = ""
        self._known: dict[str, str] = {}  # image id at Modal -> image on the engine
        self._built: dict[str, str] = {}  # digest of a definition -> image id at Modal
        self._made: set[str] = set()

    async def ready(self) -> None:
        self._base = await stand_in(self._engine)

    async def clear(self) -> None:
        """What was built goes; sandboxes that used it are gone before."""
        for name in self._made:
            await self._engine.json("DELETE", f"/images/{name}", force="true")
        for kept in (self._made, self._known, self._built):
            kept.clear()

    def local(self, image_id: str) -> str:
        if image_id not in self._known:
            raise GRPCError(Status.NOT_FOUND, f"no image {image_id}")
        return self._known[image_id]

    async def build(self, image: api_pb2.Image) -> tuple[str, api_pb2.GenericResult]:
        """The same definition gives the same image; one that failed is tried again."""
        key = hashlib.sha256(image.SerializeToString(deterministic=True)).hexdigest()
        if key not in self._built:
            image_id = new_id("im")
            try:
                self._known[image_id] = await self._make(image, key)
            except EngineError as failure:
                return image_id, api_pb2.GenericResult(
                    status=api_pb2.GenericResult.GENERIC_STATUS_FAILURE, exception=str(failure)
                )
            self._built[key] = image_id
        return self._built[key], api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)

    async def _make(self, image: api_pb2.Image, key: str) -> str:
        tags = {base.docker_tag: self.local(base.image_id) for base in image.base_images}
        lines = [self._line(line, tags) for line in image.dockerfile_commands]
        if len(lines) == 1 and lines[0].startswith("FROM "):
            return lines[0].split()[1]
        name = f"blastdoor-modal-emulator:{self._emulator}-{key[:12]}"
        extra = {file.filename: file.data for file in image.context_files}
        extra["Dockerfile"] = ("\n".join(lines) + "\n").encode()
        mounts = [image.context_mount_id] if image.context_mount_id else []
        await build(self._engine, name, self._files.archive(mounts, extra), json.dumps(dict(image.build_args)))
        self._made.add(name)
        return name

    def _line(self, line: str, tags: Mapping[str, str]) -> str:
        """Only what FROM names is changed: a layer of ours, or the base that stands for one in a registry."""
        word, _, rest = line.strip().partition(" ")
        if word.upper() != "FROM":
            return line
        name, *others = [item for item in rest.split() if not item.startswith("--platform")]
        local = tags.get(name) or (self._base if name == BASE else name)
        return " ".join(["FROM", local, *others])
