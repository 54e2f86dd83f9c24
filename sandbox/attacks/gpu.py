"""Chambers with a GPU: what one trial does to it, and what the next one finds.

Every row takes two chambers, one after the other, of a backend that gives each GPU to one chamber. Where there is no
GPU, nothing can be shown.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sandbox.attacks.attack import IMAGE, PROBE, Arena, Finding, NotHere, attack, judged
from sandbox.backend import Chamber
from sandbox.bundle import Bundle
from sandbox.errors import NoSuchGpu
from sandbox.job import Ending, Job, Limits, Outcome

WITH_GPU = Limits(wall=40, memory="2GiB", pids=128, work_bytes="16MiB", cpus=2, gpu="any:1")
SHORT = WITH_GPU.model_copy(update={"wall": 8.0})
PATTERN = 0xA5
DID = b"it is done\n"
ANSWER = 42  # of the kernel that ends
# What the driver itself keeps of a GPU's memory for a context, and a little more.
OWN_MIB = 2048

CUDA = (
    '''
import ctypes, os, sys, time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from probe import *
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *words):
    code = getattr(cuda, name)(*words)
    if code:
        raise SystemExit(f"{name} failed with {code}")
device, context = c_int(), c_void_p()
def begin():
    call("cuInit", 0)
    call("cuDeviceGet", byref(device), 0)
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)
def done(really=True):
    if really:
        os.write(2, b"it is done\\n")
def memory():
    free, total = c_size_t(), c_size_t()
    call("cuMemGetInfo_v2", byref(free), byref(total))
    return free.value >> 20, total.value >> 20
def taken(step=1 << 30):
    """All of the memory that can be had, in pieces."""
    pieces = []
    while True:
        piece = c_uint64()
        if cuda.cuMemAlloc_v2(byref(piece), c_size_t(step)):
            return pieces
        pieces.append(piece)
SPIN = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 place)
{
    .reg .u64 %a;
    ld.param.u64 %a, [place];
AGAIN:
    st.volatile.global.u32 [%a], 1;
    bra.uni AGAIN;
}
"""
ONCE = SPIN.replace(b"1;\\n    bra.uni AGAIN", b"42;\\n    ret").replace(b"AGAIN:\\n", b"")
def launched(source, blocks):
    module, function, place = c_void_p(), c_void_p(), c_uint64()
    call("cuMemAlloc_v2", byref(place), c_size_t(4))
    call("cuModuleLoadData", byref(module), source)
    call("cuModuleGetFunction", byref(function), module, b"spin")
    words = (c_void_p * 1)(ctypes.cast(byref(place), c_void_p))
    call("cuLaunchKernel", function, blocks, 1, 1, 256, 1, 1, 0, None, words, None)
    return place
def spin():
    """A kernel that never ends, on all of the GPU."""
    launched(SPIN, 1024)
def answer():
    """What a kernel that ends has written."""
    found = c_int()
    call("cuMemcpyDtoH_v2", byref(found), launched(ONCE, 1), c_size_t(4))
    return found.value
PATTERN = '''
    + str(PATTERN)
    + "\n"
)
LOOK = """
begin()
free, total = memory()
tell(free=free, total=total, answer=answer())
"""


@asynccontextmanager
async def opened(arena: Arena, limits: Limits) -> AsyncIterator[Chamber]:
    """Raises NotHere where the backend has no GPU."""
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=limits)
    try:
        chamber = await arena.backend.open(job)
    except NoSuchGpu as error:
        raise NotHere(f"it needs a GPU: {error}") from error
    async with chamber:
        yield chamber


async def run(arena: Arena, source: str, limits: Limits = WITH_GPU) -> Outcome:
    files = {"attack.py": (CUDA + source).encode(), "probe.py": PROBE.encode()}
    async with opened(arena, limits) as chamber:
        return await chamber.run(Bundle(files))


def did(outcome: Outcome, ending: Ending) -> Finding | None:
    """None when the attack did what it wanted, else that it proved nothing."""
    if outcome.ending is ending and DID in outcome.log_tail:
        return None
    said = outcome.log_tail.decode("utf-8", "replace")[-120:]
    return Finding(ran=False, blocked=False, ending=str(outcome.ending), evidence=f"it did not get that far: {said}")


async def then_whole(arena: Arena, outcome: Outcome, ending: Ending) -> Finding:
    """The attack did what it wanted, and the next chamber has the whole GPU."""
    return did(outcome, ending) or judged(
        await run(arena, LOOK), lambda seen: seen["total"] - seen["free"] < OWN_MIB and seen["answer"] == ANSWER
    )


@attack("T22", "GPU: a kernel that never ends")
async def hang(arena: Arena) -> Finding:
    """It ends with its chamber at the time limit, and the next chamber computes on the same GPU."""
    source = "begin()\nspin()\ndone()\ncall('cuCtxSynchronize')"
    return await then_whole(arena, await run(arena, source, SHORT), Ending.TIMED_OUT)


@attack("T22", "GPU: all of its memory, kept to the end")
async def hog(arena: Arena) -> Finding:
    """What a trial took is free for the next one."""
    source = "begin()\npieces = taken()\ndone(len(pieces) > 1)\ntime.sleep(60)"
    return await then_whole(arena, await run(arena, source, SHORT), Ending.TIMED_OUT)


@attack("T46", "GPU: a process that stays behind on it")
async def stays(arena: Arena) -> Finding:
    """A child in a session of its own, which holds memory and computes, ends with the trial."""
    source = """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    begin()
    pieces = taken()
    spin()
    done(len(pieces) > 1)
    open("/work/there", "w").close()
    time.sleep(600)
while not os.path.exists("/work/there"):
    time.sleep(0.05)
"""
    return await then_whole(arena, await run(arena, source), Ending.COMPLETED)


@attack("T46", "GPU: what another trial left in its memory")
async def stale(arena: Arena) -> Finding:
    """Memory that a killed trial had written full is read by the next one, and nothing of it is there."""
    writes = """
begin()
pieces = taken()
for piece in pieces:
    call("cuMemsetD8_v2", piece, PATTERN, c_size_t(1 << 30))
call("cuCtxSynchronize")
done(len(pieces) > 1)
time.sleep(60)
"""
    reads = """
begin()
pieces = taken()
room = 64 << 20
data = ctypes.create_string_buffer(room)
found = 0
for piece in pieces:
    call("cuMemcpyDtoH_v2", data, piece, c_size_t(room))
    found += data.raw.count(PATTERN)
tell(gibibytes=len(pieces), mebibytes_read=64 * len(pieces), found=found)
"""
    if failed := did(await run(arena, writes, SHORT), Ending.TIMED_OUT):
        return failed
    return judged(await run(arena, reads), lambda seen: seen["gibibytes"] > 1 and not seen["found"])


@attack("T22", "GPU: its settings, and the devices beside it")
async def settings(arena: Arena) -> Finding:
    """There are the devices for computing and no others, none can be made, and no setting of the driver is changed."""
    source = """
import glob, stat, subprocess
def asked(*words):
    done = subprocess.run(["nvidia-smi", *words], capture_output=True, text=True)
    return done.returncode, done.stdout
def settings():
    names = "persistence_mode,compute_mode,ecc.mode.pending,power.limit,accounting.mode,clocks.applications.graphics"
    return asked("--query-gpu=" + names, "--format=csv,noheader")
begin()
before = settings()
for words in "-pm 0", "-pm 1", "-c 3", "-e 0", "-e 1", "-pl 300", "-am 1", "-lgc 300,300", "-r":
    asked(*words.split())
after = settings()
written = [path for path in glob.glob("/nvidia/*/*") if not denied(lambda: open(path, "r+b").close())]
def node(minor):
    os.mknod(f"/tmp/gpu{minor}", 0o666 | stat.S_IFCHR, os.makedev(195, minor))
made = [minor for minor in range(8) if not denied(lambda: node(minor))]
nodes = sorted(glob.glob("/dev/nvidia*"))
known = [node for node in nodes if node in ("/dev/nvidiactl", "/dev/nvidia-uvm") or node[11:].isdigit()]
more = sorted(set(nodes) - set(known))
changed = [before[1], after[1]] if before != after else []
tell(asked=before[0], changed=changed, written=written, made=made, more=more, gpus=len(known) - 2)
"""

    def held(seen: dict[str, Any]) -> bool:
        return not (seen["changed"] or seen["written"] or seen["made"] or seen["more"]) and seen["gpus"] == 1

    return judged(await run(arena, source), lambda seen: seen["asked"] == 0 and held(seen))
