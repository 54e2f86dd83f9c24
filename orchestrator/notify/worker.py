"""The process of notifiers: news as lines on stdin, faults as lines on stdout.

Each notifier has a thread of its own, so that one that hangs keeps nobody else waiting. When stdin ends, be it that the
campaign ended or that it was killed, what was taken is told, and then this ends, too.
"""

import json
import os
import queue
import sys
import threading
import time
from typing import IO, Any

from orchestrator.choices import NOTIFIERS
from orchestrator.notify.base import News, Notifier, NotifierContext, Topic
from orchestrator.registry import told

# Within the time that the campaign waits for us: after it nobody would hear who hangs.
LAST_WORDS_S = 8.0


class Telling:
    """One notifier and its thread. Its first fault and their number are told at the end."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.name: str = said.pop("name")
        self.topics = frozenset(Topic(it) for it in said.pop("topics"))
        self._context = NotifierContext(**said)
        self._queue: queue.Queue[News | None] = queue.Queue()
        self._fault = ""
        self._faults = 0
        self.thread = threading.Thread(target=self._work, name=self.name, daemon=True)
        self.thread.start()

    def put(self, news: News | None) -> None:
        if news is None or news.topic in self.topics:
            self._queue.put(news)

    def report(self) -> str | None:
        if self.thread.is_alive():
            return f"{self.name} hangs; {self._queue.qsize():,} news were not told"
        if self._faults:
            return f"{self.name} failed {self._faults:,} times, first: {self._fault}"
        return None

    def _work(self) -> None:
        try:
            notifier: Notifier = NOTIFIERS.load(self.name)(self._context)
        except Exception as error:  # noqa: BLE001  somebody else's code; it is told at the end
            self._failed(error)
            return
        while (news := self._queue.get()) is not None:
            self._try(lambda news=news: notifier.tell(news))
        self._try(notifier.close)

    def _try(self, act: Any) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001  somebody else's code; it is told at the end
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._faults += 1
        # Libraries repeat the address that they could not reach, and an address may be a secret.
        self._fault = self._fault or told(error).replace(self._context.where, "…")


def main() -> None:
    answers = _own_stdout()
    lines = sys.stdin.buffer
    notifiers = [Telling(said) for said in json.loads(lines.readline())]
    for line in lines:
        news = News.model_validate_json(line)
        for it in notifiers:
            it.put(news)
    for it in notifiers:
        it.put(None)
    until = time.monotonic() + LAST_WORDS_S
    for it in notifiers:
        it.thread.join(max(0.0, until - time.monotonic()))
    for it in notifiers:
        if fault := it.report():
            answers.write(f"{fault}\n".encode())
    answers.flush()
    os._exit(0)  # threads of libraries may hang


def _own_stdout() -> IO[bytes]:
    """What libraries print must not be taken for our answers."""
    answers = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  a device, not a file of ours
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    return answers


if __name__ == "__main__":
    main()
