"""The campaign's side: a queue that is never waited for, and the process behind it.

Libraries of notifiers take seconds to import and hold the interpreter meanwhile; so do time-outs, and bugs of others.
None of that may be in the clock of a trial, so they get an interpreter of their own.
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, cast

from orchestrator.notify.base import News, NotifierContext
from orchestrator.notify.target import Target
from sandbox.environment import CERTIFICATES, PROXIES, child_environment

# News that nobody has taken yet; what comes on top is counted and dropped.
WAITING_MOST = 10_000
# How long the end of a session waits for what is still to be told.
GRACE_S = 10.0


class Post:
    """Raises nothing once it stands: what goes wrong is in `faults`, one line each, after it was closed."""

    def __init__(self, targets: Sequence[Target], campaign: str, task: str, run: int) -> None:
        self.waiting: queue.Queue[bytes | None] = queue.Queue(WAITING_MOST)
        self._dropped = 0
        self._faults: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "orchestrator.notify.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment({*PROXIES, *CERTIFICATES, *(name for it in targets for name in it.variables)}),
            start_new_session=True,  # Ctrl-C is for the campaign, which then tells that it stopped
        )
        to_worker, from_worker = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        contexts = [NotifierContext(it.where, campaign, task, run) for it in targets]
        told = [
            {"name": it.name, "topics": sorted(it.topics), **vars(of)} for it, of in zip(targets, contexts, strict=True)
        ]
        self.waiting.put_nowait(json.dumps(told).encode() + b"\n")
        self._writer = threading.Thread(target=self._write, args=[to_worker], name="notify", daemon=True)
        self._reader = threading.Thread(target=self._read, args=[from_worker], name="notified", daemon=True)
        self._writer.start()
        self._reader.start()

    def send(self, news: News) -> None:
        try:
            self.waiting.put_nowait(news.model_dump_json().encode() + b"\n")
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Wait for what is still to be told, and for those that tell it, at most so long each; then they are ended."""
        with contextlib.suppress(queue.Full):  # then the process takes nothing, and is given up below
            self.waiting.put_nowait(None)
        self._writer.join(GRACE_S)
        try:
            if code := self.process.wait(GRACE_S):
                self._faults.append(f"its process ended with exit code {code}")
        except subprocess.TimeoutExpired:
            self._faults.append(f"was still busy after {GRACE_S:.0f} s, and was ended")
            self.process.kill()
            self.process.wait()
        self._reader.join(1.0)

    @property
    def faults(self) -> list[str]:
        dropped = [f"took too long: {self._dropped:,} news were dropped"] if self._dropped else []
        return [*self._faults, *dropped]

    def _write(self, pipe: IO[bytes]) -> None:
        with contextlib.suppress(OSError), pipe:  # it is gone: how it ended is told at the close
            while (line := self.waiting.get()) is not None:
                pipe.write(line)
                pipe.flush()

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                self._faults.append(line.decode("utf-8", "replace").strip())
