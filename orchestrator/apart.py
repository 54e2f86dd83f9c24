"""Files of a stranger, read in a process of its own, which the kernel ends when it takes too much.

So no reader, ours or a library's, has to be quick whatever it is given. The answer is plain data of a form that is
known beforehand. The process is a fork, which costs some hundredths of a second; begin it before any thread.
"""

import json
import mmap
import multiprocessing
import resource
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import msgspec

from orchestrator.machine.programs import dying_with_us
from orchestrator.text import short

SECONDS = 20  # of processor
TIMES = 15  # as long by the clock: a busy machine gives it less
MEMORY = 2 << 30  # beside what this process has already
ANSWER_BYTES = 256 << 20
_ANSWER = b"="
_PAGE_BYTES = 4096
_MEND = "make it smaller or plainer, or leave it out"

T = TypeVar("T")
_page: mmap.mmap | None = None


class ReaderFault(Exception):
    """The trace of a reader that failed, for who asks for it."""


def note(name: str) -> None:
    """The file that is read from now on, to be named where reading it has no end."""
    if _page is not None:
        name_bytes = name.encode(errors="replace")[: _PAGE_BYTES - 1]
        _page[: len(name_bytes) + 1] = name_bytes + b"\0"


def read_apart(work: Callable[[], T], form: type[T], of: Path, fault: type[Exception], *, seconds: int = SECONDS) -> T:
    """What `work` returns, which must be of a form that msgspec knows.

    Raises:
        fault: In one line: one that `work` raised, or what else kept it from an answer.
    """
    page, fork = mmap.mmap(-1, _PAGE_BYTES), multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_read, args=(work, fault, seconds, page, theirs, dying_with_us()), daemon=True)
    process.start()
    theirs.close()
    answer = b""
    try:
        with ours, suppress(EOFError, OSError):
            answer = ours.recv_bytes(ANSWER_BYTES)
        process.join()
    finally:
        process.kill()
        process.join()
    name = short(page[:].partition(b"\0")[0], 200)
    where = f"{of}: reading {name or 'it'}"
    if not answer:
        raise fault(f"{where} {_why_ended(process.exitcode or 0, seconds)}; {_MEND}")
    if answer[:1] == _ANSWER:
        try:
            return msgspec.json.decode(answer[1:], type=form)
        except msgspec.MsgspecError as error:
            raise fault(f"{of}: its reader gave back no {form.__name__} ({error}); mend or remove the reader") from None
    is_told, line, trace = json.loads(answer)
    raise fault(line if is_told else f"{where} failed: {line}; {_MEND}") from ReaderFault(trace)


def _why_ended(code: int, seconds: int) -> str:
    if code == -signal.SIGXCPU:
        return f"takes more than {seconds} s of processor"
    if code == -signal.SIGALRM:
        return f"takes more than {seconds * TIMES} s"
    return f"ended its reader ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"


def _read(
    work: Callable[[], object],
    fault: type[Exception],
    seconds: int,
    page: mmap.mmap,
    answer: Connection,
    die_with_parent: Callable[[], None],
) -> None:
    global _page
    _page = page
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # our parent ends us
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds * TIMES)
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_AS, _address_space() + MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    answer.send_bytes(_answer(work, fault))


def _answer(work: Callable[[], object], fault: type[Exception]) -> bytes:
    """Whatever happens in here becomes a line: what is read may be made to meet any fault of a reader."""
    is_told, line = False, ""
    try:
        found = _ANSWER + msgspec.json.encode(work())
        if len(found) <= ANSWER_BYTES:
            return found
        line, trace = f"it comes to more than {ANSWER_BYTES >> 20} MiB", ""
    except MemoryError:
        line, trace = f"it takes more than {MEMORY >> 30} GiB of memory, or than ulimit -v leaves", ""
    except RecursionError as error:
        line, trace = "it is nested too deeply", _trace(error)
    except Exception as error:  # noqa: BLE001  as said above; the trace is kept
        is_told = isinstance(error, fault)
        line, trace = str(error) if is_told else short(f"{type(error).__name__}: {error}", 300), _trace(error)
    return json.dumps([is_told, line, trace]).encode()


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error, limit=-20))[-20_000:]


def _limit(kind: int, wanted: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
