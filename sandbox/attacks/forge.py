"""What several rows share: hostile archives built byte by byte, the guest's tools to speak in PID 1's place, and a look
at what is left of a chamber.

Candidate and PID 1 share a uid, so the candidate can open PID 1's pipes through /proc. That is not prevented but
accounted for: whatever comes after delivery is the candidate's own word. These helpers make it speak.
"""

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.attacks.attack import IMAGE, PROBE, QUICK, Arena, name_of
from sandbox.backend import Listener, Talk
from sandbox.bundle import Bundle, write_outputs
from sandbox.job import Job, Limits, Outcome

BLOCK = 512
END = bytes(2 * BLOCK)
RACES = 20
FORGING = "forging"


def header(name: bytes, size: int | bytes = 0, kind: bytes = b"0", *, link: bytes = b"", prefix: bytes = b"") -> bytes:
    """One tar header with a right checksum and anything else one likes; `size` as bytes is taken as it is."""
    sized = size if isinstance(size, bytes) else b"%011o\0" % size
    block = bytearray(BLOCK)
    block[0:100] = name[:100].ljust(100, b"\0")
    block[100:124] = b"0000644\0" + b"0000000\0" * 2
    block[124:136] = sized.ljust(12, b"\0")[:12]
    block[136:148] = b"00000000000\0"
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[157:257] = link[:100].ljust(100, b"\0")
    block[257:265] = b"ustar\x0000"
    block[345:500] = prefix[:155].ljust(155, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def member(name: bytes, body: bytes = b"", kind: bytes = b"0") -> bytes:
    """A header with its content, padded as tar wants it."""
    return header(name, len(body), kind) + body + bytes(-len(body) % BLOCK)


def pax(**keys: bytes) -> bytes:
    """A pax extension for the member that follows."""
    records = b""
    for key, value in keys.items():
        rest = b" " + key.encode() + b"=" + value + b"\n"
        length = len(rest) + 1
        while len(b"%d" % length) + len(rest) != length:
            length += 1
        records += b"%d" % length + rest
    return member(b"pax", records, b"x")


@dataclass(frozen=True, slots=True)
class Seen:
    """An outcome, and whether nothing is left of the chamber that it came from."""

    outcome: Outcome
    gone: bool

    @property
    def log(self) -> str:
        return self.outcome.log_tail.decode("utf-8", "replace")


async def run_seen(
    arena: Arena,
    source: str,
    *,
    limits: Limits = QUICK,
    files: Mapping[str, bytes] | None = None,
    listener: Listener | None = None,
    talk: Talk | None = None,
    **job: Any,
) -> Seen:
    """Like `Arena.run`, with `forge.py` beside the candidate, and a look at what is left afterwards."""
    named = {"attack.py": source.encode(), "probe.py": PROBE.encode(), "forge.py": FORGE.encode()}
    bundle = Bundle({**named, **(files or {})})
    asked = Job(**{"command": ("python3", "attack.py"), "image": IMAGE, "limits": limits, **job})
    if not arena.has_host:
        async with await arena.backend.open(asked) as chamber:
            return Seen(await chamber.run(bundle, listener=listener, talk=talk), gone=True)
    async with await arena.backend.open(asked) as chamber:
        outcome = await chamber.run(bundle, listener=listener, talk=talk)
    return Seen(outcome, not await arena.host.knows(name_of(chamber)))


async def run_forged(arena: Arena, archive: bytes, limits: Limits = QUICK, repeat: int = 1) -> Seen:
    """Hand over these bytes, `repeat` times, in place of the outputs."""
    source = f"import forge\nforge.hand_over(open('archive', 'rb').read(), {repeat})"
    return await run_racing(arena, source, files={"archive": archive}, limits=limits)


async def run_racing(arena: Arena, source: str, **rest: Any) -> Seen:
    """Run a forger again when it was not heard to forge: where orders can only be stolen, PID 1 may be faster."""
    for _ in range(RACES):
        seen = await run_seen(arena, source, **rest)
        if FORGING in seen.log:
            break
    return seen


def stays_inside(outputs: Mapping[str, bytes]) -> bool:
    """Write what was accepted as the command line would; true when nothing but plain files under its folder came."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "parent", "outputs")
        target.parent.mkdir()
        with contextlib.suppress(OSError):  # a name that this machine's file system refuses leaves nothing either
            write_outputs(outputs, target)
        found = [path for path in Path(scratch).rglob("*") if path not in (target, target.parent)]
        return all(target in path.parents and not path.is_symlink() for path in found)


def ticks(outputs: Mapping[str, bytes]) -> tuple[int, int]:
    """How far TICK came, and how far apart its two files were collected: more than one means that it was alive."""
    first, last = (int(outputs.get(name, b"0")[:TICK_DIGITS]) for name in TICKED)
    return first, abs(first - last)


TICK_DIGITS = 16
TICKED = ("1/first", "3/last")
TICK = f"""
# Rewrite two outputs in turn with a growing number. What lies between them takes a while to collect: were they
# collected from the living, they would be thousands apart.
import os
# Each has a folder of its own, so that no rename moves them together.
for name, size in (("1/first", 16), ("2/middle", 8 << 20), ("3/last", 16)):
    os.mkdir(f"/work/out/{{name[0]}}")
    with open(f"/work/out/{{name}}", "wb") as file:
        file.write(b"0" * size)
def tick():
    outputs = [os.open(f"/work/out/{{name}}", os.O_WRONLY) for name in {TICKED!r}]
    count = 0
    while True:
        count += 1
        for output in outputs:
            os.pwrite(output, b"%016d" % count, 0)
"""

FORGE = '''
"""Speak in PID 1's place, and keep it from hearing its orders."""
import fcntl, os, stat, termios, time


def _pipe(access):
    """PID 1's orders (0) or answers (1): a pipe that is not the log, by its access mode."""
    for number in sorted(os.listdir("/proc/1/fd"), key=int):
        status = os.stat(f"/proc/1/fd/{number}")
        if stat.S_ISFIFO(status.st_mode) and status.st_ino != os.fstat(2).st_ino:
            with open(f"/proc/1/fdinfo/{number}") as lines:
                flags = [int(line.split()[1], 8) for line in lines if line.startswith("flags")][0]
            if flags & 3 == access:
                return f"/proc/1/fd/{number}"
    raise OSError("PID 1's pipes cannot be seen")


def note(text):
    os.write(2, f"{text}\\n".encode())
    time.sleep(0.4)  # the log must be heard before a fault ends the hearing


def answers():
    return os.open(_pipe(1), os.O_WRONLY)


def say(data, to=None):
    to = answers() if to is None else to
    while data:
        data = data[os.write(to, data):]


def order(data):
    """Write into PID 1's stdin; False where the runtime does not let us (gVisor holds only its reading end)."""
    try:
        pipe = os.open(_pipe(0), os.O_WRONLY | os.O_NONBLOCK)
        os.write(pipe, data)
    except OSError as error:
        note(f"orders cannot be written: {error}")
        return False
    while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
        time.sleep(0.01)  # until PID 1 has read it
    return True


def orders():
    return os.open(_pipe(0), os.O_RDONLY | os.O_NONBLOCK)


def steal(orders, seconds):
    """Read PID 1's orders in its place until something came."""
    due = time.monotonic() + seconds
    while time.monotonic() < due:
        try:
            if stolen := os.read(orders, 4096):
                return stolen
        except BlockingIOError:
            pass
    return b""


def deafen():
    """Claim to be done and make the order to collect unintelligible: PID 1 hears 'xharvest', or a part of it."""
    prefixed = order(b"x")
    to, ears = answers(), orders()
    say(b"done 0 0 0\\n", to)
    stolen = steal(ears, 2)
    if not prefixed and not stolen:
        note("PID 1 was faster")
        raise SystemExit
    note(f"forging: prefixed {prefixed}, stolen {stolen!r}")
    return to


def hand_over(archive, repeat=1):
    to = deafen()
    say(b"archive\\n", to)
    for _ in range(repeat):
        say(archive, to)
    note("handed over")
    time.sleep(5)
'''
