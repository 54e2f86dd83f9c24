"""The owner's side of the clock: started with the first chamber that it is to watch, and again when it died."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sandbox.clock.process import CALL, CALL_BYTES, DROP, ORDER, STAMP, WATCH
from sandbox.environment import child_environment
from sandbox.logger import logger

_PROGRAM = Path(__file__).with_name("process.py")
_END_S = 10.0

# The number of a call, when it was sent, how many bytes had come in all, and by when.
Heard = Callable[[int, float, int, float], None]


class Clock:
    """Of one event loop. Nothing in here waits for its process: where that is late or gone, owners take the time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._grip: int | None = None
        self._watched: dict[int, tuple[Heard, Callable[[], None]]] = {}
        self._late: list[bytes] = []  # chambers to be dropped, once it takes orders again
        self._count = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def watch(self, there: int, back: int, heard: Heard, lost: Callable[[], None]) -> int | None:
        """A number for the two streams of a chamber; None where there is no clock. `lost`: it has died since."""
        if self._closed:
            return None
        try:
            line = self._line or self._started()
            self._count += 1
            socket.send_fds(line, [ORDER.pack(WATCH, self._count, 0, 0)], [there, back], socket.MSG_DONTWAIT)
        except OSError as error:
            logger().warning("clock.not_there", reason=str(error))
            return None
        self._watched[self._count] = heard, lost
        return self._count

    def send(self, number: int, call: int, taken: int, data: bytes) -> bool:
        """Whether it sends this call, to a chamber of which so many bytes were read before."""
        return len(data) <= CALL_BYTES and self._tell(ORDER.pack(CALL, number, call, taken) + data)

    def listen(self) -> None:
        """Hand on what it has said by now."""
        while self._line:
            try:
                packet = self._line.recv(STAMP.size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                return  # it is gone, which is heard of by its process
            if not packet:
                return
            number, *said = STAMP.unpack(packet)
            if number in self._watched:
                self._watched[number][0](*said)

    def drop(self, number: int) -> None:
        if self._watched.pop(number, None):
            self._late.append(ORDER.pack(DROP, number, 0, 0))
            while self._late and self._tell(self._late[-1]):
                self._late.pop()

    async def close(self) -> None:
        self._closed = True
        process = self._process
        self._forget()
        if process:
            try:
                await asyncio.to_thread(process.wait, _END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)

    def _tell(self, packet: bytes) -> bool:
        try:
            return bool(self._line and self._line.send(packet, socket.MSG_DONTWAIT))
        except OSError:
            return False

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-P", str(_PROGRAM)],
                env=child_environment(),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._line = ours
        self._grip = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._grip, self._died)
        return ours

    def _died(self) -> None:
        process = self._process
        self._forget()
        watched, self._watched = self._watched, {}
        if process:
            logger().warning("clock.died", code=process.wait())
        for _, lost in watched.values():
            lost()

    def _forget(self) -> None:
        if self._grip is not None:
            self._loop.remove_reader(self._grip)
            os.close(self._grip)
        if self._line:
            self._line.close()
        self._process = self._line = self._grip = None
        self._late.clear()
