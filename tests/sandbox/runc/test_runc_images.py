"""Images from disk: by their digests, under a name, whole or not at all."""

import asyncio
import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from platform import machine
from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.backends.runc.images import Images
from sandbox.errors import Refused, Unavailable
from sandbox.trees import remove_unmounted
from tests.conftest import Deep
from tests.sandbox.runc.test_runc_layers import entry, layer

NAME = "own:latest"
PROGRAMS = [(entry(f"bin/{name}", mode=0o755), b"x") for name in ("sh", "head", "tar")]
ANOTHER = layer(*PROGRAMS, (entry("etc/who"), b"another")).getvalue()
HERE = {"os": "linux", "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine(), machine())}


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def settings(
    *layers: bytes, env: tuple[str, ...] = ("PATH=/bin",), platform: Mapping[str, str] = HERE, **more: Any
) -> bytes:
    found = {"config": {"Env": list(env), **more}, "rootfs": {"type": "layers", "diff_ids": [*map(digest, layers)]}}
    return json.dumps({**found, **platform}).encode()


def saved(place: Path, *layers: bytes, config: bytes | None = None) -> Path:
    """What `docker save` writes."""
    config = config or settings(*layers)
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [NAME], "Layers": names}]).encode()
    files = {"manifest.json": manifest, "config.json": config, **dict(zip(names, layers, strict=True))}
    with tarfile.open(place, "w") as archive:
        for name, content in files.items():
            made = tarfile.TarInfo(name)
            made.size = len(content)
            archive.addfile(made, io.BytesIO(content))
    return place


def layout(place: Path, *layers: bytes) -> Path:
    """An OCI layout, its layers packed with gzip."""
    blobs = place / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> str:
        (blobs / hashlib.sha256(content).hexdigest()).write_bytes(content)
        return digest(content)

    packed = [{"digest": put(gzip.compress(content))} for content in layers]
    manifest = put(json.dumps({"config": {"digest": put(settings(*layers))}, "layers": packed}).encode())
    kind = "application/vnd.oci.image.manifest.v1+json"
    (place / "index.json").write_text(json.dumps({"manifests": [{"mediaType": kind, "digest": manifest}]}))
    return place


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "images", f"unix://{tmp_path}/no-engine.sock")


@pytest.fixture
def one() -> bytes:
    return layer(*PROGRAMS, (entry("etc/who"), b"me")).getvalue()


Load = Callable[..., str]


@pytest.fixture
def load(images: Images, tmp_path: Path, one: bytes) -> Load:
    """The usual image, or one of another layer or with other settings, is loaded by its name."""
    return lambda content=one, **changes: images.load(
        saved(tmp_path / "image", content, config=settings(content, **changes)), NAME
    )


@pytest.mark.parametrize("write", [saved, layout])
def test_loaded(images: Images, tmp_path: Path, one: bytes, write: Any) -> None:
    """The same files, whichever way they came, and no engine is asked; a copy for a realm shares none of them."""
    id_ = images.load(write(tmp_path / "image", one), NAME)
    found = asyncio.run(images.image(NAME))
    assert (found.id, found.environment) == (id_, ("PATH=/bin",))
    assert images.loaded() == {NAME: id_}
    plain, apart = (it.folder / "etc/who" for it in (found, asyncio.run(images.image(NAME, "gold"))))
    assert plain.read_text() == apart.read_text() == "me"
    assert plain.stat().st_ino != apart.stat().st_ino


async def test_by_its_digest(images: Images, load: Load) -> None:
    """A job that began with an image keeps it when its name stands for another one, and nobody prunes it meanwhile."""
    first = load()
    assert (await images.image(f"sha256:{first}")).id == first
    load(ANOTHER)
    assert Images(images.folder, "unix:///none").prune() == []
    assert ((await images.image(f"sha256:{first}")).folder / "etc/who").read_text() == "me"
    assert list(images.loaded()) == [NAME]


@pytest.mark.parametrize("left", [None, ""])
def test_files_without_their_record(images: Images, load: Load, left: str | None) -> None:
    """A killed prune or a power cut took it: the image counts as missing, and is whole once it is loaded again."""
    id_ = load()
    record = images.folder / "roots" / f"{id_}.json"
    record.unlink() if left is None else record.write_text(left)
    assert images.loaded() == {}
    with pytest.raises(Refused, match="is not here"):
        asyncio.run(images.image(NAME))
    load()
    assert (asyncio.run(images.image(NAME)).folder / "etc/who").read_text() == "me"
    images.close()
    record.unlink() if left is None else record.write_text(left)
    assert images.prune() == [id_]


def test_pruned_of_what_was_begun(images: Images) -> None:
    """What a process that was killed had begun to unpack goes, by each sweep; what one that lives is at stays."""
    with images.making() as at_work:
        left = at_work.with_name(".blastdoor-scratch-left")
        for clean in (images.prune, lambda: images.sweep()[0]):
            (left / "folder").mkdir(parents=True)
            assert clean() == [left.name]
            assert at_work.is_dir()


@pytest.mark.parametrize("changes", [{"env": ("LD_PRELOAD=/x",)}, {"Volumes": {"/keep": {}}}])
def test_hostile_settings(images: Images, load: Load, changes: Any) -> None:
    load(**changes)
    with pytest.raises(Refused, match=r"LD_PRELOAD|/keep"):
        asyncio.run(images.image(NAME))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"platform": {**HERE, "os": "windows"}}, r"is for windows.*for this platform"),
        ({"platform": {"architecture": "s390x"}}, r"is for linux/s390x.*for this platform"),
        ({"env": ("PATH=/opt",)}, r"no sh on its PATH \('/opt'\)"),
    ],
)
def test_what_no_chamber_starts_from(images: Images, load: Load, changes: Any, why: str) -> None:
    """Told when it is loaded: nothing of it could start, which would look like an outage."""
    with pytest.raises(Refused, match=why):
        load(**changes)
    assert not images.loaded()


async def test_image_without_a_path(images: Images, load: Load) -> None:
    """It gets what an engine gives it, else the runtime finds no sh."""
    load(env=("LANG=C",))
    path, *others = (await images.image(NAME)).environment
    assert path.startswith("PATH=/usr/local/sbin:")
    assert others == ["LANG=C"]


def test_a_changed_layer_is_refused(images: Images, tmp_path: Path, one: bytes) -> None:
    """Nothing of it stays, and the name stands for nothing."""
    with pytest.raises(Refused, match="not what its image names"):
        images.load(saved(tmp_path / "image", ANOTHER, config=settings(one)), NAME)
    assert os.listdir(images.folder / "roots") == []  # noqa: PTH208  names alone
    assert not images.loaded()


def damaged(place: Path, one: bytes) -> None:
    for blob in (layout(place, one) / "blobs" / "sha256").iterdir():
        blob.write_bytes(blob.read_bytes()[:-1])


def hidden(place: Path, _: bytes) -> None:
    """A header that takes all memory."""
    hostile = layer((entry("x", tarfile.XHDTYPE), bytes(2 << 20)), (entry("y"), b"")).getvalue()
    place.write_bytes(gzip.compress(hostile))


def cut(place: Path, one: bytes) -> None:
    place.write_bytes(saved(place, one).read_bytes()[:-9000])


def outside(place: Path, _: bytes) -> None:
    place.mkdir()
    (place / "manifest.json").write_text(json.dumps([{"Config": "../../etc/hostname", "Layers": []}]))


def holding(content: bytes) -> Callable[[Path, bytes], Any]:
    return lambda place, _: place.write_bytes(content)


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (damaged, r"damaged|no whole archive"),
        (hidden, "header of 2 MiB"),
        (cut, ""),
        (outside, "outside"),
        *(
            (holding(it), r"no whole archive|is no image")
            for it in (b"", b"no archive", b"\x1f\x8b broken", bytes(10_240))
        ),
    ],
)
def test_no_image(images: Images, tmp_path: Path, one: bytes, write: Any, why: str) -> None:
    """What is damaged, cut off, none at all, or names a file by a path that climbs, stands for nothing."""
    write(tmp_path / "image", one)
    with pytest.raises(Refused, match=why or None):
        images.load(tmp_path / "image", NAME)
    assert not images.loaded()


def test_unknown_name_without_an_engine(images: Images) -> None:
    with pytest.raises(Refused, match=r"is not here.*blastdoor images load"):
        asyncio.run(images.image("nobody:latest"))


def test_full_disk(images: Images, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and nothing of what was begun is left."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sandbox.backends.runc.layers.shutil.copyfileobj", full)
    with pytest.raises(Refused, match=r"No space left on device.*free some room"):
        load()
    assert os.listdir(images.folder / "roots") == []  # noqa: PTH208  names alone


def test_t96_a_leftover_that_cannot_be_removed(deep: Deep, images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep says so, leaves it, and goes on with the others; it holds none of their locks afterwards."""
    roots = images.folder / "roots"
    for name in ("bad", "deep", "good"):
        deep(roots / f".blastdoor-scratch-{name}", 1_500 if name == "deep" else 2)
    remove = remove_unmounted

    def hard(folder: Path) -> None:
        if folder.name == ".blastdoor-scratch-bad":
            raise PermissionError(errno.EPERM, "Operation not permitted")
        remove(folder)

    monkeypatch.setattr("sandbox.scratch.remove_unmounted", hard)
    removed, left = images.sweep()
    assert (sorted(removed), left) == (
        [".blastdoor-scratch-deep", ".blastdoor-scratch-good"],
        [".blastdoor-scratch-bad"],
    )
    monkeypatch.undo()
    assert images.sweep() == ([".blastdoor-scratch-bad"], [])


def test_t96_a_refusal_is_told_whatever_cannot_be_removed(
    images: Images, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun stays for the next sweep, and its lock does not."""

    def hard(folder: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(folder))

    with monkeypatch.context() as stuck:
        stuck.setattr("sandbox.scratch.remove_unmounted", hard)
        with pytest.raises(Refused, match="in one another"):
            load(layer((entry("d/" * 300), b"")).getvalue())
    removed, left = images.sweep()
    assert (len(removed), left) == (1, [])


def test_the_folder_of_images_is_private(images: Images, load: Load) -> None:
    """As that of chambers: closed to others where it is ours, refused where it is somebody else's."""
    images.folder.mkdir(mode=0o755)
    images.folder.chmod(0o755)
    load()
    assert images.folder.stat().st_mode & 0o777 == 0o700
    os.chown(images.folder, 1234, -1)
    with pytest.raises(Refused, match="belongs to another user"):
        asyncio.run(Images(images.folder, "unix:///nowhere").image(NAME))


def test_sweep_between_a_folder_and_its_lock(images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another owner that connects in that moment takes it for a dead one's; work goes on in another folder."""
    lock = fcntl.flock
    swept = []

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        swept.extend(Images(images.folder, "unix:///nowhere").sweep()[0])
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with images.making() as at_work:
        assert len(swept) == 1
        assert at_work.is_dir()
        assert images.sweep() == ([], [])


def make(images: Images) -> None:
    with images.making() as at_work:
        assert at_work.is_dir()


@pytest.mark.parametrize("work", [make, Images.sweep])
def test_folder_that_goes_before_it_is_opened(images: Images, monkeypatch: pytest.MonkeyPatch, work: Any) -> None:
    """Two that clean up meet, and neither ends by it."""
    (images.folder / "roots" / ".blastdoor-scratch-dead").mkdir(parents=True)
    opened = os.open

    def gone(place: Any, *words: Any) -> int:
        monkeypatch.setattr(os, "open", opened)
        Path(place).rmdir()
        return opened(place, *words)

    monkeypatch.setattr(os, "open", gone)
    work(images)


def roots(images: Images) -> set[str]:
    return {it.name for it in (images.folder / "roots").iterdir() if it.is_dir()}


@pytest.fixture
def two(load: Load) -> tuple[str, str]:
    """An image that was loaded, and the one that was loaded by the same name after it."""
    return load(), load(ANOTHER)


async def test_prune(images: Images, two: tuple[str, str]) -> None:
    """What no name stands for goes with its record, and copies for realms that nobody uses; the rest stays usable."""
    await images.image(NAME, "gold")
    images.close()
    assert images.prune() == sorted([two[0], f"{two[1]}.gold"])
    assert roots(images) == {two[1]}
    assert not (images.folder / "roots" / f"{two[0]}.json").exists()
    assert (await images.image(NAME, "gold")).folder.is_dir()
    assert images.prune() == []


async def test_prune_leaves_what_is_used(images: Images, load: Load, tmp_path: Path) -> None:
    """A live owner keeps its image and its realm's copy, also when their name stands for another one since."""
    id_ = load()
    apart = (await images.image(NAME, "gold")).folder
    others = Images(images.folder, "unix:///nowhere")
    others.load(saved(tmp_path / "2", ANOTHER), NAME)
    assert others.prune() == []
    assert {id_, apart.name} < roots(images)
    images.close()
    assert others.prune() == [id_, apart.name]


async def test_prune_while_an_image_gets_a_name(
    images: Images, two: tuple[str, str], tmp_path: Path, one: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image without a name that is being loaded under another one is not removed under it."""
    pruned: list[str] = []

    def written(_: int) -> None:
        pruned.extend(Images(images.folder, "unix:///nowhere").prune())

    monkeypatch.setattr(os, "fsync", written)  # the last before it has the name
    assert images.load(saved(tmp_path / "image", one), "again:latest") == two[0]
    assert pruned == []
    assert (await images.image("again:latest")).folder.is_dir()


async def test_images_on_a_disk_that_is_read_only(images: Images, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need no lock: nobody can remove them."""
    id_ = load()

    def read_only(*_: Any) -> int:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    assert (await images.image(NAME)).id == id_


class EngineWithOne:
    """A Docker engine that has one image, until it is gone."""

    gone = False
    saves = 0

    def __init__(self, archive: Path) -> None:
        self._archive = archive

    def __call__(self, *_: Any, **__: Any) -> "EngineWithOne":
        if self.gone:
            raise Unavailable("no Docker engine answers")
        return self

    async def version(self) -> dict[str, str]:
        if self.gone:
            raise Unavailable("no Docker engine answers")
        return {}

    async def image(self, name: str) -> dict[str, Any]:
        return {"Id": "sha256:" + "a" * 64, "Size": 10, "Config": {"Env": ["PATH=/bin"]}}

    async def save_image(self, name: str, archive: Path) -> None:
        self.saves += 1
        await asyncio.to_thread(shutil.copy, self._archive, archive)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def engine(tmp_path: Path, one: bytes, monkeypatch: pytest.MonkeyPatch) -> EngineWithOne:
    found = EngineWithOne(saved(tmp_path / "image", one))
    monkeypatch.setattr("sandbox.backends.docker.engine.Engine", found)
    return found


async def test_an_engine_is_needed_once(images: Images, engine: EngineWithOne, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came from an engine stays usable when it is gone, for this process and for the next; it is saved once."""
    monkeypatch.setattr("sandbox.backends.runc.images.ASKED_S", 0.0)
    found = await images.image(NAME)
    assert not images.loaded()
    assert await images.image(NAME) == found
    engine.gone = True
    assert await images.image(NAME) == found
    assert await Images(images.folder, "unix:///nowhere").image(NAME) == found
    assert engine.saves == 1


async def test_loaded_images_do_not_wait_for_an_engine(
    images: Images, engine: EngineWithOne, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes a connection and says nothing keeps those waiting who need it, and nobody else."""
    asked, answers = asyncio.Event(), asyncio.Event()

    async def hangs(_: str) -> dict[str, Any]:
        asked.set()
        await answers.wait()
        raise Unavailable("it was asked for too long")

    monkeypatch.setattr(engine, "image", hangs)
    id_ = load()
    waiting = asyncio.create_task(images.image("engines:latest"))
    await asked.wait()
    assert (await asyncio.wait_for(images.image(NAME), 30)).id == id_
    answers.set()
    with pytest.raises(Unavailable):
        await waiting


@pytest.mark.usefixtures("engine")
async def test_no_room_for_an_image(images: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is saved."""
    monkeypatch.setattr("sandbox.backends.runc.images.shutil.disk_usage", lambda _: SimpleNamespace(free=19))
    with pytest.raises(Refused, match="free some room"):
        await images.image(NAME)
