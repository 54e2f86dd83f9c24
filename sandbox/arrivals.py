"""When bytes came, told by a thread that does nothing else: an event loop that is busy, or waits, hears of them late.

What is measured by it becomes a score, so it must never be too early. A chamber that sends a first byte at once and the
rest when it is done must not count from the first: a time is that of bytes only if all of them were there by then.
"""

import array
import fcntl
import functools
import select
import termios
import threading
import time


class Arrivals:
    """Of one descriptor, whose owner counts what it reads. Without a stamp that holds, the time is that of reading."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._taken = 0
        self.stamp = (0, 0.0)  # how many bytes had come in all, and when
        watcher().add(descriptor, self)

    def took(self, count: int) -> float:
        """By when the bytes that were read last, so many, had all come."""
        self._taken += count
        came, at = self.stamp
        return at if came >= self._taken else time.monotonic()

    def close(self) -> None:
        """Before the descriptor itself is closed."""
        watcher().drop(self._descriptor)

    def note(self) -> None:
        """In the watcher's thread. In this order: what is read meanwhile makes the sum too small, never too large."""
        taken = self._taken
        waiting = array.array("i", [0])
        fcntl.ioctl(self._descriptor, termios.FIONREAD, waiting)
        self.stamp = (taken + waiting[0], time.monotonic())


class _Watcher:
    def __init__(self) -> None:
        self._events = select.epoll()
        self._watched: dict[int, Arrivals] = {}
        self.guard = threading.Lock()  # a descriptor that is closed may be another one's by the time it is looked at
        threading.Thread(target=self._watch, name="arrivals", daemon=True).start()

    def add(self, descriptor: int, arrivals: Arrivals) -> None:
        with self.guard:
            self._watched[descriptor] = arrivals
            self._events.register(descriptor, select.EPOLLIN | select.EPOLLET)

    def drop(self, descriptor: int) -> None:
        with self.guard:
            if self._watched.pop(descriptor, None):
                self._events.unregister(descriptor)

    def _watch(self) -> None:
        while True:
            for descriptor, _ in self._events.poll():
                with self.guard:
                    if found := self._watched.get(descriptor):
                        found.note()


@functools.cache
def watcher() -> _Watcher:
    """One for the whole process, from the first chamber on."""
    return _Watcher()
