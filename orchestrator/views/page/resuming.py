"""A campaign that nobody works on goes on by a process of its own, as `blastdoor resume` in another terminal would be.

It is no child that a page could take along: it has a session of its own, and goes on when the server ends.
"""

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from orchestrator.files import open_plain
from orchestrator.ledger import LedgerError
from orchestrator.run_options import OPTIONS
from orchestrator.settings import Settings
from orchestrator.text import printable_lines, short
from orchestrator.views.campaign.opening import holder_of
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.flags import value_of
from orchestrator.views.page.finding import Found
from orchestrator.wiring.ledgers import open_ledger
from orchestrator.wiring.reading import Reading

# Those that a person raises to let a campaign go on, each with what it means.
CAPS = {name: OPTIONS[name].help for name in ("attempts", "usd", "wall", "tokens", "patience")}
LOG = "resumed.log"
# What it takes to import everything, find an engine and take the campaign over, on a busy machine.
_PATIENCE_S = 60.0
_LOOK_S = 0.1
_TAIL = 4096
_PROGRAM = (sys.executable, "-P", "-c", "from orchestrator.views.cli import main; main()")


class Resumer:
    """`resume` returns one line, when the campaign is at work or its process has ended; it raises UsageError."""

    def __init__(self, settings: Settings | None, program: tuple[str, ...] = _PROGRAM) -> None:
        self._settings = settings
        self._program = program
        self._starting: set[str] = set()
        self._guard = threading.Lock()
        self._is_over = threading.Event()

    def close(self) -> None:
        """Nobody waits for what was started; it goes on."""
        self._is_over.set()

    def resume(self, found: Found, reading: Reading, caps: Mapping[str, str], by: str) -> str:
        if reading.holder:
            raise click.UsageError(f"{holder_of(reading)} works on it already")
        words = [f"--{name.replace('_', '-')}={text}" for name, text in _checked(caps).items()]
        with self._alone(found.id):
            before = self._epoch(found.folder)
            process = self.start(["resume", *words, f"--by={by}", "--", str(found.named.resolve())], found.folder)
            told = self._outcome(process, found.folder, before)
        again = typed(found.named, "resume", *words)
        if told is None:
            return f"it was started as process {process.pid}, and does not work on it yet; {LOG} tells more"
        code, line = told
        if code:
            raise click.UsageError(f"{line or f'it ended with exit code {code}'}; {again} in a terminal tells more")
        return line

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Two who press at once start one process."""
        with self._guard:
            if name in self._starting:
                raise click.UsageError("somebody else lets it go on at this moment")
            self._starting.add(name)
        try:
            yield
        finally:
            with self._guard:
                self._starting.discard(name)

    def start(self, words: list[str], folder: Path) -> "subprocess.Popen[bytes]":
        """With the environment of the person who started the server, as their own command would have: the orchestrator
        asks providers in their name.
        """
        ledger = self._settings.ledger if self._settings else None
        environment = {**os.environ} | ({"BLASTDOOR_LEDGER": ledger.get_secret_value()} if ledger else {})
        log = _opened_log(folder / LOG)
        try:
            process = subprocess.Popen(
                [*self._program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        finally:
            os.close(log)
        # Somebody has to take note of its end, or it stays as a name without a process.
        threading.Thread(target=process.wait, name="resumed", daemon=True).start()
        return process

    def _outcome(self, process: "subprocess.Popen[bytes]", folder: Path, before: int) -> tuple[int, str] | None:
        """Its exit code, 0 while it works, and a line; None where nothing can be told yet. `before` is the epoch of the
        last one.
        """
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            if (code := process.poll()) is not None:
                return code, _last_line(folder / LOG)
            if self._works(process.pid, folder, before):
                return 0, f"it goes on, as process {process.pid}"
            if self._is_over.wait(_LOOK_S):
                break
        return None

    def _works(self, pid: int, folder: Path, before: int) -> bool:
        """Whether it has taken the campaign over: before that, it may still find that it cannot. One that worked on it
        long ago may have had the same number.
        """
        try:
            epoch, holder = self._holder(folder)
        except LedgerError:
            return False
        return epoch > before and holder.startswith(f"pid {pid} on ")

    def _epoch(self, folder: Path) -> int:
        try:
            return self._holder(folder)[0]
        except LedgerError as error:
            raise click.UsageError(str(error)) from None

    def _holder(self, folder: Path) -> tuple[int, str]:
        with open_ledger(folder, self._settings, read_only=True) as ledger:
            return ledger.holder()


def _checked(caps: Mapping[str, str]) -> dict[str, str]:
    """As the command line would read them. Raises UsageError."""
    given = {name: text.strip() for name, text in caps.items() if text.strip()}
    for name, text in given.items():
        if name not in CAPS:
            raise click.UsageError(f"{short(name, 60)} is no cap; caps are {', '.join(CAPS)}")
        value_of(name, text, "resume")
    return given


def _opened_log(path: Path) -> int:
    """Empty, to append to. The folder may be somebody else's: nothing in the place of the file holds us up."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        log = os.open(path, flags, 0o600)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(log).st_mode):
        os.close(log)
        raise click.UsageError(f"{path} cannot be written (it is no plain file)")
    os.ftruncate(log, 0)
    return log


def _last_line(path: Path) -> str:
    with open_plain(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        lines = [line.strip() for line in printable_lines(file.read())]
    return short(next((line for line in reversed(lines) if line), ""), 400).removeprefix("blastdoor: ")
