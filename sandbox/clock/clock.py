"""The owner's side of the clock: started with the first chamber that is called, and again when it died."""

import asyncio
import mmap
import os
import resource
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable
from itertools import count
from pathlib import Path

from sandbox.clock.process import (
    CALL,
    CALL_BYTES,
    DROP,
    ORDER,
    READY,
    SAID,
    SLOT_BYTES,
    SLOTS,
    SUM,
    TAKEN,
    WATCH,
)
from sandbox.environment import child_environment
from sandbox.logger import logger

PROGRAM = Path(__file__).with_name("process.py")
_END_S = 10.0
_STARTS = 3
# A clock that has sent nothing for so many seconds of all who waited for it is not there.
HUNG_S = 5.0
# So often what is torn, since the clock writes it just then, is read again.
_READS = 3
# What its process has open beside the two descriptors of each chamber.
_OWN_DESCRIPTORS = 16


class Clock:
    """Of one event loop. Nothing in here waits for its process: where that is late or gone, owners take the time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self.page: mmap.mmap | None = None  # what its process shares with us
        self._grip: int | None = None
        self._lost: dict[int, Callable[[], None]] = {}
        self._free: list[int] = []
        self._late: list[bytes] = []  # chambers to be dropped, once it takes orders again
        self._calls = count(1)  # of all chambers: what was said in a slot before is of no call that comes
        self._starts = 0
        self._unsent_s = 0.0  # how long calls have waited for it since it last sent one

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_ready(self) -> bool:
        """Whether it takes orders."""
        return bool(self.page and self.page[READY])

    def start(self) -> None:
        """So that it takes orders by the time of the first call. Harmless where it has been started."""
        if self._process is None and self._starts < _STARTS:
            self._starts += 1
            try:
                self._start()
            except OSError as error:
                logger().warning("clock.not_started", reason=str(error))

    def watch(self, there: int, back: int, lost: Callable[[], None]) -> int | None:
        """A slot for the two streams of a chamber; None where the clock takes no orders. `lost`: it has died since."""
        self.start()
        self._drop_late()
        if not (self._line and self.is_ready and self._free):
            return None
        self._starts = 0  # it could be started, so that the next one can, too
        slot = self._free.pop()
        try:
            socket.send_fds(self._line, [ORDER.pack(WATCH, slot, 0)], [there, back], socket.MSG_DONTWAIT)
        except OSError:
            self._free.append(slot)
            return None
        self._lost[slot] = lost
        return slot

    def call(self, slot: int, data: bytes) -> int | None:
        """The number of a call that the clock sends, or that its owner sends where there is no data; None where the
        clock does neither.
        """
        number = next(self._calls)
        told = len(data) <= CALL_BYTES and self._tell(ORDER.pack(CALL, slot, number) + data)
        return number if told else None

    def take(self, slot: int, taken: int) -> None:
        """Say how many bytes of a chamber have been read."""
        if self.page:
            TAKEN.pack_into(self.page, slot * SLOT_BYTES, taken)

    def said(self, slot: int, call: int) -> tuple[float, int, float] | None:
        """When a call was sent, how many bytes had come by its last look, and when that was."""
        if not self.page:
            return None
        place = slot * SLOT_BYTES + TAKEN.size
        for _ in range(_READS):
            said = self.page[place : place + SAID.size]
            (found,) = SUM.unpack_from(self.page, place + SAID.size)
            if zlib.crc32(said) == found:
                number, sent, came, at = SAID.unpack(said)
                if number != call:
                    return None
                self._unsent_s = 0.0
                return sent, came, at
        return None

    def drop(self, slot: int) -> None:
        if self._lost.pop(slot, None):
            self._late.append(ORDER.pack(DROP, slot, 0))
            self._drop_late()

    def has_not_sent(self, waited_s: float) -> None:
        """Somebody waited in vain. It is there, and sends nothing: after a while of that all are told as if it had
        died, and a new one is started for the next.
        """
        self._unsent_s += waited_s
        if self._process and self._unsent_s >= HUNG_S:
            self._process.kill()

    async def close(self) -> None:
        self._starts = _STARTS
        process = self._process
        self._forget()
        if process:
            try:
                await asyncio.to_thread(process.wait, _END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)

    def _drop_late(self) -> None:
        while self._late and self._tell(self._late[0]):
            self._free.append(ORDER.unpack(self._late.pop(0))[1])

    def _tell(self, packet: bytes) -> bool:
        try:
            return bool(self._line and self._line.send(packet, socket.MSG_DONTWAIT))
        except OSError:
            return False

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("clock", os.MFD_CLOEXEC)
        process = grip = None
        try:
            os.ftruncate(memory, SLOTS * SLOT_BYTES)
            process = subprocess.Popen(
                [sys.executable, "-S", "-P", str(PROGRAM), str(memory)],
                env=child_environment(),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[memory],
                start_new_session=True,
            )
            grip = os.pidfd_open(process.pid)
            page = mmap.mmap(memory, SLOTS * SLOT_BYTES)
        except BaseException:
            ours.close()
            if process:
                process.kill()
                process.wait()
            if grip is not None:
                os.close(grip)
            raise
        finally:
            theirs.close()
            os.close(memory)
        self._process, self._line, self.page, self._grip = process, ours, page, grip
        self._free = list(range(1, min(SLOTS, _room() + 1)))
        self._loop.add_reader(self._grip, self._died)

    def _died(self) -> None:
        process, lost = self._process, self._lost
        self._forget()
        if process:
            logger().warning("clock.died", code=process.wait())
        for tell in lost.values():
            tell()

    def _forget(self) -> None:
        if self._grip is not None:
            self._loop.remove_reader(self._grip)
            os.close(self._grip)
        if self._line:
            self._line.close()
        self._process = self._line = self.page = self._grip = None
        self._lost = {}
        self._unsent_s = 0.0
        self._late.clear()
        self._free.clear()


def _room() -> int:
    """For so many chambers it can have descriptors: one that is handed more than it may have gets none of them."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SLOTS if most == resource.RLIM_INFINITY else max(0, (most - _OWN_DESCRIPTORS) // 2)
