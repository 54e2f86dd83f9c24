"""`blastdoor serve` as a process of its own, and those who look on without a browser."""

import contextlib
import http.client
import socket
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import psutil

from orchestrator.views.page.finding import find_campaigns


class Served:
    """Of the one campaign in a folder. `address` is that of its page."""

    def __init__(self, folder: Path) -> None:
        (found,) = find_campaigns([folder])
        words = [str(Path(sys.executable).with_name("blastdoor")), "serve", "--no-open", "--port", "0", str(folder)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        address = self._process.stdout.readline().strip() if self._process.stdout else ""
        self.address = f"{address}#/c/{found}"
        self.process = psutil.Process(self._process.pid)

    @property
    def most_mb(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def cpu_s(self) -> float:
        used = self.process.cpu_times()
        return used.user + used.system

    @cached_property
    def _inside(self) -> tuple[str, str]:
        """Where updates of the campaign are told, and the cookie of one that was let in."""
        opened, _, campaign = self.address.partition("#/c/")
        parts = urllib.parse.urlsplit(opened)
        door = http.client.HTTPConnection(parts.netloc, timeout=60)
        door.request("GET", f"/?{parts.query}")
        let_in = door.getresponse()
        cookie = (let_in.getheader("set-cookie") or "").partition(";")[0]
        target = f"{let_in.getheader('location')}api/campaign/{campaign}/updates"
        door.close()
        return target, cookie

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """One who is told of every update, and draws nothing."""
        target, cookie = self._inside
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.address).netloc, timeout=60)
        connection.request("GET", target, headers={"cookie": cookie})
        told = connection.getresponse()
        if told.status != 200:
            raise RuntimeError(f"no stream: {told.status}")
        reading = threading.Thread(target=_read_on, args=(told,))
        reading.start()
        try:
            yield
        finally:
            connection.sock.shutdown(socket.SHUT_RDWR)
            reading.join(60)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def _read_on(told: http.client.HTTPResponse) -> None:
    with contextlib.suppress(http.client.HTTPException, OSError):  # it is cut off in the middle
        while told.readline():
            pass
