"""The clock itself: `python process.py PAGE`, with a socket of orders as its stdin, until that ends.

It takes the time and sends a call in one go, and takes the time again when bytes of the chamber are there. It never
reads those: hostile bytes go to the owner alone. What is measured becomes a score, so it must never be too little: the
time of a call is from before it is sent, that of bytes from after they are counted.

PAGE is memory that owner and clock share, with a slot for each chamber. The owner says there how many bytes it has
read; the clock says when a call was sent, and when how many bytes had come. What is torn there has a wrong sum.
"""

import array
import contextlib
import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import termios
import time
import zlib

# So much goes into a pipe whole or not at all (PIPE_BUF): such a call is under way from one moment on.
CALL_BYTES = 4096
# A chamber that sends byte by byte has the clock work: after so many looks its owner's own time has to do for it, until
# its next call.
LOOKS = 10_000

# An order, the slot that it is about, and the number of a call; behind it a call that is to be sent.
ORDER = struct.Struct("=cIQ")
WATCH, CALL, DROP = b"w", b"c", b"d"

SLOTS, SLOT_BYTES = 2048, 64
# In the first slot, which is no chamber's: that the clock takes orders.
READY = 0
# In all others: the owner's count of bytes that it has read, and behind it what the clock says.
TAKEN = struct.Struct("=Q")
# The number of the call, when it was sent, how many bytes had come in all, and by when; then the sum of these.
SAID, SUM = struct.Struct("=QdQd"), struct.Struct("=I")


class Watched:
    def __init__(self, slot: int, there: int, back: int) -> None:
        self.slot, self.there, self.back = slot, there, back
        self.call = self.came = self.looks = 0
        self.sent = 0.0
        self.left = b""
        self.is_heard = False


class Process:
    def __init__(self, owner: socket.socket, page: mmap.mmap) -> None:
        self._owner = owner
        self._page = page
        self._events = select.epoll()
        self._events.register(owner.fileno(), select.EPOLLIN)
        self._by_slot: dict[int, Watched] = {}
        self._by_descriptor: dict[int, Watched] = {}

    def run(self) -> None:
        """Until the owner is gone."""
        self._page[READY] = 1
        while True:
            for descriptor, _ in self._events.poll():
                if descriptor == self._owner.fileno():
                    if not self._obey():
                        return
                elif found := self._by_descriptor.get(descriptor):
                    if descriptor == found.back:
                        self._look(found)
                    else:
                        self._send(found)

    def _obey(self) -> bool:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._owner, ORDER.size + CALL_BYTES, 2)
        except ConnectionResetError:
            return False
        if not packet:
            return False
        order, slot, call = ORDER.unpack_from(packet)
        if order == WATCH:
            self._watch(Watched(slot, *descriptors))
        elif found := self._by_slot.get(slot):
            if order == DROP:
                self._drop(found)
            else:
                self._call(found, call, packet[ORDER.size :])
        return True

    def _watch(self, watched: Watched) -> None:
        self._by_slot[watched.slot] = watched
        self._by_descriptor[watched.there] = self._by_descriptor[watched.back] = watched
        # By its edges, always: the end of a stream would wake us again and again else.
        self._events.register(watched.back, select.EPOLLET)

    def _drop(self, watched: Watched) -> None:
        del self._by_slot[watched.slot]
        for descriptor in (watched.there, watched.back):
            del self._by_descriptor[descriptor]
            with contextlib.suppress(FileNotFoundError):
                self._events.unregister(descriptor)
            os.close(descriptor)

    def _call(self, watched: Watched, call: int, data: bytes) -> None:
        watched.call, watched.came, watched.looks = call, 0, 0
        self._hear(watched, wanted=True)
        # Once for each call: one that leaves bytes unread has the rest of it wait, on its own time.
        watched.sent = time.monotonic()
        self._say(watched, watched.sent)
        watched.left += data
        if watched.left:
            self._send(watched)

    def _send(self, watched: Watched) -> None:
        try:
            watched.left = watched.left[os.write(watched.there, watched.left) :]
        except BlockingIOError:
            pass
        except OSError:
            watched.left = b""  # the chamber has ended; its owner learns it and says how
        if watched.left:
            with contextlib.suppress(FileNotFoundError):
                self._events.unregister(watched.there)
            self._events.register(watched.there, select.EPOLLOUT | select.EPOLLONESHOT)

    def _look(self, watched: Watched) -> None:
        # In this order: what is read meanwhile makes the sum too small, never too large.
        (taken,) = TAKEN.unpack_from(self._page, watched.slot * SLOT_BYTES)
        waiting = array.array("i", [0])
        fcntl.ioctl(watched.back, termios.FIONREAD, waiting)
        if taken + waiting[0] > watched.came:
            watched.came = taken + waiting[0]
            self._say(watched, time.monotonic())
        watched.looks += 1
        if watched.looks >= LOOKS:
            self._hear(watched, wanted=False)

    def _say(self, watched: Watched, at: float) -> None:
        said = SAID.pack(watched.call, watched.sent, watched.came, at)
        place = watched.slot * SLOT_BYTES + TAKEN.size
        self._page[place : place + SAID.size + SUM.size] = said + SUM.pack(zlib.crc32(said))

    def _hear(self, watched: Watched, *, wanted: bool) -> None:
        if watched.is_heard != wanted:
            watched.is_heard = wanted
            self._events.modify(watched.back, select.EPOLLET | (select.EPOLLIN if wanted else 0))


if __name__ == "__main__":
    Process(socket.socket(fileno=sys.stdin.fileno()), mmap.mmap(int(sys.argv[1]), SLOTS * SLOT_BYTES)).run()
