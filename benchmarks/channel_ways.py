"""The ways by which two chambers try to tell each other bits: what the writer runs, what the reader runs."""

from dataclasses import dataclass

from sandbox.attacks.channels import BY_ADVICE, BY_TIME, FILES

EVICT = (
    FILES
    + """
for path in files(int(os.environ["BITS"])):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
tell(done=True)
"""
)
BY_READING = (
    FILES
    + """
bits = json.loads(os.environ["MESSAGE"])
for path, bit in zip(files(len(bits)), bits):
    if bit:
        with open(path, "rb") as file:
            file.read(16384)
tell(done=True)
"""
)
# A cold file is slow and a bit that is one was read: the order is turned around.
BY_COLD_TIME = BY_TIME.replace("times=[taken(", "times=[-taken(")
NAMES = """
import json, os, time
from probe import *
def names(place):
    return ["/usr/lib/python3/" + os.environ["SALT"] + "-%d-%d" % (place, number) for number in range(32)]
"""
BY_NAMES = (
    NAMES
    + """
for place, bit in enumerate(json.loads(os.environ["MESSAGE"])):
    if bit:
        for name in names(place):
            os.access(name, os.F_OK)
tell(done=True)
"""
)
BY_NAME_TIME = (
    NAMES
    + """
os.access("/usr/lib/python3/first", os.F_OK)
def taken(place):
    wanted, took = names(place), []
    for name in wanted:
        started = time.perf_counter_ns()
        os.access(name, os.F_OK)
        took.append(time.perf_counter_ns() - started)
    return -sorted(took)[len(took) // 2]
tell(times=[taken(place) for place in range(int(os.environ["BITS"]))])
"""
)

SLOTS = """
import ctypes, fcntl, json, os, select, time
from probe import *
START, SLOT = float(os.environ["START"]), float(os.environ["SLOT"])
def until(moment):
    while (left := START + moment - time.time()) > 0:
        time.sleep(left)
def send(on, off=lambda: None):
    late = START < time.time()
    for place, bit in enumerate(json.loads(os.environ["MESSAGE"])):
        until(place * SLOT)
        if bit:
            on(START + (place + 0.9) * SLOT)
        until((place + 0.9) * SLOT)
        if bit:
            off()
    tell(done=not late)
def receive(measure, at=0.5):
    late, times = START < time.time(), []
    for place in range(int(os.environ["BITS"])):
        until((place + at) * SLOT)
        times.append(measure())
    tell(times=[] if late else times)
def grew(count):
    last = [count()]
    def measure():
        before, last[0] = last[0], count()
        return last[0] - before
    return measure
"""
LOCK = """
file = os.open(os.environ["PLACE"], os.O_RDONLY)
def locked():
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 1
    fcntl.flock(file, fcntl.LOCK_UN)
    return 0
"""
HOLD = LOCK + "send(lambda end: fcntl.flock(file, fcntl.LOCK_EX), lambda: fcntl.flock(file, fcntl.LOCK_UN))"
TRY = LOCK + "receive(locked)"
WATCH = """
watching = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(watching, os.environ["PLACE"].encode(), 0x20)
def opened():
    try:
        return len(os.read(watching, 65536))
    except OSError:
        return 0
receive(opened)
"""
# A folder's mark tells by a signal of reads in it.
NOTICE = """
import signal
told_of = [0]
def heard(*_):
    told_of[0] += 1
signal.signal(signal.SIGIO, heard)
folder = os.open(os.path.dirname(os.environ["PLACE"]), os.O_RDONLY)
denied(lambda: fcntl.fcntl(folder, 1026, 0x80000001))
receive(grew(lambda: told_of[0]))
"""
READ_ONE = """
def read(end):
    file = os.open(os.environ["PLACE"], os.O_RDONLY)
    os.read(file, 64)
    os.close(file)
send(read)
"""
# Each watcher's mark makes every read of the file dearer, for whoever reads it.
MARK = """
watchers = [libc.inotify_init1(os.O_NONBLOCK) for _ in range(120)]
marks = []
def mark(end):
    marks[:] = [(it, libc.inotify_add_watch(it, os.environ["PLACE"].encode(), 0xFFF)) for it in watchers]
def unmark():
    for watcher, number in marks:
        libc.inotify_rm_watch(watcher, number)
send(mark, unmark)
"""
COST = """
def once():
    started = time.process_time_ns()
    for _ in range(50):
        file = os.open(os.environ["PLACE"], os.O_RDONLY)
        os.read(file, 64)
        os.close(file)
    return time.process_time_ns() - started
receive(lambda: min(once() for _ in range(5)))
"""
TOUCH = 'send(lambda end: os.close(os.open(os.environ["PLACE"], os.O_RDONLY)))'
LEASE = """
def leased():
    file = os.open(os.environ["PLACE"], os.O_RDONLY)
    try:
        fcntl.fcntl(file, 1024, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno
    finally:
        os.close(file)
    return 0
receive(leased)
"""
# The kernel knows who waits at a page, and how many have it mapped, by the file that is below all overlays.
PAGE = """
import mmap
libc.mmap.restype = ctypes.c_void_p
def page():
    file = os.open(os.environ["PLACE"], os.O_RDONLY)
    found = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
    os.close(file)
    return found, ctypes.c_uint32.from_address(found).value
"""
AWAIT = (
    PAGE
    + """
here, value = page()
def wait(end):
    left = int(max(end - time.time(), 0) * 1e9)
    syscall(202, 98, here, 0, value, (ctypes.c_long * 2)(*divmod(left, 10**9)), 0, 0)
send(wait)
"""
)
WAKE = PAGE + "here, _ = page()\nreceive(lambda: syscall(202, 98, here, 1, 1, 0, 0, 0)[0])"
MAP = (
    PAGE
    + """
mapped = []
def unmap():
    libc.munmap(ctypes.c_void_p(mapped.pop()), ctypes.c_size_t(4096))
send(lambda end: mapped.append(page()[0]), unmap)
"""
)
# What is said of a page includes whether anybody else has it mapped.
MAPPED = (
    PAGE
    + """
here, _ = page()
def is_mapped():
    try:
        with open("/proc/self/pagemap", "rb") as pages:
            pages.seek(here // 4096 * 8)
            return 1 - (int.from_bytes(pages.read(8), "little") >> 56 & 1)
    except OSError:
        return 0
receive(is_mapped)
"""
)
SPIN = """
def spin(end):
    while time.time() < end:
        pass
send(spin)
"""
WORK = """
def once():
    started = time.perf_counter_ns()
    for _ in range(100000):
        pass
    return time.perf_counter_ns() - started
receive(lambda: sorted(once() for _ in range(15))[7])
"""
FORK = """
def forks(end):
    while time.time() < end - SLOT / 2:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
send(forks)
"""
TAKE = """
kept = []
def take(end):
    kept.append(b"x" * (256 << 20))
send(take, kept.clear)
"""
MANY = """
kept = []
def many(end):
    kept.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(900))
def none():
    while kept:
        os.close(kept.pop())
send(many, none)
"""


def _counter(path: str, line: str, *, grows: bool, sign: int = 1, field: int = 1) -> str:
    """A program that reads one number of a file in /proc; an empty or missing file reads as 0."""
    return f"""
def count():
    try:
        for line in open({path!r}):
            if line.startswith({line!r}):
                return {sign} * int(line.split()[{field}])
    except OSError:
        pass
    return 0
receive({"grew(count), 0.85" if grows else "count"})
"""


@dataclass(frozen=True)
class Way:
    """`slot` is None for what is left behind. `place` is a file that both have; `cold` has it emptied first."""

    name: str
    writer: str
    reader: str
    slot: float | None = None
    place: str = ""
    cold: bool = False
    bits: int = 128


INPUT, IMAGE_FILE = "/inputs/data/file", "/usr/lib/os-release"
WAYS = (
    Way("advice on files of the image", BY_ADVICE, BY_TIME),
    Way("reads of cold files of the image", BY_READING, BY_COLD_TIME, cold=True),
    Way("names looked up in the image", BY_NAMES, BY_NAME_TIME),
    Way("flock on a file of the image", HOLD, TRY, 0.02, IMAGE_FILE),
    Way("flock on an input", HOLD, TRY, 0.02, INPUT),
    Way("flock on /proc/self/ns/user", HOLD, TRY, 0.02, "/proc/self/ns/user"),
    Way("inotify on a file of the image", TOUCH, WATCH, 0.02, IMAGE_FILE),
    Way("inotify on an input", TOUCH, WATCH, 0.02, INPUT),
    Way("F_NOTIFY on the folder of an input", READ_ONE, NOTICE, 0.02, INPUT),
    Way("marks that make reads of a file of the image dearer", MARK, COST, 0.2, IMAGE_FILE, bits=64),
    Way("marks that make reads of an input dearer", MARK, COST, 0.2, INPUT, bits=64),
    Way("leases on an input", TOUCH, LEASE, 0.02, INPUT),
    Way("waits at a page of the image (futex)", AWAIT, WAKE, 0.02, IMAGE_FILE),
    Way("waits at a page of an input (futex)", AWAIT, WAKE, 0.02, INPUT),
    Way("/proc/self/pagemap, a page of the image", MAP, MAPPED, 0.02, IMAGE_FILE),
    Way("/proc/vmstat, pages taken", TAKE, _counter("/proc/vmstat", "pgfault ", grows=True), 0.5, bits=32),
    Way("/proc/sys/fs/file-nr", MANY, _counter("/proc/sys/fs/file-nr", "", grows=False, field=0), 0.5, bits=32),
    Way("/proc/stat, processes made", FORK, _counter("/proc/stat", "processes ", grows=True), 0.5, bits=32),
    Way(
        "/proc/meminfo, free memory",
        TAKE,
        _counter("/proc/meminfo", "MemFree", grows=False, sign=-1),
        0.5,
        bits=32,
    ),
    Way("processor time, and its clock", SPIN, WORK, 0.5, bits=32),
)
