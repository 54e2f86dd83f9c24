"""Too many processes, descriptors, seconds of CPU; processes that stay; crashes that leave a core."""

import asyncio
import re
import time

from sandbox.attacks.attack import IMAGE, QUICK, Arena, Finding, attack, judged, name_of, told
from sandbox.attacks.forge import TICK, Seen, run_seen, ticks
from sandbox.attacks.neighbours import Ear, beside
from sandbox.bundle import Bundle
from sandbox.job import Ending, Job

FORKS = 120
RESPONSIVE_S = 20.0  # a machine may stand still for some seconds; one that is choked stays so

FORK_BOMB = f"""
import os, sys, time
for count in range(1, {FORKS} + 1):
    try:
        if os.fork() == 0:
            time.sleep(10)
            os._exit(0)
    except OSError as error:
        os.write(2, f"refused: {{error}}\\n".encode())
        sys.exit(3)
    os.write(2, f"forked {{count}}\\n".encode())
"""


@attack(
    "T13",
    "fork bomb",
    runsc="the limit counts the sentry's host threads, several a process; past it the whole sandbox ends",
)
async def fork_bomb(arena: Arena) -> Finding:
    """Forks end at the limit, the ending is the candidate's own, and the host answers all the while."""
    # gVisor needs memory for each process of the guest; here only the count of processes shall be the bound.
    limits = QUICK.model_copy(update={"pids": 16, "memory": 2 << 30})
    host = arena.host
    running = asyncio.ensure_future(run_seen(arena, FORK_BOMB, limits=limits))
    slowest = 0.0
    while not running.done():
        started = time.monotonic()
        await host.answers()
        slowest = max(slowest, time.monotonic() - started)
        await asyncio.wait([running], timeout=0.1)
    return forks_finding(running.result(), arena.is_gvisor, slowest)


def forks_finding(seen: Seen, is_gvisor: bool, slowest: float) -> Finding:
    forked = max(map(int, re.findall(r"^forked (\d+)$", seen.log, re.MULTILINE)), default=0)
    wanted = Ending.FAILED if is_gvisor else Ending.PROCESS_LIMIT
    held = forked < FORKS and seen.outcome.ending is wanted and slowest < RESPONSIVE_S and seen.gone
    evidence = f"{forked} of {FORKS} forks, the host answered within {slowest * 1000:.0f} ms"
    return Finding(forked > 0, held, str(seen.outcome.ending), evidence)


DUP_LOOP = """
import errno, os, resource, probe
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, max(hard, 4096)))
except (OSError, ValueError):
    pass
held, refusal = [], ""
while len(held) < 1024 and not refusal:
    try:
        held.append(os.dup(2))
    except OSError as error:
        refusal = errno.errorcode[error.errno]
for descriptor in held:
    os.close(descriptor)
probe.tell(held=len(held), refusal=refusal, hard=hard)
"""


@attack("T19", "descriptor exhaustion by dup")
async def descriptors(arena: Arena) -> Finding:
    """A process gets its limit of descriptors, then EMFILE."""
    limit = QUICK.open_files
    outcome = await arena.run(DUP_LOOP)
    near = range(limit - 16, limit + 1)
    return judged(outcome, lambda seen: seen["held"] in near and seen["refusal"] == "EMFILE" and seen["hard"] == limit)


DAEMON = (
    TICK
    + """
import signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    os.write(2, b"daemon runs\\n")
    tick()
time.sleep(2)
"""
)


@attack("T20", "daemon by double fork, with every signal ignored, after its main has ended")
async def daemon(arena: Arena) -> Finding:
    """A daemon is dead before outputs are collected, and its chamber is gone after the ending."""
    seen = await run_seen(arena, DAEMON)
    count, apart = ticks(seen.outcome.outputs)
    dead = seen.outcome.ending is Ending.COMPLETED and apart <= 1 and seen.gone
    ran = "daemon runs" in seen.log and count > 0
    return Finding(ran, dead, str(seen.outcome.ending), f"{count} writes, then dead: {apart} apart in the outputs")


@attack("T20", "daemon and main that ignore every signal past the wall-clock limit")
async def overstayer(arena: Arena) -> Finding:
    """The deadline is held outside: what ignores signals is killed with its chamber."""
    source = DAEMON + "for number in (1, 2, 15):\n    signal.signal(number, signal.SIG_IGN)\ntime.sleep(60)\n"
    started = time.monotonic()
    seen = await run_seen(arena, source, limits=QUICK.model_copy(update={"wall": 6.0}))
    took = time.monotonic() - started
    held = seen.outcome.ending is Ending.TIMED_OUT and not seen.outcome.outputs and seen.gone and took < 60
    return Finding("daemon runs" in seen.log, held, str(seen.outcome.ending), f"gone after {took:.1f} s")


CRASH = """
import mmap, os, resource, signal, probe
for wanted in (1 << 30, resource.getrlimit(resource.RLIMIT_CORE)[1]):
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (wanted, wanted))
        break
    except (OSError, ValueError):
        pass
hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
child = os.fork()
if child == 0:
    space = mmap.mmap(-1, 16 << 20)
    space.write(b"secret" * 1000)
    os.abort()
status = os.waitpid(child, 0)[1]
folders = ("/work/src", "/work", "/work/out", "/tmp", "/var/tmp", "/")
cores = [f"{folder}/{name}" for folder in folders for name in os.listdir(folder) if name.startswith("core")]
probe.tell(signal=os.WTERMSIG(status), hard=hard, cores=cores)
"""


@attack("T21", "crash with a large mapping", runsc="the sentry writes no core files at all; the limit is set there too")
async def core_dump(arena: Arena) -> Finding:
    """A crash leaves no core file, and the limit that says so cannot be raised."""
    outcome = await arena.run(CRASH, limits=QUICK.model_copy(update={"work_bytes": 64 << 20}))
    return judged(outcome, lambda seen: seen["signal"] == 6 and seen["hard"] == 0 and not seen["cores"])


NO_GPU = "judged by absence: no GPU was asked for, so no device of one may be in the chamber"


@attack("T22", "GPU hog", runc=NO_GPU, runsc=NO_GPU)
async def gpu(arena: Arena) -> Finding:
    """Without a request for a GPU the chamber has no device, driver or library mount of one."""
    source = (
        "import glob, os, probe\nfound = []\n"
        "for pattern in ('nvidia*', 'dri*', 'kfd', 'accel*', '../proc/driver/nvidia/gpus/*'):\n"
        "    found += glob.glob(f'/dev/{pattern}')\n"
        "probe.tell(found=found, devices=len(os.listdir('/dev')))"
    )
    return judged(await arena.run(source), lambda seen: not seen["found"] and seen["devices"] > 0)


SPINNERS = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        os.write(2, b"settled\\n")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            pass
        os._exit(0)
time.sleep(30)
"""
TENTH_OF_A_CPU = 0.1
# On so little a Python takes long to start.
SPINNING = QUICK.model_copy(update={"cpus": TENTH_OF_A_CPU, "wall": 80})
MEASURED_S = 2.0


@attack("T23", "noisy neighbour: two spinners on a tenth of a CPU")
async def spinners(arena: Arena) -> Finding:
    """Spinning processes get their share of the processors and no more, by the count of the host's kernel."""
    ear = Ear()
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=SPINNING)
    host = arena.host
    async with await arena.backend.open(job) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({"attack.py": SPINNERS.encode()}), listener=ear))
        await asyncio.wait_for(ear.settled.wait(), 60)
        before, started = await host.cpu_seconds(name_of(chamber)), time.monotonic()
        await asyncio.sleep(MEASURED_S)
        used, passed = await host.cpu_seconds(name_of(chamber)) - before, time.monotonic() - started
        await chamber.kill()
        outcome = await running
    share = used / passed
    text = f"{share:.2f} of a CPU over {passed:.1f} s"
    return Finding(used > 0, share <= 1.5 * TENTH_OF_A_CPU + 0.05, str(outcome.ending), text)


# A timer takes one of the signals that may wait for a user. gVisor counts none, so there is no end.
ENOUGH = 100
TIMER = """
import signal, time
from probe import *
def refused():
    return syscall(222, 107, 0, None, ctypes.byref(ctypes.c_int()))[1]
"""
HOG = (
    TIMER
    + """
signal.signal(signal.SIGTERM, lambda *_: (tell(held=held, ended=ended), os._exit(0)))
held, ended = 0, False
while held < 5000 and not ended:
    ended = bool(refused())
    held += not ended
print("settled", flush=True)
time.sleep(60)
"""
)
NEIGHBOUR = TIMER + "tell(error=refused())"


@attack("T23", "noisy neighbour: use up what the kernel grants a user", runsc="timers are the sentry's own there")
async def per_user_quota(arena: Arena) -> Finding:
    """A chamber that holds all waiting signals of its user leaves its neighbour's untouched: it is another user."""
    hog, neighbour = await beside(arena, HOG, NEIGHBOUR, env={})
    held, error = told(hog).get("held", 0), told(neighbour).get("error", "nothing told")
    text = f"the hog held {held}, the neighbour got {error or 'its own'}"
    used_up = told(hog).get("ended", False) and held > 0
    ran = (used_up or held >= ENOUGH) and bool(told(neighbour))
    return Finding(ran, error == "", str(neighbour.ending), text)


TERMINALS = """
import os, probe
held, error = [], ""
while len(held) < 40 and not error:
    error = probe.denied(lambda: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)))
probe.tell(held=len(held), error=error)
"""


@attack("T23", "noisy neighbour: take the host's terminals")
async def terminals(arena: Arena) -> Finding:
    """Terminals, of which all containers of a host share a fixed number, cannot be had."""
    return judged(await arena.run(TERMINALS), lambda seen: seen["held"] == 0)
