"""Images from disk that were made to be slow or odd to read (T101): refused in one line, or taken."""

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.runc.images import Images
from sandbox.errors import Refused
from tests.sandbox.runc.test_runc_images import NAME, PROGRAMS, digest, saved, settings
from tests.sandbox.runc.test_runc_layers import layer

DEEP = 100_000


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path / "images", "unix:///nowhere")


@pytest.fixture(scope="module")
def one() -> bytes:
    return layer(*PROGRAMS).getvalue()


def odd(one: bytes, **changed: Any) -> bytes:
    return json.dumps({**json.loads(settings(one)), **changed}).encode()


def test_t101_a_search_path_without_end(images: Images, tmp_path: Path, one: bytes) -> None:
    """Each folder of a PATH is looked at, so there are not a hundred thousand of them."""
    config = settings(one, env=("PATH=" + ":".join(f"/{at}" for at in range(100_000)),))
    with pytest.raises(Refused, match="the image has a PATH of 688889 characters; take another image"):
        images.load(saved(tmp_path / "image", one, config=config), NAME)


CONFIGS: dict[str, Callable[[bytes], bytes]] = {
    "deep": lambda one: b'{"config": ' + b"[" * DEEP,
    "deep tables": lambda one: b'{"a": ' * DEEP,
    "nested as deep as it parses": lambda one: odd(one, config={"Env": ["PATH=/bin"], "a": _nested(900)}),
    "no table": lambda one: b"[1]",
    "a giant number": lambda one: b'{"a": ' + b"9" * 9000 + b"}",
    "bad UTF-8": lambda one: b"\xff\xff",
    "a system of marks": lambda one: odd(one, os="\x1b[2J\n" * 1000),
    "layers that are none": lambda one: odd(one, rootfs={"diff_ids": 5}),
    "layers that are texts": lambda one: odd(one, rootfs={"diff_ids": digest(one)}),
    "a root that is none": lambda one: odd(one, rootfs="x"),
    "variables that are none": lambda one: odd(one, config={"Env": 5}),
    "a table of variables": lambda one: odd(one, config={"Env": {"PATH=/bin": 1}}),
    "half of a character": lambda one: odd(one, config={"Env": ["PATH=/bin", "A=\ud800"]}),
    "a null in the PATH": lambda one: odd(one, config={"Env": ["PATH=/\0:/bin"]}),
    "marks in the PATH": lambda one: odd(one, config={"Env": ["PATH=/\x1b[2J\n"]}),
    "NaN": lambda one: odd(one, config={"Env": ["PATH=/bin"], "a": float("nan")}),
    "no settings at all": lambda one: b"",
}


def _nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize("what", CONFIGS)
def test_t101_odd_settings(images: Images, tmp_path: Path, one: bytes, what: str) -> None:
    """Settings that nobody wrote by hand are refused in one line, or taken; nothing of them acts on a screen."""
    said = ""
    try:
        images.load(saved(tmp_path / "image", one, config=CONFIGS[what](one)), NAME)
    except Refused as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 600
    assert bool(said) != bool(images.loaded())


MANIFESTS: dict[str, Any] = {
    "empty": [],
    "a number": 5,
    "no table": [5],
    "no layers": [{"Config": "config.json"}],
    "layers that are none": [{"Config": "config.json", "Layers": {"a": 1}}],
    "many layers": [{"Config": "config.json", "Layers": ["0/layer.tar"] * 10_000}],
    "settings without end": [{"Config": "0/layer.tar", "Layers": []}],
    "itself": [{"Config": "manifest.json", "Layers": ["manifest.json"]}],
    "a link to itself": [{"Config": "link", "Layers": ["link"]}],
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_t101_odd_manifests(images: Images, tmp_path: Path, one: bytes, what: str) -> None:
    """So are manifests."""
    files = {"manifest.json": json.dumps(MANIFESTS[what]).encode(), "config.json": settings(one), "0/layer.tar": one}
    with tarfile.open(tmp_path / "image", "w") as archive:
        for name, content in files.items():
            made = tarfile.TarInfo(name)
            made.size = len(content)
            archive.addfile(made, io.BytesIO(content))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "link"
        archive.addfile(link)
    with pytest.raises(Refused) as error:
        images.load(tmp_path / "image", NAME)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("index", [[], 5, {"manifests": 5}, {"manifests": [5]}, {"manifests": [{"mediaType": []}]}])
def test_t101_odd_layouts(images: Images, tmp_path: Path, index: Any) -> None:
    """And layouts."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image/index.json").write_text(json.dumps(index))
    with pytest.raises(Refused):
        images.load(tmp_path / "image", NAME)


@pytest.mark.parametrize("place", ["image", "image/manifest.json", "image/config.json"])
def test_t101_a_pipe_is_not_waited_for(images: Images, tmp_path: Path, place: str) -> None:
    """What is no plain file is not opened: nobody may ever write into a pipe."""
    if place != "image":
        (tmp_path / "image").mkdir()
        (tmp_path / "image/manifest.json").write_text(json.dumps([{"Config": "config.json", "Layers": []}]))
        (tmp_path / place).unlink(missing_ok=True)
    os.mkfifo(tmp_path / place)
    with pytest.raises(Refused):
        images.load(tmp_path / "image", NAME)


def test_a_layer_that_is_cut_in_its_packing(images: Images, tmp_path: Path, one: bytes) -> None:
    """Bytes that unpack to nothing are told, too."""
    packed = bytearray(gzip.compress(one))
    packed[40:60] = bytes(20)
    with pytest.raises(Refused):
        images.load(saved(tmp_path / "image", bytes(packed)), NAME)
