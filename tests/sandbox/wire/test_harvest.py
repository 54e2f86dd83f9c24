"""The harvest takes plain files out of honest archives, and refuses everything else by name."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.harvest import (
    EXTENSION_CAP,
    NAME_CAP,
    PADDING_CAP,
    PART_CAP,
    PARTS_CAP,
    PAX_RECORDS,
    Harvest,
    safe_name,
)
from tests.sandbox.wire.streams import END, header, member, padded, pax, pax_record, pieces, sealed

PIECES = [1, 700, 65_536]
FILES = {
    "empty": b"",
    "small": b"x",
    "block": bytes(range(256)) * 2,
    "more": bytes(range(256)) * 5 + b"y",
    "deep/er/file": b"\x00\xff",
    "with space": b"s",
    "ümlaut": b"u",
    "n" * 100: b"at the edge of the name field",
    "n" * 101: b"past it",
    "/".join(["d" * 50] * 5): b"past the prefix, too",
    "p" * 90 + "/" + "q" * 90: b"in the prefix",
}


def harvested(
    stream: bytes, piece: int = 65_536, *, byte_cap: int = 2**20, entry_cap: int = 1000
) -> Mapping[str, bytes]:
    harvest = Harvest(byte_cap, entry_cap)
    for part in pieces(stream, piece):
        harvest.feed(part)
    harvest.finish()
    assert harvest.complete
    return harvest.files


def refusal(stream: bytes, *, byte_cap: int = 2**20, entry_cap: int = 1000) -> Fault:
    """The fault of a stream, the same however it is cut."""
    faults = set()
    for piece in PIECES:
        with pytest.raises(WireFault) as caught:
            harvested(stream, piece, byte_cap=byte_cap, entry_cap=entry_cap)
        faults.add(caught.value.fault)
    assert len(faults) == 1
    return faults.pop()


def archive_of(files: Mapping[str, bytes], form: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_python_archives_come_back(form: int, piece: int) -> None:
    """What Python's tarfile packed comes back byte for byte, in each of its formats."""
    files = dict(FILES)
    if form == tarfile.USTAR_FORMAT:
        files = {name: data for name, data in files.items() if len(name) < 98 or "/" in name}  # the rest fits no header
        del files["/".join(["d" * 50] * 5)]
    assert harvested(archive_of(files, form), piece) == files


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("form", ["gnu", "oldgnu", "ustar", "pax", "v7"])
def test_gnu_tar_archives_come_back(tmp_path: Path, form: str, piece: int) -> None:
    """What the machine's own tar packed, as PID 1 calls it, comes back byte for byte, root entry and all."""
    files = dict(FILES)
    if form in ("ustar", "v7"):
        files = {name: data for name, data in files.items() if len(name) < 98}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "empty folder").mkdir()
    command = ["tar", f"--format={form}", "-cf", "-", "-C", str(tmp_path), "."]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    assert harvested(packed, piece) == files


def test_empty_archive() -> None:
    """An archive of nothing is nothing, and complete; one whose end has not come is not."""
    assert harvested(END) == {}
    assert harvested(member(b"./", kind=b"5") + END) == {}
    harvest = Harvest(100, 10)
    harvest.feed(member(b"a", b"x"))
    assert not harvest.complete


def test_old_type_byte_is_a_plain_file() -> None:
    """The type byte NUL of old tars is a plain file, and a name that ends in a slash is a folder."""
    assert harvested(member(b"a", b"x", b"\0") + member(b"d/", b"", b"\0") + END) == {"a": b"x"}


def test_prefix_is_part_of_the_name() -> None:
    """The prefix field of ustar stands before the name; other magics have other things there."""
    assert harvested(member(b"b", b"x", prefix=b"a") + END) == {"a/b": b"x"}
    block = bytearray(header(b"b", 0, prefix=b"a"))
    block[257:265] = b"ustar  \0"
    assert harvested(sealed(block) + END) == {"b": b""}


def test_long_names_by_gnu_and_pax() -> None:
    """Both ways to write a long name are understood, and hold for one member only."""
    long = "/".join(["l" * 200] * 4)
    gnu = member(b"././@LongLink", long.encode() + b"\0", b"L")
    for extension in (gnu, pax((b"path", long.encode()))):
        assert harvested(extension + member(b"short", b"1") + member(b"next", b"2") + END) == {
            long: b"1",
            "next": b"2",
        }


def test_honest_pax_keys() -> None:
    """Times and owners change nothing. A pax size is the size, as the standard says, whatever the header claims."""
    assert harvested(pax((b"mtime", b"1.5"), (b"uname", b"me")) + member(b"a", b"x") + END) == {"a": b"x"}
    stream = pax((b"size", b"3")) + header(b"a", 0) + padded(b"abc") + END
    assert harvested(stream) == {"a": b"abc"}
    stream = pax((b"size", b"0")) + header(b"a", 1024) + member(b"b", b"x") + END
    assert harvested(stream) == {"a": b"", "b": b"x"}


@pytest.mark.parametrize("lie", [2**20 + 1, 10**15])
def test_lying_sizes_cost_nothing(lie: int) -> None:
    """A size beyond the cap is refused at the header, before a byte of it was taken; a pax size likewise, and GNU's
    binary ones, which are for more than anybody may send. One that the stream does not keep is a truncated archive.
    """
    assert refusal(pax((b"size", b"%d" % lie)) + header(b"a", 0)) is Fault.TOO_MANY_BYTES
    if lie < 8**11:
        assert refusal(header(b"a", lie)) is Fault.TOO_MANY_BYTES
    assert refusal(header(b"a", b"\x80" + bytes(10) + b"\x05") + padded(b"abcde") + END) is Fault.TOO_MANY_BYTES
    assert refusal(header(b"a", 5000) + bytes(1024)) is Fault.ARCHIVE_TRUNCATED


def test_byte_cap_is_exact() -> None:
    """As many bytes as the cap pass, over all files together; one more is refused."""
    stream = member(b"a", bytes(600)) + member(b"b", bytes(400)) + END
    assert len(harvested(stream, byte_cap=1000)) == 2
    assert refusal(stream, byte_cap=999) is Fault.TOO_MANY_BYTES


def test_entry_cap_is_exact() -> None:
    """As many entries as the cap pass, folders included, the root not; one more is refused."""
    stream = member(b"./", kind=b"5") + member(b"./a") + member(b"./d/", kind=b"5") + member(b"./d/b") + END
    assert len(harvested(stream, entry_cap=3)) == 2
    assert refusal(stream, entry_cap=2) is Fault.TOO_MANY_FILES


def test_implied_folders_are_counted() -> None:
    """A folder that only a path implies is an entry like any other, once."""
    stream = member(b"a/b/c") + member(b"a/b/d") + END
    assert len(harvested(stream, entry_cap=4)) == 2
    assert refusal(stream, entry_cap=3) is Fault.TOO_MANY_FILES


def test_every_other_kind_is_refused() -> None:
    """Links, devices, FIFOs, sparse files, global headers and whatever else there may be are refused."""
    for code in range(256):
        if chr(code) not in "05Lx\0":
            with pytest.raises(WireFault) as caught:
                harvested(member(b"a", b"", bytes([code])) + END)
            assert caught.value.fault is Fault.ENTRY_KIND, code


BAD_NAMES = [
    *(b"/etc/passwd", b"..", b"../a", b"a/..", b"a/../b", b"a//b", b"a/./b", b"-rf", b"a/-rf", b"a\nb"),
    *(b"a\x1bb", b"a\tb", b"a\\b", b"a\x7fb", b"\xff\xfe", "a\u202eb".encode(), "a\u2028b".encode(), b"a//"),
    *(b"//", b".//a", b"./../a", b"./-a"),
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names_are_refused(name: bytes) -> None:
    """No name leaves the folder, looks like an option, or hides what it is; however it is written."""
    assert refusal(member(name) + END) is Fault.ENTRY_NAME
    assert refusal(pax((b"path", name)) + member(b"good") + END) is Fault.ENTRY_NAME
    assert refusal(member(b"long", name + b"\0", b"L") + member(b"good") + END) is Fault.ENTRY_NAME
    if b"/" not in name and name != b"..":
        assert refusal(member(name, prefix=b"good") + END) is Fault.ENTRY_NAME


@pytest.mark.parametrize("character", ["\x01", "\u202e", "\U000e0041", "-"])
def test_t90_a_refused_name_is_told_in_one_short_line(character: str) -> None:
    name = character * 900
    with pytest.raises(WireFault) as caught:
        safe_name(name)
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()
    assert "of 900 characters" in str(caught.value)


def test_nul_within_a_long_name_is_refused() -> None:
    """A NUL cannot hide the end of a long name."""
    assert refusal(pax((b"path", b"a\0b")) + member(b"good") + END) is Fault.ENTRY_NAME
    assert refusal(member(b"long", b"a\0b\0", b"L") + member(b"good") + END) is Fault.ENTRY_NAME


def test_name_lengths_are_exact() -> None:
    """A part may have 255 bytes, a name 1024, and 128 parts; one more is refused."""
    part, name = "p" * PART_CAP, "/".join(["n" * 204] * 5)
    assert len(name) == NAME_CAP
    deep = "/".join(["d"] * PARTS_CAP)
    for good in (part, name, "é" * 127, deep):
        assert harvested(pax((b"path", good.encode())) + member(b"x") + END) == {good: b""}
    for bad in (part + "p", name + "n", "é" * 128, deep + "/d"):
        assert refusal(pax((b"path", bad.encode())) + member(b"x") + END) is Fault.ENTRY_NAME


@pytest.mark.parametrize(
    "members",
    [
        member(b"a") + member(b"a"),
        member(b"a") + member(b"./a"),
        member(b"a") + member(b"a/b"),
        member(b"a/b") + member(b"a"),
        member(b"a", kind=b"5") + member(b"a"),
        member(b"./", kind=b"5") + member(b".", kind=b"5"),
        member(b"."),
        member(b""),
    ],
)
def test_nothing_is_given_twice(members: bytes) -> None:
    """A name is given once, as a file or as a folder; the root is given once, as a folder."""
    assert refusal(members + END) is Fault.ENTRY_TWICE


def test_folder_again_is_harmless() -> None:
    """A folder that a path implied may be named afterwards, as some tars do."""
    assert harvested(member(b"a/b") + member(b"a/", kind=b"5") + END) == {"a/b": b""}


@pytest.mark.parametrize(
    "stream",
    [
        header(b"a", b"0000000009a\0") + END,
        header(b"a", b"-0000000001\0") + END,
        b"\x01" + header(b"a")[1:] + END,
        b"x" * 512 + END,
        member(b"d/", b"content", b"5") + END,
        member(b"d/", b"content", b"0") + END,
        pax((b"size", b"1")) + header(b"d/", 0, b"5") + padded(b"c") + END,
        bytes(512) + member(b"a") + END,
        header(b"pax", EXTENSION_CAP + 1, b"x"),
        header(b"long", EXTENSION_CAP + 1, b"L"),
        pax((b"a", b"b")) * 3 + member(b"x") + END,
        member(b"pax", b"nonsense", b"x") + member(b"x") + END,
        member(b"pax", b"99 path=short\n", b"x") + member(b"x") + END,
        member(b"pax", b"3 \n", b"x") + member(b"x") + END,
        member(b"pax", b"0 path=a\n", b"x") + member(b"x") + END,
        member(b"pax", b"-12 path=abc\n", b"x") + member(b"x") + END,
        member(b"pax", b"9 pathabc", b"x") + member(b"x") + END,
        member(b"pax", b"10 path=ab", b"x") + member(b"x") + END,
        pax((b"size", b"-1")) + member(b"x") + END,
        pax((b"size", b"1" * 19)) + member(b"x") + END,
        pax((b"size", "\u0661".encode())) + member(b"x") + END,
        pax((b"size", b"")) + member(b"x") + END,
    ],
)
def test_malformed_archives_are_refused(stream: bytes) -> None:
    """Bad numbers, checksums, extensions and records are refused as malformed."""
    assert refusal(stream) is Fault.ARCHIVE_MALFORMED


def test_extension_caps_are_exact() -> None:
    """Two extensions of 8 KiB may stand before a member; the cases above have one more of each."""
    comment = b"c" * (EXTENSION_CAP - len(b"8192 comment=\n"))
    full = pax_record(b"comment", comment)
    assert len(full) == EXTENSION_CAP
    stream = (member(b"pax", full, b"x") * 2 + member(b"a", b"x")) * 2
    assert refusal(stream + END) is Fault.ENTRY_TWICE
    assert harvested(member(b"pax", full, b"x") * 2 + member(b"a", b"x") + END) == {"a": b"x"}


@pytest.mark.parametrize("key", [b"GNU.sparse.major", b"GNU.sparse.map", b"GNU.sparse.realsize"])
def test_sparse_files_are_refused(key: bytes) -> None:
    """A sparse file, which claims terabytes in a few bytes, is no plain file."""
    assert refusal(pax((key, b"1")) + member(b"x") + END) is Fault.ENTRY_KIND


def test_truncated_at_every_block() -> None:
    """An archive without its whole end is refused, wherever it breaks off."""
    stream = member(b"./", kind=b"5") + pax((b"path", b"a/b")) + member(b"x", b"data") + END
    for length in range(0, len(stream) - 1, 128):
        assert refusal(stream[:length] or b"\0") is Fault.ARCHIVE_TRUNCATED


def test_padding_cap_is_exact() -> None:
    """Tar pads its last record with zeros: so many are allowed, one more is not, and nothing but zeros."""
    assert harvested(END + bytes(PADDING_CAP)) == {}
    assert refusal(END + bytes(PADDING_CAP + 1)) is Fault.ARCHIVE_TRAILING
    assert refusal(END + bytes(100) + b"\x01") is Fault.ARCHIVE_TRAILING
    assert refusal(END + member(b"second")) is Fault.ARCHIVE_TRAILING


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_archives_are_refused(compress: Callable[[bytes], bytes]) -> None:
    """Nothing compressed is accepted: there is no bomb to defuse."""
    stream = compress(member(b"zeros", bytes(100_000)) + END)
    assert refusal(stream + bytes(1024)) is Fault.ARCHIVE_MALFORMED


@pytest.mark.parametrize("kind", ["symlink", "hard link", "fifo"])
def test_special_files_of_a_real_tar_are_refused(tmp_path: Path, kind: str) -> None:
    """What the machine's tar writes for a symlink, a second hard link and a FIFO is refused."""
    (tmp_path / "a").write_bytes(b"x")
    match kind:
        case "symlink":
            (tmp_path / "l").symlink_to("/etc/passwd")
        case "hard link":
            (tmp_path / "b").hardlink_to(tmp_path / "a")
        case "fifo":
            os.mkfifo(tmp_path / "f")
    stream = subprocess.run(["tar", "-cf", "-", "-C", str(tmp_path), "."], check=True, capture_output=True).stdout
    assert refusal(stream) is Fault.ENTRY_KIND


def test_safe_names() -> None:
    """A leading ./ is dropped; the root has no name. One of our own that is no UTF-8 is refused, not a crash."""
    safe = {"./a": "a", "././a": "a", ".": "", "./": "", "": "", "a/b": "a/b", "...": "..."}
    assert {name: safe_name(name) for name in safe} == safe
    for name in ("\udcff", "a/\ud800", "\udc2e\udc2e/a"):
        with pytest.raises(WireFault) as caught:
            safe_name(name)
        assert caught.value.fault is Fault.ENTRY_NAME
        assert str(caught.value).isascii()


def test_pax_records_are_capped() -> None:
    """As many records as honest tars write many times over are read; one more is refused."""
    records = [(b"comment", b"x")] * PAX_RECORDS
    assert harvested(pax(*records) + member(b"a", b"x") + END) == {"a": b"x"}
    assert refusal(pax(*records, (b"comment", b"x")) + member(b"a", b"x") + END) is Fault.ARCHIVE_MALFORMED
