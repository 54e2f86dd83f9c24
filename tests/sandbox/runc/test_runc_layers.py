"""Layers are a stranger's archives: they become files of one folder, or nothing."""

import io
import os
import shutil
import socket
import stat
import struct
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.backends.runc.layers import Root
from sandbox.errors import Refused
from tests.conftest import Deep


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def sparse(size: int) -> io.BytesIO:
    """One file that is all hole: some bytes in the archive, `size` of them on disk."""
    made = entry("hole")
    made.pax_headers = {"GNU.sparse.map": f"{size},0", "GNU.sparse.size": str(size)}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(made)
    packed.seek(0)
    return packed


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.mtime = kind, link, mode, 1_600_000_000
    made.uid, made.gid = os.getuid(), os.getgid()
    return made


@pytest.fixture
def root(tmp_path: Path) -> Root:
    folder = tmp_path / "outside" / "root"
    folder.mkdir(parents=True)
    return Root(folder)


def tree(root: Root) -> dict[str, bytes]:
    return {
        str(path.relative_to(root.folder)): path.read_bytes()
        for path in sorted(root.folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_files_keep_mode_and_time(root: Root) -> None:
    """Byte code of Python is good only while its source's time is the one that it knows."""
    root.apply(layer((entry("./usr/bin/tool", mode=0o4755), b"x")))
    found = (root.folder / "usr/bin/tool").stat()
    assert (found.st_mode & 0o7777, found.st_mtime) == (0o4755, 1_600_000_000)


def test_a_later_layer_wins_and_removes(root: Root) -> None:
    """A file is replaced, one is marked as gone, and a folder is emptied of what was there, not of what comes."""
    root.apply(layer((entry("a"), b"1"), (entry("b"), b"1"), (entry("d/old"), b"1"), (entry("d/e/old"), b"1")))
    root.apply(layer((entry("a"), b"2"), (entry(".wh.b"), b""), (entry("d/new"), b"2"), (entry("d/.wh..wh..opq"), b"")))
    assert tree(root) == {"a": b"2", "d/new": b"2"}


SYM, LNK = tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    ("why", "entries"),
    [
        *(
            (r"climbs out|not relative", [(entry(it), b"x")])
            for it in ("../x", "a/../../x", "/etc/x", "usr/../../../x")
        ),
        ("circles", [(entry("a", SYM, "b"), b""), (entry("b", SYM, "a"), b""), (entry("a/x"), b"")]),
        *(("", [(entry("x", LNK, it), b"")]) for it in ("../victim", "/etc/passwd", "nowhere")),
        ("no file of it", [(entry("up", SYM, ".."), b""), (entry("x", LNK, "up/victim"), b"")]),
        *(("device", [(entry("srv/sda", it), b"")]) for it in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)),
        *(("", [(entry(it), b"")]) for it in (".wh...", ".wh..", ".wh.")),
        *(
            ("header of 2 MiB", [(entry("x", it), bytes(2 << 20)), (entry("y"), b"")])
            for it in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        ),
    ],
)
def test_layers_that_are_refused(root: Root, why: str, entries: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    """Names that climb, links in circles or to files of others, devices, whiteouts of the root itself,
    headers of any size, which are read at once: nothing of them is written.
    """
    (root.folder.parent / "victim").write_text("x")
    with pytest.raises(Refused, match=why or None):
        root.apply(layer(*entries))
    assert not tree(root)


@pytest.mark.parametrize("field", [{"mtime": 2**70}, {"uid": 2**40}, {"gid": 2**40}, {"uid": -5}])
def test_numbers_that_no_file_can_have(root: Root, field: dict[str, int]) -> None:
    hostile = entry("x")
    for name, value in field.items():
        setattr(hostile, name, value)
    with pytest.raises(Refused, match="an owner or a time"):
        root.apply(layer((hostile, b"x")))


def test_devices_below_dev_are_left_out(root: Root) -> None:
    """A chamber has its own."""
    root.apply(layer(*((entry("dev/sda", it), b"") for it in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE))))
    assert not (root.folder / "dev/sda").exists()


@pytest.mark.parametrize("target", ["/", "/..", "../..", "../../../../../.."])
def test_a_file_behind_a_link_stays_inside(root: Root, target: str) -> None:
    """A link that points out of the folder is followed as a chamber would: to its own root."""
    root.apply(layer((entry("door", tarfile.SYMTYPE, target), b""), (entry("door/planted"), b"x")))
    assert tree(root) == {"planted": b"x"}
    assert os.listdir(root.folder.parent) == ["root"]  # noqa: PTH208  names alone


def test_a_file_is_not_written_through_a_link(root: Root) -> None:
    """A link at the place of a file is replaced, never followed."""
    outside = root.folder.parent / "victim"
    outside.write_text("whole")
    root.apply(layer((entry("x", tarfile.SYMTYPE, str(outside)), b""), (entry("x"), b"new")))
    assert outside.read_text() == "whole"
    assert tree(root) == {"x": b"new"}


@pytest.mark.parametrize("gone", [entry("a", tarfile.DIRTYPE, mode=0o755), entry(".wh.a")])
def test_a_link_that_is_gone_is_not_followed(root: Root, gone: tarfile.TarInfo) -> None:
    """A file goes where the path leads now, not where it led before."""
    root.apply(
        layer(
            (entry("b", tarfile.DIRTYPE, mode=0o755), b""),
            (entry("a", tarfile.SYMTYPE, "b"), b""),
            (entry("a/x"), b"1"),
        )
    )
    root.apply(layer((gone, b""), (entry("a/y"), b"2")))
    assert tree(root) == {"a/y": b"2", "b/x": b"1"}


def test_more_than_the_disk_holds(root: Root) -> None:
    """Refused before the first byte of it, while there is room for others."""
    with pytest.raises(Refused, match=r"would fill the disk at /hole.*free some room"):
        root.apply(sparse(1 << 50))
    assert not tree(root)


def test_the_last_of_a_disk_is_left_to_others(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files fill a disk as one large one does."""
    room = iter(range(2 << 30, 0, -(400 << 20)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1 << 40, free=next(room)))
    with pytest.raises(Refused, match="would fill the disk at /3"):
        root.apply(layer(*((entry(str(number)), b"x") for number in range(9))))
    assert set(tree(root)) == {"0", "1", "2"}


def test_not_a_root(root: Root) -> None:
    """A folder without a shell is no root of a chamber, nor one whose mount points lead elsewhere."""
    with pytest.raises(Refused, match="no sh"):
        root.finish()
    for name in ("sh", "head", "tar"):
        root.apply(layer((entry(f"usr/bin/{name}", mode=0o755), b"x")))
    root.apply(layer((entry("bin", tarfile.SYMTYPE, "usr/bin"), b"")))
    root.apply(layer((entry("tmp", tarfile.DIRTYPE, mode=0o755), b"")))
    root.finish()
    # A runtime gives what it mounts there the folder's mode, whatever was asked for.
    modes = {name: (root.folder / name).stat().st_mode & 0o7777 for name in ("dev", "inputs", "nvidia", "tmp", "work")}
    assert modes == {"dev": 0o755, "inputs": 0o755, "nvidia": 0o755, "tmp": 0o1777, "work": 0o700}
    (root.folder / "work").rmdir()
    (root.folder / "work").symlink_to("/etc")
    with pytest.raises(Refused, match="/work"):
        root.finish()


def test_no_archive(root: Root) -> None:
    with pytest.raises(Refused, match="no archive"):
        root.apply(io.BytesIO(b"\x00garbage" * 400))


@pytest.mark.parametrize(
    "names",
    [
        ["/".join(["d"] * 3_000)],
        ["/".join(["d" * 200] * 12)],
        ["/".join(["d"] * 900), "/".join(["d"] * 901)],
        ["d/" * 257],
    ],
    ids=["folders", "bytes", "two", "folder"],
)
def test_t96_names_that_are_too_deep(root: Root, names: list[str]) -> None:
    """Nobody could copy such a tree, or name a file in it: it is refused before anything of it is made."""
    with pytest.raises(Refused, match=r"in one another|characters"):
        root.apply(layer(*((entry(name), b"x") for name in names)))
    assert not tree(root)


def test_t96_short_names_that_lead_deep(root: Root) -> None:
    """Each name has a few parts, and begins behind a link that leads as deep as the one before it."""
    entries = []
    for number in range(20):
        end = "/".join(["d"] * 100)
        behind = f"l{number - 1}/" if number else ""
        entries.append((entry(f"{behind}{end}/x"), b"x"))
        entries.append((entry(f"l{number}", tarfile.SYMTYPE, f"{behind}{end}"), b""))
    with pytest.raises(Refused, match="in one another"):
        root.apply(layer(*entries))


def test_t96_the_control_is_as_deep_as_allowed(root: Root) -> None:
    """A tree of 256 names in one another is a layer like any other."""
    root.apply(layer((entry("/".join(["d"] * 255 + ["x"])), b"1")))
    assert [path.rpartition("/")[2] for path in tree(root)] == ["x"]
    root.apply(layer((entry(".wh.d"), b"")))
    assert not tree(root)


def test_t96_what_commands_left_is_settled(root: Root) -> None:
    """No bit that raises who runs a file, no pipe, no socket, no device; a folder keeps its bit, a link its target."""
    inside, outside = root.folder / "a/b", root.folder.parent / "outside"
    inside.mkdir(parents=True)
    outside.write_text("x")
    outside.chmod(0o4755)
    for name, mode in {"plain": 0o755, "user": 0o4755, "group": 0o2711, "both": 0o6000}.items():
        (inside / name).write_text("x")
        (inside / name).chmod(mode)
    inside.chmod(0o2755)
    (inside / "link").symlink_to(outside)
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(inside / "socket"))
    if os.geteuid() == 0:
        os.mknod(inside / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    root.settle()
    modes = {it.name: it.lstat().st_mode & 0o7777 for it in inside.iterdir() if not it.is_symlink()}
    assert modes == {"plain": 0o755, "user": 0o755, "group": 0o711, "both": 0}
    assert (inside / "link").readlink() == outside
    assert [it.stat().st_mode & 0o7777 for it in (inside, outside)] == [0o2755, 0o4755]


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user gives no file capabilities")
def test_t96_no_file_has_capabilities(root: Root) -> None:
    """A chamber gives none, and the kernel runs no program there that asks for some."""
    program = root.folder / "program"
    shutil.copy("/bin/true", program)
    effective, net_raw = 0x02000001, 1 << 13
    os.setxattr(program, "security.capability", struct.pack("<5I", effective, net_raw, 0, 0, 0))
    alone = ["setpriv", "--bounding-set=-all", "--no-new-privs", str(program)]
    assert subprocess.run(alone, capture_output=True, check=False).returncode
    root.settle(raising=True)
    assert os.listxattr(program) == ["security.capability"]
    root.settle()
    assert os.listxattr(program) == []
    subprocess.run(alone, check=True)


def test_t96_what_commands_left_too_deep(deep: Deep, root: Root) -> None:
    deep(root.folder / "a", 300)
    with pytest.raises(Refused, match="in one another"):
        root.settle()
