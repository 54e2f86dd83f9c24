"""What is mounted in our own namespace, as the kernel tells it.

Whoever may mount chose the names in there: any bytes but those that the kernel writes as octal numbers. So lines and
words are told apart as bytes, by what the kernel puts between them and nothing else.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """`options` are those of the file system, not of this mount of it."""

    folder: str
    kind: str
    options: str


def mounts_of(table: bytes) -> Iterator[Mount]:
    for line in table.split(b"\n"):
        if line:
            before, _, after = line.partition(b" - ")
            kind, _, options = [*after.split(b" "), b"", b"", b""][:3]
            yield Mount(_plain(before.split(b" ")[4]), _plain(kind), _plain(options))


def _plain(word: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda it: bytes([int(it[1], 8) & 0xFF]), word))
