"""The clock itself: `python process.py`, with a socket of packets as its stdin, until that ends.

It takes the time and sends a call in one go, and takes the time again when bytes of the chamber are there. It never
reads those: hostile bytes go to the owner alone. What is measured becomes a score, so it must never be too little: the
time of a call is from before it was sent, that of bytes from after they were counted.
"""

import array
import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import time

# So much goes into a pipe whole or not at all (PIPE_BUF): such a call is under way from one moment on.
CALL_BYTES = 4096
# A chamber that sends byte by byte would keep the clock from others: after so many looks its owner's own time has to do
# for it, until its next call.
LOOKS = 200

# An order, the number of a chamber, that of its call, and how many of its bytes the owner has read so far.
ORDER = struct.Struct("=cIIQ")
WATCH, CALL, DROP = b"w", b"c", b"d"
# The number of a chamber, that of its call, when it was sent, how many bytes had come in all, and by when.
STAMP = struct.Struct("=IIdQd")


class Watched:
    def __init__(self, number: int, there: int, back: int) -> None:
        self.number, self.there, self.back = number, there, back
        self.call = self.taken = self.looks = 0
        self.sent = 0.0
        self.left = b""
        self.is_heard = False


class Process:
    def __init__(self, owner: socket.socket) -> None:
        self._owner = owner
        self._events = select.epoll()
        self._events.register(owner.fileno(), select.EPOLLIN)
        self._by_number: dict[int, Watched] = {}
        self._by_descriptor: dict[int, Watched] = {}

    def run(self) -> None:
        """Until the owner is gone."""
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
        order, number, call, taken = ORDER.unpack_from(packet)
        if order == WATCH:
            self._watch(Watched(number, *descriptors))
        elif found := self._by_number.get(number):
            if order == DROP:
                self._drop(found)
            else:
                found.call, found.taken, found.looks = call, taken, 0
                found.left += packet[ORDER.size :]
                self._hear(found, wanted=True)
                self._send(found)
        return True

    def _watch(self, watched: Watched) -> None:
        self._by_number[watched.number] = watched
        self._by_descriptor[watched.there] = self._by_descriptor[watched.back] = watched
        self._events.register(watched.back, 0)

    def _drop(self, watched: Watched) -> None:
        del self._by_number[watched.number]
        for descriptor in (watched.there, watched.back):
            del self._by_descriptor[descriptor]
            with contextlib.suppress(FileNotFoundError):
                self._events.unregister(descriptor)
            os.close(descriptor)

    def _send(self, watched: Watched) -> None:
        """All of it at once, as a rule: a chamber that serves has read what came before. Its owner is told first, so
        that it knows when the answer is there.
        """
        if not watched.left:
            return
        watched.sent = time.monotonic()
        self._say(watched, 0, watched.sent)
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
        waiting = array.array("i", [0])
        fcntl.ioctl(watched.back, termios.FIONREAD, waiting)
        self._say(watched, watched.taken + waiting[0], time.monotonic())
        watched.looks += 1
        if watched.looks >= LOOKS:
            self._hear(watched, wanted=False)

    def _say(self, watched: Watched, came: int, at: float) -> None:
        # An owner who hears of nothing takes the time itself.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            self._owner.send(STAMP.pack(watched.number, watched.call, watched.sent, came, at), socket.MSG_DONTWAIT)

    def _hear(self, watched: Watched, *, wanted: bool) -> None:
        if watched.is_heard != wanted:
            watched.is_heard = wanted
            self._events.modify(watched.back, select.EPOLLIN | select.EPOLLET if wanted else 0)


if __name__ == "__main__":
    Process(socket.socket(fileno=sys.stdin.fileno())).run()
