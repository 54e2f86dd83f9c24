"""Group S, between chambers: bits that one chamber leaves on the host and another finds.

A message is a random choice of half of the places. The reader orders all of them by what it measured, and the slower
half is its guess: no threshold, and a busy machine can only make the guess worse.
"""

import json
import random
from collections.abc import Sequence
from typing import Any

from sandbox.attacks.attack import IMAGE, Arena, Finding, attack, judged, told
from sandbox.attacks.neighbours import beside

BITS = 128
# Half are right by chance, give or take 5.7: one message in a hundred million is read this well without a channel.
READ = 96

# Files that no interpreter opens by itself, and large enough that a look at the second page is a look of its own.
FILES = """
import ctypes, json, mmap, os, time
from probe import *
def files(count):
    found = []
    for folder, _, names in os.walk("/usr/lib"):
        for path in (folder + "/" + name for name in names):
            if not os.path.islink(path) and 8192 < os.stat(path).st_size < 200000:
                found.append(path)
    return sorted(found)[-count - 200:-200]
"""
BY_ADVICE = (
    FILES
    + """
bits = json.loads(os.environ["MESSAGE"])
answers = set()
for path, bit in zip(files(len(bits)), bits):
    file = os.open(path, os.O_RDONLY)
    os.read(file, 65536)
    if bit:
        answers.add(denied(lambda: os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)))
        with mmap.mmap(file, 8192, prot=mmap.PROT_READ) as mapped:
            answers.add(denied(lambda: mapped.madvise(21)))
    os.close(file)
tell(answers=sorted(answers))
"""
)
BY_TIME = (
    FILES
    + """
def taken(path):
    started = time.perf_counter_ns()
    file = os.open(path, os.O_RDONLY)
    os.pread(file, 4096, 4096)
    took = time.perf_counter_ns() - started
    os.close(file)
    return took
tell(times=[taken(path) for path in files(int(os.environ["BITS"]))])
"""
)


def message(bits: int = BITS) -> list[int]:
    chosen = [1] * (bits // 2) + [0] * (bits - bits // 2)
    random.SystemRandom().shuffle(chosen)
    return chosen


def read_right(sent: Sequence[int], measured: Sequence[float]) -> int:
    """How many bits a reader gets right that takes the slower half for ones; 0 when it measured something else."""
    if len(measured) != len(sent):
        return 0
    order = sorted(range(len(sent)), key=lambda place: measured[place], reverse=True)
    ones = set(order[: sum(sent)])
    return sum((place in ones) == bool(bit) for place, bit in enumerate(sent))


@attack(
    "T83",
    "tell a neighbour 128 bits by advice on files of the image",
    runsc="no profile applies; the sentry keeps the advice to itself",
)
async def page_cache_by_advice(arena: Arena) -> Finding:
    """One chamber reads files and asks the kernel to drop half of them; the next finds all of them alike."""
    sent = message()
    writer = await arena.run(BY_ADVICE, env={"MESSAGE": json.dumps(sent)})
    reader = await arena.run(BY_TIME, env={"BITS": str(BITS)})
    times = told(reader).get("times", [])
    ran = told(writer).get("ran") is True and len(times) == BITS
    right = read_right(sent, times)
    evidence = f"{right} of {BITS} bits were read right; the advice was answered {told(writer).get('answers')}"
    return Finding(ran, ran and right < READ, str(reader.ending), evidence)


RESIDENT = (
    FILES
    + """
path = files(1)[0]
file = os.open(path, os.O_RDONLY)
size = os.fstat(file).st_size
private = mmap.mmap(file, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
place = ctypes.addressof(ctypes.c_char.from_buffer(private))
pages = (ctypes.c_char * (size // 4096 + 1))()
buffer = ctypes.create_string_buffer(64)
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 64)
span = (ctypes.c_uint64 * 2)(0, size)
counts = (ctypes.c_uint64 * 5)()
mincore = syscall(27, 232, place, size, pages)[1]
tell(asked={"mincore": mincore or ("all there" if set(bytes(pages[:size // 4096])) <= {1} else "told"),
    "cachestat": syscall(451, 451, file, ctypes.byref(span), ctypes.byref(counts), 0)[1] or "told",
    "no wait": syscall(327, 286, file, ctypes.byref(vector), 1, 0, 0, 8)[1] or "told",
    "do not cache": syscall(327, 286, file, ctypes.byref(vector), 1, 0, 0, 128)[1] or "told",
    "merge a range": syscall(28, 233, place, 4096, 12)[1] or "merged",
    "merge all": syscall(157, 167, 67, 1, 0, 0, 0)[1] or "merged",
    "merge all, high bits set": syscall(157, 167, (1 << 32) + 67, 1, 0, 0, 0)[1] or "merged"},
    plain=syscall(327, 286, file, ctypes.byref(vector), 1, 0, 0, 0)[0])
"""
)


@attack(
    "T83",
    "ask the kernel what it keeps of a file, or to merge pages with a neighbour's",
    runsc="the sentry answers for itself: to it every page is there, it knows no flags for reads, and merges nothing",
)
async def page_cache_by_asking(arena: Arena) -> Finding:
    """No call tells without a clock whether a page is in memory, and no page is merged with another chamber's."""

    def blocked(seen: dict[str, Any]) -> bool:
        # gVisor has no pages to merge, and says that it did.
        its_own = {"all there", "merged"} if arena.is_gvisor else set()
        refusals = {"ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EINVAL"} | its_own
        return seen["plain"] == 64 and set(seen["asked"].values()) <= refusals

    return judged(await arena.run(RESIDENT), blocked)


NUMBERS = """
import os
from probe import *
found = {}
for top in ("/usr/bin", "/usr/lib"):
    for folder, _, names in os.walk(top):
        for path in (folder + "/" + name for name in names):
            found[path] = os.lstat(path).st_ino
tell(numbers=found)
"""
REALM = "suite"


@attack(
    "T83",
    "find a file of the image that a chamber of another realm reads, too",
    runsc="inode numbers are the sentry's own; judged is that the host keeps no layer for both",
)
async def files_of_another_realm(arena: Arena) -> Finding:
    """Chambers of one realm see the same inodes, and with them one cache; those of two have none in common."""
    layers = [await arena.host.files_of(IMAGE, realm) for realm in ("", REALM)]
    outcomes = [await arena.run(NUMBERS, realm=realm) for realm in ("", "", REALM)]
    first, again, other = (told(outcome).get("numbers", {}) for outcome in outcomes)
    known = set(first.values())
    shared = sum(number in known for number in other.values())
    ran = set(first) == set(other) and all(layers) and (arena.is_gvisor or first == again)
    blocked = not layers[0] & layers[1] and (arena.is_gvisor or not shared)
    evidence = f"{len(first)} files; shared with the same realm: {len(known)}, with another: {shared}"
    return Finding(ran, ran and blocked, str(outcomes[-1].ending), evidence)


WATCH = (
    FILES
    + """
import fcntl, signal, struct
places = files(int(os.environ["BITS"]))
seen, folders = [0] * len(places), 0
def heard(*_):
    global folders
    folders += 1
def told_of(*_):
    try:
        events = os.read(watcher, 1 << 20) if watcher >= 0 else b""
    except BlockingIOError:
        events = b""
    while events:
        number, _, _, length = struct.unpack_from("iIII", events)
        seen[marks.index(number)] += 1
        events = events[16 + length:]
    tell(seen=seen, folders=folders, refused=refused)
    os._exit(0)
signal.signal(signal.SIGIO, heard)
signal.signal(signal.SIGTERM, told_of)
watcher, refused = syscall(294, 26, 0x800)
marks = [] if refused else [syscall(254, 27, watcher, path.encode(), 0x20)[0] for path in places]
kept = [os.open(folder, os.O_RDONLY) for folder in {os.path.dirname(path) for path in places}]
for folder in kept:
    denied(lambda: fcntl.fcntl(folder, 1026, 0x80000001))
print("settled", flush=True)
while True:
    time.sleep(60)
"""
)
OPEN = (
    FILES
    + """
bits = json.loads(os.environ["MESSAGE"])
for path, bit in zip(files(len(bits)), bits):
    if bit:
        with open(path, "rb") as file:
            file.read(64)
tell(read=sum(bits))
"""
)


@attack("T98", "see which files of the image a neighbour opens", runsc="watches are the sentry's own there")
async def files_a_neighbour_opens(arena: Arena) -> Finding:
    """Neither a watch on a file nor one on a folder tells what another chamber reads of the same image."""
    sent = message()
    env = {"MESSAGE": json.dumps(sent), "BITS": str(BITS)}
    watched, opened = (told(it) for it in await beside(arena, WATCH, OPEN, env))
    ran = len(watched.get("seen", [])) == BITS and opened.get("read") == BITS // 2
    right = read_right(sent, watched.get("seen", []))
    evidence = f"{right} of {BITS} were told right, {watched.get('folders')} reads were heard of; "
    evidence += f"watches were refused with {watched.get('refused') or 'nothing'}"
    return Finding(ran, ran and right < READ and not watched["folders"], "completed", evidence)
