"""What goes in: plain files of ours, nothing that leads elsewhere; and outputs are written where we say."""

import io
import os
import socket
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sandbox import Bundle, Limits, Refused, write_outputs
from sandbox.bundle import walk_plain
from tests.conftest import Deep


def names_in(packed: bytes) -> dict[str, tuple[int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = {}
        for item in archive:
            content = archive.extractfile(item)
            found[item.name] = (item.mode, content.read() if content else b"")
        return found


def test_folder_is_taken_whole(tmp_path: Path) -> None:
    """Every plain file is taken, with its x bit; empty folders are not."""
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/file").write_bytes(b"\x00\xff")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o700)
    bundle = Bundle.from_folder(tmp_path, byte_cap=100)
    assert bundle.files == {"deep/er/file": b"\x00\xff", "run": b"#!/bin/sh\n"}
    assert bundle.executable == {"run"}


@pytest.mark.parametrize("target", ["/etc/passwd", "folder", "nowhere"])
def test_links_are_refused(tmp_path: Path, target: str) -> None:
    """A link to a file, to a folder or to nothing could lead out of the folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/link").symlink_to(target)
    with pytest.raises(Refused, match="link is a link"):
        Bundle.from_folder(tmp_path, byte_cap=100)


def test_t96_a_folder_that_is_too_deep(deep: Deep, tmp_path: Path) -> None:
    """It is refused in one line, whatever its walk would take; one that is as deep as allowed is walked."""
    with pytest.raises(Refused, match="folders in one another"):
        walk_plain(deep(tmp_path / "deep", 300))
    assert len(walk_plain(deep(tmp_path / "flat", 255))) == 255


def test_link_that_replaced_a_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that became a link after the look is refused when it is opened."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    monkeypatch.setattr("sandbox.bundle.walk_plain", lambda folder: [folder / "link"])
    with pytest.raises(Refused, match="cannot be read"):
        Bundle.from_folder(tmp_path, byte_cap=100_000)


def test_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    """A FIFO that nobody writes into, or a socket, is refused at once."""
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Refused, match="not a plain file; leave it out"):
        Bundle.from_folder(tmp_path, byte_cap=100)
    (tmp_path / "fifo").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket must be short
        try:
            server.bind("s")
        finally:
            os.chdir(here)
        with pytest.raises(Refused):
            Bundle.from_folder(tmp_path, byte_cap=100)


def test_caps_are_exact(tmp_path: Path) -> None:
    """So many bytes and files and no more; a sparse terabyte is refused after as many bytes as the cap allows."""
    (tmp_path / "a").write_bytes(bytes(60))
    (tmp_path / "b").write_bytes(bytes(40))
    assert len(Bundle.from_folder(tmp_path, byte_cap=100, file_cap=2).files) == 2
    with pytest.raises(Refused, match="raise bundle_bytes"):
        Bundle.from_folder(tmp_path, byte_cap=99)
    with pytest.raises(Refused, match="more than 1 files"):
        Bundle.from_folder(tmp_path, byte_cap=100, file_cap=1)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(Refused, match="at sparse"):
        Bundle.from_folder(tmp_path, byte_cap=1000)
    for name in ("a", "nowhere"):
        with pytest.raises(Refused, match="is not a folder; name an existing one"):
            Bundle.from_folder(tmp_path / name, byte_cap=100)
    bundle = Bundle({"a": bytes(1024)})
    assert bundle.pack(1024)
    with pytest.raises(Refused, match=r"has 1KiB, its cap is 1023B; raise bundle_bytes"):
        bundle.pack(1023)


def test_unreadable_names_are_refused(tmp_path: Path) -> None:
    """A file whose name is no text is refused when it is packed; even its digest is no crash."""
    (tmp_path / os.fsdecode(b"bad\xff")).touch()
    bundle = Bundle.from_folder(tmp_path, byte_cap=100)
    assert bundle.digest
    with pytest.raises(Refused, match="unsafe; rename it"):
        bundle.pack(100)


@pytest.mark.parametrize("name", ["..", "../a", "/a", "a/../b", "a//b", "-x", "a/-x", "a\nb", "a\0b", "", ".", "a\\b"])
def test_unsafe_names_are_refused(tmp_path: Path, name: str) -> None:
    """No name leaves the folder or looks like an option, on the way in or out."""
    with pytest.raises(Refused, match="rename it"):
        Bundle({name: b""}).pack(100)
    with pytest.raises(Refused, match="rename it"):
        write_outputs({name: b"1"}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_pack_holds_what_was_given() -> None:
    """The archive has our three folders, and the files under src with their modes."""
    packed = Bundle({"a": b"1", "b/c": b"2"}, frozenset({"a"})).pack(100)
    assert names_in(packed) == {
        "src": (0o755, b""),
        "out": (0o755, b""),
        "tmp": (0o755, b""),
        "src/a": (0o755, b"1"),
        "src/b/c": (0o644, b"2"),
    }


def test_digest_tells_bundles_apart() -> None:
    """Another content, name, mode or file is another digest. The order makes none, and no other archive; the clock is
    not in it.
    """
    bundles = [
        Bundle({"a": b"1", "b": b"2"}),
        Bundle({"a": b"1", "b": b"3"}),
        Bundle({"a": b"1", "c": b"2"}),
        Bundle({"a": b"1"}),
        Bundle({"a": b"2", "b": b"1"}),
        Bundle({"a": b"1", "b": b"2"}, frozenset({"a"})),
        Bundle({"a": b"1", "b": b"2", "c": b""}),
        Bundle({}),
    ]
    assert len({it.digest for it in bundles}) == len(bundles)
    turned = Bundle({"b": b"2", "a": b"1"})
    assert (turned.digest, turned.pack(100)) == (bundles[0].digest, bundles[0].pack(100))


def test_outputs_are_written(tmp_path: Path) -> None:
    """Files arrive as they were taken, in a folder that is made where it is missing."""
    write_outputs({"a": b"1", "deep/er/b": b"\xff"}, tmp_path / "new/er")
    assert (tmp_path / "new/er/a").read_bytes() == b"1"
    assert (tmp_path / "new/er/deep/er/b").read_bytes() == b"\xff"
    (tmp_path / "empty").mkdir()
    write_outputs({"a": b"1"}, tmp_path / "empty")
    assert (tmp_path / "empty/a").read_bytes() == b"1"


def test_outputs_go_into_nothing_that_was_there(tmp_path: Path) -> None:
    """A folder with a planted link, a link to a folder, and a file are refused, and nothing is written through."""
    outside = tmp_path / "outside"
    outside.mkdir()
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "a").symlink_to(outside / "a")
    link = tmp_path / "link"
    link.symlink_to(outside)
    file = tmp_path / "file"
    file.touch()
    for place in (planted, link, file):
        with pytest.raises(Refused, match="name a new one"):
            write_outputs({"a": b"1"}, place)
    assert list(outside.iterdir()) == []


def test_link_that_appears_meanwhile_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link planted between the look and the write is met with a refusal, not followed, and no scraps are left."""
    target, outside = tmp_path / "target", tmp_path / "outside"
    outside.mkdir()
    original = Path.mkdir

    def mkdir_and_plant(self: Path, **wanted: Any) -> None:
        original(self, **wanted)
        if not target.is_symlink():
            target.symlink_to(outside)

    monkeypatch.setattr(Path, "mkdir", mkdir_and_plant)
    with pytest.raises(Refused, match="cannot be written"):
        write_outputs({"a": b"1", "b/c": b"2"}, target)
    assert list(outside.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "target"]


def test_a_name_that_is_a_file_and_a_folder(tmp_path: Path) -> None:
    """It is refused before anything is sent. Outputs are written whole or not at all, and one line says where not."""
    both = {"a": b"", "a/b": b""}
    with pytest.raises(Refused, match="'a' is a file and a folder"):
        Bundle(both).pack(1024)
    with pytest.raises(Refused):
        write_outputs(both, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="name another folder"):
        write_outputs({"a": b"1"}, tmp_path / "file/below")


@pytest.mark.parametrize(
    ("files", "limits", "raised"),
    [
        (100, {"work_inodes": 100}, "work_inodes"),
        (400, {"work_bytes": "1MiB"}, "work_bytes"),
        (3000, {"memory": "16MiB", "work_bytes": "1GiB"}, "memory"),
    ],
)
def test_bundle_without_room(files: int, limits: dict[str, object], raised: str) -> None:
    """A bundle of many small files is measured as it will be unpacked, and the limit to raise is named."""
    with pytest.raises(Refused, match=f"raise {raised}"):
        Bundle({f"f{number}": b"x" for number in range(files)}).check_room(Limits(**limits))
