"""Hostile archives that the candidate sends in PID 1's place, byte by byte as it likes."""

import gzip
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sandbox.attacks.artifacts.left_behind import refused
from sandbox.attacks.attack import QUICK, Arena, Finding, attack
from sandbox.attacks.forge import END, FORGING, header, member, pax, run_forged
from sandbox.job import Limits
from sandbox.wire.faults import Fault


@dataclass(frozen=True, slots=True)
class Forged:
    """Bytes that are sent as the outputs, and the fault for which they must be refused."""

    id: str
    title: str
    archive: bytes
    fault: Fault
    limits: Limits = QUICK
    repeat: int = 1


SMALL = QUICK.model_copy(update={"output_bytes": 1 << 20, "output_files": 100})

FORGED = (
    Forged(
        "T47",
        "forged symlink, then a file behind it",
        header(b"way", kind=b"2", link=b"/etc") + member(b"way/cron.d", b"x") + END,
        Fault.ENTRY_KIND,
    ),
    Forged(
        "T48", "forged hard link to a host file", header(b"way", kind=b"1", link=b"/etc/passwd") + END, Fault.ENTRY_KIND
    ),
    *(
        Forged("T49", f"forged name: {what}", member(name, b"x") + END, Fault.ENTRY_NAME)
        for what, name in (
            ("parent folder", b"../escaped"),
            ("parent folder in the middle", b"a/../../escaped"),
            ("absolute", b"/tmp/escaped"),
            ("absolute after a dot", b".//tmp/escaped"),
            ("bad UTF-8", b"\xff\xfe"),
            ("leading dash", b"-rf"),
        )
    ),
    Forged(
        "T49",
        "forged name: parent folder through the prefix field",
        header(b"escaped", prefix=b"../..") + END,
        Fault.ENTRY_NAME,
    ),
    Forged(
        "T49",
        "forged name: absolute through a GNU long name",
        member(b"././@LongLink", b"/tmp/escaped\0", b"L") + member(b"a") + END,
        Fault.ENTRY_NAME,
    ),
    Forged(
        "T49",
        "forged name: a NUL byte through pax",
        pax(path=b"good\0/../../escaped") + member(b"a") + END,
        Fault.ENTRY_NAME,
    ),
    Forged("T49", "the same name twice", member(b"a", b"1") + member(b"./a", b"2") + END, Fault.ENTRY_TWICE),
    Forged("T49", "a file that becomes a folder", member(b"a", b"1") + member(b"a/b", b"2") + END, Fault.ENTRY_TWICE),
    Forged("T49", "a folder that becomes a file", member(b"a/b", b"1") + member(b"a", b"2") + END, Fault.ENTRY_TWICE),
    Forged("T50", "forged FIFO", header(b"pipe", kind=b"6") + END, Fault.ENTRY_KIND),
    Forged("T51", "forged character device", header(b"mem", kind=b"3") + END, Fault.ENTRY_KIND),
    Forged("T51", "forged block device", header(b"disk", kind=b"4") + END, Fault.ENTRY_KIND),
    Forged("T52", "a size in base 256", header(b"a", b"\x80" + b"\0" * 6 + b"\x01" * 5), Fault.TOO_MANY_BYTES),
    Forged("T52", "a negative size in base 256", header(b"a", b"\xff" * 12), Fault.TOO_MANY_BYTES),
    Forged("T52", "a size with a sign", header(b"a", b"-0000000010\0"), Fault.ARCHIVE_MALFORMED),
    Forged("T52", "a header that announces eight gigabytes", header(b"a", (1 << 33) - 1), Fault.TOO_MANY_BYTES),
    Forged(
        "T52", "a pax size over the cap", pax(size=b"999999999999") + member(b"a", b"x") + END, Fault.TOO_MANY_BYTES
    ),
    Forged(
        "T52",
        "a pax size that hides the next header in a body",
        pax(size=b"0") + header(b"a", 512) + header(b"../escaped") + END,
        Fault.ENTRY_NAME,
    ),
    Forged("T52", "an old GNU sparse file", header(b"a", 0, b"S") + END, Fault.ENTRY_KIND),
    Forged(
        "T52",
        "a pax sparse file",
        pax(**{"GNU.sparse.major": b"1", "GNU.sparse.realsize": b"1099511627776"}) + member(b"a") + END,
        Fault.ENTRY_KIND,
    ),
    Forged("T52", "one more entry than allowed", member(b"d/", kind=b"5"), Fault.TOO_MANY_FILES, SMALL, 200),
    Forged(
        "T52",
        "one path that implies more folders than allowed",
        member(b"long", b"a/" * 120 + b"a\0", b"L") + member(b"a"),
        Fault.TOO_MANY_FILES,
        SMALL,
    ),
    Forged("T52", "roots without end", member(b"./", kind=b"5"), Fault.ENTRY_TWICE, SMALL, 200),
    Forged("T52", "name extensions without end", pax(path=b"a"), Fault.ARCHIVE_MALFORMED, SMALL, 200),
    Forged("T52", "a wrong checksum", header(b"a").replace(b"ustar", b"USTAR") + END, Fault.ARCHIVE_MALFORMED),
    Forged("T53", "gzip in place of an archive", gzip.compress(bytes(1 << 20)) + END, Fault.ARCHIVE_MALFORMED),
    Forged("T58", "a name whose basename is ..", member(b"a/..", b"x") + END, Fault.ENTRY_NAME),
    Forged("T58", "a name that is ..", member(b"..", b"x") + END, Fault.ENTRY_NAME),
    Forged("T58", "a folder whose name is ./..", header(b"./../", kind=b"5") + END, Fault.ENTRY_NAME),
)


def _attempt(forged: Forged) -> Callable[[Arena], Coroutine[Any, Any, Finding]]:
    async def attempt(arena: Arena) -> Finding:
        started = time.monotonic()
        seen = await run_forged(arena, forged.archive, forged.limits, forged.repeat)
        return refused(seen, forged.fault, time.monotonic() - started, FORGING in seen.log)

    return attempt


GVISOR = "orders can only be stolen, not written: the sentry holds the reading end of PID 1's stdin alone"

for _forged in FORGED:
    attack(_forged.id, _forged.title, is_bytes=True, runsc=GVISOR)(_attempt(_forged))
