"""News as JSON on the standard input of a program of the user's own."""

import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import ClassVar

from orchestrator.notify.base import USUAL, News, NotifierContext
from orchestrator.notify.retrying import Again, retried
from sandbox.environment import child_environment

TIMEOUT_S = 30.0


class Command:
    """It is started without a shell; no text of others is ever on its command line."""

    topics: ClassVar = USUAL

    def __init__(self, context: NotifierContext) -> None:
        self._words = shlex.split(context.where)

    @staticmethod
    def check(where: str) -> None:
        try:
            words = shlex.split(where)
        except ValueError as error:
            raise ValueError(f"the command cannot be read ({error}); quote it as for a shell") from None
        if not words or shutil.which(words[0]) is None:
            raise ValueError("the command names no program that can be run; write its path, and make it executable")

    def tell(self, news: News) -> None:
        retried(lambda: self._run(news), tries=2)

    def close(self) -> None:
        pass

    def _run(self, news: News) -> None:
        with subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=child_environment(BLASTDOOR_TOPIC=news.topic),
        ) as process:
            try:
                process.communicate(news.model_dump_json().encode() + b"\n", timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise TimeoutError(f"it took longer than {TIMEOUT_S:.0f} s") from None
        if process.returncode:
            raise Again(f"it ended with exit code {process.returncode}")
