"""The programs that the suite runs in chambers, each twice: as a script for real ones, as a coroutine for the fake."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from sandbox.backends.fake.backend import Died, Guest
from sandbox.bundle import Bundle
from sandbox.job import Job

CHATTY_BYTES = 4096
SERVE = resources.files("sandbox.guest").joinpath("serve.py").read_bytes()


@dataclass(frozen=True, slots=True)
class Program:
    """`script` needs a POSIX shell only, unless it names python3."""

    script: str
    fake: Callable[[Guest], Awaitable[int]]
    python: bool = False

    def job(self, **wanted: Any) -> Job:
        command = ("python3", "-c", self.script) if self.python else ("sh", "-c", self.script)
        return Job(**{"command": command, **wanted})


async def _write(guest: Guest) -> int:
    guest.out["answer"] = guest.files["question"] + b" 42\n"
    guest.out["deep/er/file"] = b"\x00\xff"
    guest.log(b"to stdout\nto stderr\n")
    return 0


WRITE = Program(
    'printf "%s 42\\n" "$(head -c 99 question)" >"$BLASTDOOR_OUT/answer"; mkdir -p "$BLASTDOOR_OUT/deep/er"; '
    'printf "\\000\\377" >"$BLASTDOOR_OUT/deep/er/file"; echo to stdout; echo to stderr >&2',
    _write,
)
QUESTION = Bundle({"question": b"six times seven"})


async def _exit_3(guest: Guest) -> int:
    guest.out["partial"] = b"x"
    return 3


EXIT_3 = Program('printf x >"$BLASTDOOR_OUT/partial"; exit 3', _exit_3)


async def _segfault(_: Guest) -> int:
    raise Died(139)


SEGFAULT = Program("kill -SEGV $$", _segfault)


async def _nothing(_: Guest) -> int:
    return 0


NOTHING = Program(":", _nothing)


async def _sleep(guest: Guest) -> int:
    guest.log(b'::report {"step": 1, "value": 0.5}\nasleep\n')
    await guest.stopped.wait()
    raise Died(143)


SLEEP = Program("""echo '::report {"step": 1, "value": 0.5}'; echo asleep; sleep 300""", _sleep)


async def _flush(guest: Guest) -> int:
    guest.log(b"working\n")
    await guest.stopped.wait()
    guest.out["partial"] = b"flushed\n"
    return 0


FLUSH = Program(
    """trap 'echo flushed >"$BLASTDOOR_OUT/partial"; exit 0' TERM; echo working; while :; do sleep 0.05; done""", _flush
)


async def _stubborn(guest: Guest) -> int:
    guest.out["partial"] = b"early\n"
    guest.log(b"working\n")
    await asyncio.sleep(300)
    return 0


STUBBORN = Program(
    """trap '' TERM; echo early >"$BLASTDOOR_OUT/partial"; echo working; while :; do sleep 0.05; done""", _stubborn
)


async def _greedy(guest: Guest) -> int:
    guest.allocate(2**40)
    return 0


GREEDY = Program("a=0123456789abcdef; while :; do a=$a$a; done", _greedy)


async def _large(guest: Guest) -> int:
    guest.out["large"] = bytes(200_000)
    return 0


LARGE = Program('head -c 200000 /dev/zero >"$BLASTDOOR_OUT/large"', _large)


async def _many(guest: Guest) -> int:
    guest.out.update({f"file{number}": b"" for number in range(50)})
    return 0


MANY = Program('i=0; while [ $i -lt 50 ]; do : >"$BLASTDOOR_OUT/file$i"; i=$((i+1)); done', _many)


async def _chatty(guest: Guest) -> int:
    guest.log(b"x" * CHATTY_BYTES)
    await asyncio.sleep(300)
    return 0


CHATTY = Program(f"head -c {CHATTY_BYTES} /dev/zero; sleep 300", _chatty)


async def _look_around(guest: Guest) -> int:
    guest.out["seen"] = f"{guest.job.env['COLOUR']} {guest.job.workdir}\n".encode()
    return 0


LOOK_AROUND = Program('echo "$COLOUR ${PWD#/work/src/}" >"$BLASTDOOR_OUT/seen"', _look_around)


async def _echo(guest: Guest) -> int:
    guest.log(b"a stray print\n")
    while request := await guest.request():
        guest.reply(request[0], request[1][::-1])
    return 0


ECHO = Program(
    "import serve\ndef answer(x):\n    print('a stray print', flush=True)\n    return x[::-1]\nserve.serve(answer)",
    _echo,
    python=True,
)
SERVING = Bundle({"serve.py": SERVE})


async def _blurt(guest: Guest) -> int:
    guest.reply(b"12345678", b"before anything was asked")
    await guest.request()
    return 0


BLURT = Program("printf '\\000\\000\\000\\00112345678x'; sleep 300", _blurt)

# Leaves something in every place that two chambers could share; told to stop, it looks for what the other one left.
_NEIGHBOUR = """
import ctypes, glob, os, signal, socket
me, other = os.environ["ME"], os.environ["OTHER"]
for place in ("/dev/shm", "/tmp", "/work/tmp"):
    open(f"{place}/left-by-{me}", "w").close()
abstract = socket.socket(socket.AF_UNIX); abstract.bind(f"\\0left-by-{me}"); abstract.listen()
libc = ctypes.CDLL(None, use_errno=True)
libc.shmget(ctypes.c_int(7000 + ord(me)), ctypes.c_size_t(4096), ctypes.c_int(0o1666))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("left", flush=True)
signal.sigwait({signal.SIGTERM})
found = [p for place in ("/dev/shm", "/tmp", "/work/tmp") for p in glob.glob(f"{place}/left-by-{other}")]
try:
    socket.socket(socket.AF_UNIX).connect(f"\\0left-by-{other}"); found.append("abstract socket")
except OSError: pass
if libc.shmget(ctypes.c_int(7000 + ord(other)), ctypes.c_size_t(4096), ctypes.c_int(0o666)) != -1:
    found.append("shared memory")
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: line = open(f"/proc/{pid}/environ").read()
    except OSError: continue
    if f"ME={other}" in line.split("\\0"): found.append(f"process {pid}")
open(os.environ["BLASTDOOR_OUT"] + "/found", "w").write(repr(found))
"""


async def _neighbour(guest: Guest) -> int:
    guest.log(b"left\n")
    await guest.stopped.wait()
    guest.out["found"] = b"[]"
    return 0


NEIGHBOUR = Program(_NEIGHBOUR, _neighbour, python=True)

ALL = (WRITE, EXIT_3, SEGFAULT, NOTHING, SLEEP, FLUSH, STUBBORN, GREEDY, LARGE, MANY, CHATTY, LOOK_AROUND, ECHO, BLURT)
_FAKES = {program.script: program.fake for program in (*ALL, NEIGHBOUR)}


async def play(guest: Guest) -> int:
    """The fake's program: whichever of ours the job names."""
    command = guest.job.build if guest.building else guest.job.command
    if command[0] not in ("sh", "python3"):
        guest.log(f"sh: {command[0]}: not found\n".encode())
        return 127
    return await _FAKES[command[-1]](guest)
