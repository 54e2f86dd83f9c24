"""Images as folders that chambers have as their root, read-only: unpacked once, kept by the image's id.

A name is one that was loaded here from disk, else one that a Docker engine knows, where there is one. Chambers of two
realms share no file, and with it no cache of the host: each realm has a copy of its own.
"""

import asyncio
import errno
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.answers import fields, needed, text
from sandbox.backends.runc.archives import open_archive
from sandbox.backends.runc.layers import DEFAULT_PATH, Root
from sandbox.backends.runc.trees import copied_tree, make_private
from sandbox.backends.runc.uses import Uses
from sandbox.baking import is_baked
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.posture import image_objections
from sandbox.scratch import scratch, sweep

if TYPE_CHECKING:
    from sandbox.backends.docker.engine import Engine

ASKED_S = 5.0
_PATH = "PATH="
_MOST_PATH = 4096  # characters, in each of whose folders our programs are looked for
_OURS = re.compile(r"blastdoor-([a-z]+):latest")
_ID = re.compile(r"sha256:([0-9a-f]{64})")
_ROOT = re.compile(r"[0-9a-f]{64}(\..+)?")
# An image that is saved and unpacked lies there twice for a while.
_COPIES = 2


@dataclass(frozen=True, slots=True)
class Named:
    """`of_engine`: what a Docker engine had by this name when it was last asked; else it was loaded from disk."""

    name: str
    id: str
    of_engine: bool = False


@dataclass(frozen=True, slots=True)
class Rootfs:
    """`environment` is what the image sets, all of it harmless."""

    id: str
    folder: Path
    environment: tuple[str, ...]


class Images:
    """A folder of unpacked images. Publishing is atomic; what is there never changes.

    `host` is the Docker engine that is asked for a name which was not loaded here.
    """

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self._host = host
        self._known: dict[tuple[str, str], tuple[Rootfs, float]] = {}
        self._turns: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._engines_turn = asyncio.Lock()
        self._engine: Engine | None = None
        self._uses = Uses(folder / "uses")

    async def image(self, name: str, realm: str = "") -> Rootfs:
        """Asked again every few seconds. Raises Refused for one that is not there, or must not become a chamber."""
        known, until = self._known.get((name, realm), (None, 0.0))
        if known and time.monotonic() < until:
            return known
        async with self._turns[name, realm]:
            known, until = self._known.get((name, realm), (None, 0.0))
            if not known or time.monotonic() >= until:
                id_ = await self._used(name)
                settings = self.settings(id_)
                if objections := image_objections(settings):
                    raise Refused(f"the image {name} is refused: {objections[0]}")
                folder = await asyncio.to_thread(self._copy, id_, realm) if realm else self._place(id_)
                known = Rootfs(id_, folder, _environment(settings))
                self._known[name, realm] = (known, time.monotonic() + ASKED_S)
            return known

    async def _used(self, name: str) -> str:
        """From now on nobody removes it."""
        while True:
            id_ = await self.id_of(name)
            with self._writing():
                await asyncio.to_thread(self._uses.hold, self._files(id_))
            if self._place(id_).is_dir():
                return id_

    def load(self, place: Path, name: str) -> str:
        """Take an image from an archive or a layout on disk, and know it by this name from now on. Returns its id."""
        with self._writing(), open_archive(place) as archive:
            id_ = archive.image.digest.removeprefix("sha256:")
            self._take_in(id_, name, fields(archive.image.settings, "config"), archive.unpack)
        return id_

    def adopt(self, archive: Path, name: str, settings: Mapping[str, Any]) -> str:
        """Take a whole root, which is no image yet, from an archive of it. Returns its id."""
        with self._writing(), archive.open("rb") as content:
            seal = hashlib.file_digest(content, "sha256")
            seal.update(json.dumps(settings, sort_keys=True).encode())
            content.seek(0)
            self._take_in(seal.hexdigest(), name, settings, lambda root: root.apply(content))
        return seal.hexdigest()

    @contextmanager
    def making(self) -> Iterator[Path]:
        """A folder for what may become an image; it goes with its maker."""
        with self._writing(), scratch("image", self._roots) as folder:
            yield folder

    def keep(self, made: Path, id_: str, name: str, settings: Mapping[str, Any]) -> None:
        """A folder that was made here, and is taken from there, is an image of this name from now on."""

        def take(root: Root) -> None:
            root.folder.rmdir()
            made.rename(root.folder)

        with self._writing():
            self._take_in(id_, name, settings, take)

    async def is_of_engine(self, name: str) -> bool:
        """Whether an engine that answers has to be asked what stands behind the name."""
        known = self._named(name)
        if known and not known.of_engine:
            return False
        try:
            async with self._engines_turn:
                await self._asked()
        except Unavailable:
            return False
        return True

    def loaded(self) -> dict[str, str]:
        """Ids of images that were loaded from disk or baked here, by their names."""
        named = map(_named, sorted((self.folder / "names").glob("*.json")))
        return {it.name: it.id for it in named if it and not it.of_engine and self._is_whole(it.id)}

    def alias(self, id_: str, name: str, settings: Mapping[str, Any]) -> str:
        """The files of an image with other settings, under a name and an id of their own; nothing is copied."""
        content = json.dumps([id_, dict(settings)], sort_keys=True)
        made = hashlib.sha256(content.encode()).hexdigest()
        with self._writing():
            self._write(self._record(made), {"config": dict(settings), "files": self._files(id_)})
            self._name(Named(name, made))
        return made

    def forget(self, name: str, alias: str) -> None:
        """An alias; the files of its image stay."""
        self._name_file(name).unlink(missing_ok=True)
        self._record(alias).unlink(missing_ok=True)
        self._known = {key: value for key, value in self._known.items() if key[0] != name}

    def unname(self, name: str) -> None:
        """Its files go with the next prune. Raises Refused for a name that stands for nothing on disk."""
        with self._writing():
            if not self._name_file(name).exists():
                raise Refused(f"there is no image {name} on disk; `blastdoor images` lists them")
            self._name_file(name).unlink(missing_ok=True)

    def settings(self, id_: str) -> Mapping[str, Any]:
        return fields(self._read(id_), "config")

    def size(self, id_: str) -> int:
        """Of all its files, in bytes."""
        walked = (Path(folder, name) for folder, _, names in os.walk(self._place(id_)) for name in names)
        return sum({(it.st_dev, it.st_ino): it.st_size for it in map(Path.lstat, walked)}.values())

    def sweep(self) -> tuple[list[str], list[str]]:
        """Remove what processes that died had begun to unpack: what was removed, and what could not be."""
        return sweep(self._roots)

    def prune(self) -> list[str]:
        """Remove unpacked images that no name stands for, those that were baked, and copies for realms, unless somebody
        uses them. The last two are made again when they are needed. What was begun and is nobody's goes, too.
        """
        removed, _ = self.sweep()
        with self._writing(), scratch("image", self._roots) as doomed:
            for place in sorted(it for it in self._roots.iterdir() if _ROOT.fullmatch(it.name) and it.is_dir()):
                with self._uses.alone(place.name) as is_free:
                    # Asked again for each: a process that names an image uses it meanwhile.
                    if is_free and place.name not in self._files_to_keep():
                        self._record(place.name).unlink(missing_ok=True)
                        place.rename(doomed / place.name)
                        removed.append(place.name)
        return removed

    async def id_of(self, name: str) -> str:
        """Unpacked, when it was not yet. Raises Refused for an image that is not there.

        Without an engine, a name that came from one stands for what it stood for last. What is unpacked can be asked
        for by its digest, too, whatever its name stands for meanwhile.
        """
        if (by_id := _ID.fullmatch(name)) and self._is_whole(by_id[1]):
            return by_id[1]
        known = self._named(name)
        if known and not known.of_engine:
            return known.id
        async with self._engines_turn:  # who asks for what was loaded does not wait for an engine that hangs
            return await self._engines(name, known)

    async def _engines(self, name: str, known: Named | None) -> str:
        try:
            engine = await self._asked()
        except Unavailable as error:
            if known:
                return known.id
            raise Refused(
                f"the image {name} is not here, and no Docker engine answers that might have it; {_how_to_get(name)}"
            ) from error
        record = await engine.image(name)
        id_ = needed(record, "Id").removeprefix("sha256:")
        with self._writing():
            await asyncio.to_thread(self._uses.hold, id_)
        if not self._is_whole(id_):
            await asyncio.to_thread(self._refuse_without_room, int(text(record, "Size") or 0))
            with self._writing(), scratch("image", self._roots) as folder:
                archive = folder / "image.tar"
                await engine.save_image(needed(record, "Id"), archive)
                await asyncio.to_thread(self._unpack_saved, archive, id_, fields(record, "Config"))
        if known != Named(name, id_, of_engine=True) and not _ID.fullmatch(name):
            with self._writing():
                self._name(Named(name, id_, of_engine=True))
        return id_

    async def _asked(self) -> "Engine":
        """The engine, once it has answered. Raises Unavailable when it does not."""
        from sandbox.backends.docker.engine import Engine

        if self._engine is None:
            self._engine = await asyncio.to_thread(Engine, self._host, threads=2)
            return self._engine
        try:
            await self._engine.version()
        except Unavailable:
            self._forget_engine()
            raise
        return self._engine

    def close(self) -> None:
        self._forget_engine()
        self._known.clear()
        self._uses.release()

    def _forget_engine(self) -> None:
        if self._engine:
            self._engine.close()
        self._engine = None

    def _unpack_saved(self, archive: Path, id_: str, settings: Mapping[str, Any]) -> None:
        with self._writing(), open_archive(archive) as opened:
            self._publish(id_, settings, opened.unpack)

    def _take_in(self, id_: str, name: str, settings: Mapping[str, Any], unpack: Callable[[Root], None]) -> None:
        """What is there already is the same; it is known by this name from now on."""
        with self._uses.shared(id_):
            if not self._is_whole(id_):
                self._publish(id_, settings, unpack)
            self._name(Named(name, id_))

    def _publish(self, id_: str, settings: Mapping[str, Any], unpack: Callable[[Root], None]) -> None:
        with scratch("image", self._roots) as folder:
            search_path = next(it for it in _environment(settings) if it.startswith(_PATH)).removeprefix(_PATH)
            if len(search_path) > _MOST_PATH:
                raise Refused(f"the image has a PATH of {len(search_path)} characters; take another image")
            root = Root(folder / "root")
            root.folder.mkdir()
            root.folder.chmod(0o755)
            unpack(root)
            root.finish(search_path)
            os.sync()  # a folder under its last name is whole, also after a power cut
            self._write(self._record(id_), {"config": dict(settings), "files": id_})
            self._take(root.folder, self._roots / id_)

    def _copy(self, id_: str, realm: str) -> Path:
        place = self._roots / f"{self._files(id_)}.{realm}"
        with self._writing():
            self._uses.hold(place.name)
        if not place.is_dir():
            with self._writing(), scratch("image", self._roots) as folder:
                copied_tree(self._place(id_), folder / "root")
                os.sync()
                self._take(folder / "root", place)
        return place

    def _take(self, made: Path, place: Path) -> None:
        try:
            made.rename(place)
        except OSError:
            if not place.is_dir():  # somebody else was first with the same image
                raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A disk that is full, or a folder that is not ours, is told in one line; what was begun is removed."""
        try:
            make_private(self.folder)
            self._roots.mkdir(mode=0o700, exist_ok=True)
            yield
        except SandboxError:
            raise
        except OSError as error:
            mend = "free some room there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check its rights"
            raise Refused(f"no image can be unpacked in {self.folder} ({error.strerror}); {mend}") from error

    def _refuse_without_room(self, size: int) -> None:
        with self._writing():
            self._roots.mkdir(mode=0o700, parents=True, exist_ok=True)
            free = shutil.disk_usage(self._roots).free
        if free < _COPIES * size:
            raise Refused(
                f"{self.folder} has {free >> 20} MiB free, and unpacking the image takes {_COPIES * size >> 20} MiB; "
                "free some room there"
            )

    def _files(self, id_: str) -> str:
        """The id of the image whose files these are."""
        return text(self._read(id_), "files") or id_

    def _read(self, id_: str) -> Mapping[str, Any]:
        try:
            found: Mapping[str, Any] = json.loads(self._record(id_).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise Refused(f"the record of image {id_[:12]} in {self.folder} is damaged; load it again") from error
        return found

    def _place(self, id_: str) -> Path:
        return self._roots / (self._files(id_) if self._record(id_).exists() else id_)

    @property
    def _roots(self) -> Path:
        return self.folder / "roots"

    def _record(self, id_: str) -> Path:
        return self._roots / f"{id_}.json"

    def _named(self, name: str) -> Named | None:
        found = _named(self._name_file(name))
        return found if found and self._is_whole(found.id) else None

    def _is_whole(self, id_: str) -> bool:
        """Files without a record are left by a prune that was killed, an empty record by a power cut."""
        try:
            return (self._roots / self._files(id_)).is_dir()
        except Refused:
            return False

    def _files_to_keep(self) -> set[str]:
        """The ids of files that a name stands for which somebody gave."""
        named = filter(None, map(_named, (self.folder / "names").glob("*.json")))
        return {self._files(it.id) for it in named if not is_baked(it.name) and self._is_whole(it.id)}

    def _name(self, named: Named) -> None:
        self._write(self._name_file(named.name), asdict(named))

    def _name_file(self, name: str) -> Path:
        return self.folder / "names" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"

    def _write(self, file: Path, record: Mapping[str, Any]) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f".{uuid.uuid4().hex}")
        with draft.open("w", encoding="utf-8") as target:
            target.write(json.dumps(record))
            target.flush()
            os.fsync(target.fileno())  # else a power cut can leave the name with an empty file
        draft.replace(file)


def _environment(settings: Mapping[str, Any]) -> tuple[str, ...]:
    found = tuple(map(str, settings.get("Env") or ()))
    return found if any(it.startswith(_PATH) for it in found) else (_PATH + DEFAULT_PATH, *found)


def _how_to_get(name: str) -> str:
    load = f"load it (`blastdoor images load PATH {name}`)"
    if ours := _OURS.fullmatch(name):
        return f"build it (`blastdoor images build --backend runc {ours[1]}`), or {load}"
    return load


def _named(file: Path) -> Named | None:
    try:
        return Named(**json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # none, or a file that we did not write
