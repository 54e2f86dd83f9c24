"""Git's pack files, written by hand: two files and three waits for the disk, for any number of objects.

libgit2 writes one file for each object, and waits for the disk twice for each, with the interpreter's lock in its hand.
Objects are whole here, never deltas of one another, so that packs are joined by copying their bytes.
"""

import hashlib
import secrets
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from orchestrator.files import sync, write_new

COMMIT, TREE, BLOB, _TAG = 1, 2, 3, 4
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}

_PACK_HEAD = struct.Struct(">4sII")
_INDEX_HEAD = b"\377tOc\0\0\0\2"
_FANOUT = struct.Struct(">256I")
_HASH = 20
# A pack with so many of them is joined no more. Offsets need no more than 31 bits then.
FULL_BYTES = 64 << 20
FULL_OBJECTS = 20_000

Entries = Mapping[bytes, bytes]  # an object's id → its bytes as they are in a pack


def object_id(kind: int, data: bytes) -> bytes:
    seal = hashlib.sha1(b"%s %d\0" % (_NAMES[kind], len(data)), usedforsecurity=False)
    seal.update(data)
    return seal.digest()


def packed(kind: int, data: bytes) -> bytes:
    """Kind and length, the last four bits first and then seven at a time, and the bytes, compressed."""
    byte, left = kind << 4 | len(data) & 0xF, len(data) >> 4
    head = bytearray()
    while left:
        head.append(byte | 0x80)
        byte, left = left & 0x7F, left >> 7
    head.append(byte)
    return bytes(head) + zlib.compress(data, 1)


def write_packs(folder: Path, entries: Entries) -> list[Path]:
    """On disk for good when it returns. Raises OSError; nobody sees a pack that is not whole."""
    made: list[Path] = []
    part: dict[bytes, bytes] = {}
    size = 0
    for oid, entry in entries.items():
        if part and size + len(entry) > FULL_BYTES:
            made.append(_write_pack(folder, part))
            part, size = {}, 0
        part[oid] = entry
        size += len(entry)
    if part:
        made.append(_write_pack(folder, part))
    # Also where nothing is new: who wrote it may have been killed before this.
    sync(folder)
    return made


def join_packs(folder: Path) -> bool:
    """Join small packs, so that there are few of them however many were written; whether any were.

    One is joined as soon as all smaller ones together are as large, so that bytes are copied a few times only. The new
    one is there before the old ones go: a reader who misses them looks again, and finds it.
    """
    old: list[Path] = []
    entries: dict[bytes, bytes] = {}
    for path in _to_join(folder):
        if found := _read_pack(path):
            entries |= found
            old.append(path)
    if len(old) < 2:
        return False
    made = write_packs(folder, entries)
    for path in set(old).difference(made):
        path.with_suffix(".idx").unlink(missing_ok=True)  # what has none is no pack to anybody
        path.unlink(missing_ok=True)
    return True


def _write_pack(folder: Path, entries: Entries) -> Path:
    oids = sorted(entries)
    parts = [_PACK_HEAD.pack(b"PACK", 2, len(oids)), *(entries[oid] for oid in oids)]
    offsets = list(accumulate(map(len, parts)))[:-1]
    pack = b"".join(parts)
    seal = hashlib.sha1(pack, usedforsecurity=False)
    index = _index(oids, [zlib.crc32(part) for part in parts[1:]], offsets, seal.digest())
    path = folder / f"pack-{seal.hexdigest()}.pack"
    # Called as git calls its own: what is left of a process that was killed here is swept by `git prune`.
    token = secrets.token_hex(8)
    beside = {folder / f"tmp_pack_{token}": pack + seal.digest(), folder / f"tmp_idx_{token}": index}
    try:
        for place, data in beside.items():
            write_new(place, data, 0o444)
        for place, final in zip(beside, (path, path.with_suffix(".idx")), strict=True):  # who has an index has a pack
            place.rename(final)
    finally:
        for place in beside:
            place.unlink(missing_ok=True)
    return path


def _index(oids: Sequence[bytes], checks: Sequence[int], offsets: Sequence[int], pack: bytes) -> bytes:
    starts = [0] * 256
    for oid in oids:
        starts[oid[0]] += 1
    words = struct.Struct(f">{len(oids)}I")
    fanout = _FANOUT.pack(*accumulate(starts))
    body = b"".join([_INDEX_HEAD, fanout, *oids, words.pack(*checks), words.pack(*offsets), pack])
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _to_join(folder: Path) -> list[Path]:
    """Beside one of somebody else are more files than ours have; it is left alone."""
    beside: dict[str, set[str]] = {}
    for path in folder.glob("pack-*"):
        beside.setdefault(path.stem, set()).add(path.suffix)
    ours = [folder / f"{stem}.pack" for stem, suffixes in beside.items() if suffixes == {".pack", ".idx"}]
    found = sorted((path.stat().st_size, path) for path in ours)
    small = [(size, path) for size, path in found if size < FULL_BYTES and _count(path) < FULL_OBJECTS]
    sums = [0, *accumulate(size for size, _ in small)]
    grown = [at for at, (size, _) in enumerate(small) if size <= sums[at]]
    return [path for _, path in small[: max(grown, default=-1) + 1]]


def _count(path: Path) -> int:
    fixed = len(_INDEX_HEAD) + _FANOUT.size + 2 * _HASH
    return (path.with_suffix(".idx").stat().st_size - fixed) // (_HASH + 8)


def _read_pack(path: Path) -> dict[bytes, bytes] | None:
    """None for one with deltas, which is not ours, and for one that is damaged: who reads it must be told by git."""
    index, pack = path.with_suffix(".idx").read_bytes(), path.read_bytes()
    if not (_is_whole(index) and _is_whole(pack)):
        return None
    count, names = _count(path), len(_INDEX_HEAD) + _FANOUT.size
    offsets = struct.unpack_from(f">{count}I", index, names + count * (_HASH + 4))
    ends = dict(pairwise([*sorted(offsets), len(pack) - _HASH]))
    if any(pack[at] >> 4 & 7 > _TAG for at in offsets):
        return None
    oids = (index[at : at + _HASH] for at in range(names, names + count * _HASH, _HASH))
    return {oid: pack[at : ends[at]] for oid, at in zip(oids, offsets, strict=True)}


def _is_whole(data: bytes) -> bool:
    return hashlib.sha1(memoryview(data)[:-_HASH], usedforsecurity=False).digest() == data[-_HASH:]
