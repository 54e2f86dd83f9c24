"""Group H, the kernel's surface: system calls that a candidate has no business with, called by number.

EPERM and ENOSYS are what a filter answers. Any other error was said by the code behind the door, so it counts as open.
"""

import json
from collections import Counter
from typing import Any

from sandbox.attacks.attack import Arena, Finding, attack, judged, told

NAMESPACES = """
import ctypes, os
from probe import *
NEWUSER = 0x10000000
def in_child(attempt):
    '''Run the attempt in a child: it may leave the caller in another namespace.'''
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, attempt().encode() or b"entered")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    return os.read(reader, 200).decode()
def entered(result):
    '''What the namespace is good for outside itself: root's files, raw memory and disks.'''
    if result[1]:
        return result[1]
    wanted = ("/etc/shadow", "/dev/mem", "/dev/vda", "/dev/sda")
    gained = [path for path in wanted if not denied(lambda: open(path).close())]
    return "entered" + (" and gained " + " ".join(gained) if gained else "")
def clone():
    result = syscall(56, 220, NEWUSER | 17, 0, 0, 0, 0)
    if result[0] == 0:
        os._exit(0)
    if result[0] > 0:
        os.waitpid(result[0], 0)
    return result[1]
def clone3():
    arguments = (ctypes.c_uint64 * 11)(NEWUSER, 0, 0, 0, 17)
    result = syscall(435, 435, ctypes.byref(arguments), 88)
    if result[0] == 0:
        os._exit(0)
    if result[0] > 0:
        os.waitpid(result[0], 0)
    return result[1]
tell(tried={"unshare": in_child(lambda: entered(syscall(272, 97, NEWUSER))),
    "unshare all": in_child(lambda: entered(syscall(272, 97, 0x7C020000))),
    "clone": in_child(clone), "clone3": in_child(clone3)})
"""


@attack(
    "T04",
    "enter a user namespace",
    runsc="the sentry makes one of its own, in its own kernel; judged is that it gains nothing of root's in there",
)
async def user_namespace(arena: Arena) -> Finding:
    """Neither unshare nor clone nor clone3 gives a user namespace, which would open much more of the kernel."""

    def blocked(seen: dict[str, Any]) -> bool:
        if arena.is_gvisor:
            return not any("gained" in answer for answer in seen["tried"].values())
        return all(answer in ("EPERM", "ENOSYS") for answer in seen["tried"].values())

    return judged(await arena.run(NAMESPACES), blocked)


# Numbers for x86_64 and aarch64, as the tables of the kernel have them.
FORBIDDEN = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapon": (167, 224),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "syslog": (103, 116),
    "userfaultfd": (323, 282),
}
# Said by gVisor's own code, which stands in for the kernel: no keys, no counters, no rings, no handles of the host.
HARMLESS_IN_THE_SENTRY = {"io_setup", "io_submit", "sync", "syncfs"}
SENTRY_REFUSALS = {"EACCES", "EINVAL", "ENODEV", "EOPNOTSUPP", "ENOTSUP"}

BY_NUMBER = """
import json, os
from probe import *
numbers = json.loads(os.environ["NUMBERS"])
tell(answers={name: syscall(x86, arm, 0, 0, 0, 0, 0) for name, (x86, arm) in numbers.items()})
"""


@attack(
    "T07",
    "call bpf, keyctl, perf, io_uring, userfaultfd, kexec and their kin by number",
    runsc="no profile applies; the sentry itself answers, some with EACCES, EINVAL, ENODEV or EOPNOTSUPP; "
    "asynchronous I/O and sync are its own, and reach neither the host's counters nor its disks",
)
async def forbidden_calls(arena: Arena) -> Finding:
    """Each is refused before the kernel's own code looks at its arguments."""
    outcome = await arena.run(BY_NUMBER, env={"NUMBERS": json.dumps(FORBIDDEN)})
    refusals = {"EPERM", "ENOSYS"} | (SENTRY_REFUSALS if arena.is_gvisor else set())
    answers = {name: error or "done" for name, (_, error) in told(outcome).get("answers", {}).items()}
    harmless = HARMLESS_IN_THE_SENTRY if arena.is_gvisor else set()
    reached = {name: answer for name, answer in answers.items() if answer not in refusals and name not in harmless}
    evidence = (
        f"{len(answers)} calls, answered {dict(Counter(answers.values()))}; reached the kernel: {reached or 'none'}"
    )
    ran = len(answers) == len(FORBIDDEN)
    return Finding(ran, ran and not reached, str(outcome.ending), evidence)


MOVED = """
import os
from probe import *
def moved(call):
    '''What became of one byte that is moved from pipe to pipe, or to a pipe from memory or a file.'''
    first, then = os.pipe(), os.pipe()
    os.write(first[1], b"x")
    return denied(lambda: call(first[0], then[1])) or "moved"
def vmsplice(_, pipe):
    byte = ctypes.create_string_buffer(b"x")
    piece = (ctypes.c_size_t * 2)(ctypes.addressof(byte), 1)
    failed(syscall(278, 75, pipe, ctypes.byref(piece), 1, 0)[1])
def tee(source, pipe):
    failed(syscall(276, 77, source, pipe, 1, 0)[1])
def failed(name):
    if name:
        import errno
        raise OSError(getattr(errno, name), name)
def sendfile(_, pipe):
    with open("/etc/passwd", "rb") as file:
        os.sendfile(pipe, file.fileno(), 0, 1)
tell(splice=moved(lambda source, pipe: os.splice(source, pipe, 1)), tee=moved(tee), vmsplice=moved(vmsplice),
    sendfile=moved(sendfile))
"""


@attack(
    "T82",
    "move bytes into a pipe without a copy, where who waits has its lock",
    runsc="the sentry does it all by itself, and waits in no pipe of the host's",
)
async def moved_bytes(arena: Arena) -> Finding:
    """One that waited in such a call would have our reading of the other end wait for it, for as long as it likes."""

    def blocked(seen: dict[str, Any]) -> bool:
        answers = {seen[name] for name in ("splice", "tee", "vmsplice", "sendfile")}
        return answers <= ({"EINVAL", "ENOSYS", "moved"} if arena.is_gvisor else {"EINVAL"})

    return judged(await arena.run(MOVED), blocked)


# A program of one system call, exit(42), as the kernel of a 32-bit machine numbers it. Hand-made, so that no
# compiler for another architecture is needed: header, one segment, the instructions. Its native twin must run.
FOREIGN_CALLS = """
import os, struct
from probe import *
if X86:
    OLD, NATIVE = bytes.fromhex("b801000000bb2a000000cd80"), bytes.fromhex("b83c000000bf2a0000000f05")
else:
    OLD, NATIVE = bytes.fromhex("0170a0e32a00a0e3000000ef"), bytes.fromhex("a80b80d2400580d2010000d4")
def elf32(code):
    machine, flags = (3, 0) if X86 else (40, 0x05000000)
    base, size = 0x10000, 52 + 32 + len(code)
    head = b"\\x7fELF\\x01\\x01\\x01" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, base + 84, 52, 0, flags, 52, 32, 1, 0, 0, 0)
    return head + struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000) + code
def elf64(code):
    base, size = 0x10000, 64 + 56 + len(code)
    head = b"\\x7fELF\\x02\\x01\\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62 if X86 else 183, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000) + code
def run(image):
    with open("/work/tmp/foreign", "wb") as file:
        file.write(image)
    os.chmod("/work/tmp/foreign", 0o755)
    return ended(lambda: os.execv("/work/tmp/foreign", ["foreign"]))
def ended(attempt):
    '''How a child ended that tried it: refused, its exit status, or the signal.'''
    child = os.fork()
    if child == 0:
        os._exit(100 if denied(attempt) else 0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "signal " + str(os.WTERMSIG(status))
    return "refused" if os.WEXITSTATUS(status) == 100 else "exit " + str(os.WEXITSTATUS(status))
def x32():
    if syscall(0x40000000 + 39, 0)[1]:
        raise OSError(38, "refused")
tried = {"32-bit program": run(elf32(OLD))}
if X86:
    tried["32-bit call in a 64-bit program"] = run(elf64(OLD))
    tried["x32 call"] = ended(x32)
tell(native=run(elf64(NATIVE)), tried=tried)
"""


@attack("T08", "make 32-bit and x32 system calls", runsc="the sentry loads no 32-bit program")
async def foreign_calls(arena: Arena) -> Finding:
    """A program that speaks the 32-bit calls does not get its exit status through, nor does an x32 call return."""
    outcome = await arena.run(FOREIGN_CALLS)
    seen = told(outcome)
    tried = seen.get("tried", {})
    ran = bool(tried) and seen["native"] == "exit 42"
    blocked = all(answer == "refused" or answer.startswith("signal") for answer in tried.values())
    return Finding(ran, blocked, str(outcome.ending), f"native twin: {seen.get('native')}; {tried}")


SOCKET_FAMILIES = """
import socket
from probe import *
kinds = {"vsock": (40, 1, 0), "packet": (17, 3, 0), "raw": (2, 3, 1), "raw6": (10, 3, 58), "alg": (38, 5, 0),
    "key": (15, 3, 2), "bluetooth": (31, 3, 0), "can": (29, 3, 1), "tipc": (30, 1, 0), "xdp": (44, 3, 0),
    "rds": (21, 5, 0), "nfc": (39, 3, 0), "netlink": (16, 3, 0), "inet": (2, 1, 0), "inet6": (10, 2, 0)}
tell(refused={name: denied(lambda: socket.socket(*kind).close()) for name, kind in kinds.items()},
    plain=denied(lambda: socket.socket(socket.AF_UNIX).close()) or "opened")
"""


@attack(
    "T08",
    "open sockets of other families than unix",
    runsc="the sentry has no odd families; netlink and inet are its own, and what they buffer is the chamber's memory",
)
async def socket_families(arena: Arena) -> Finding:
    """Only unix sockets open. Odd families widen the kernel; netlink and inet buffer what no memory limit counts."""

    def blocked(seen: dict[str, Any]) -> bool:
        if arena.is_gvisor:
            return all(answer for name, answer in seen["refused"].items() if name not in ("netlink", "inet", "inet6"))
        return set(seen["refused"].values()) <= {"EPERM", "EACCES", "EAFNOSUPPORT"}

    return judged(await arena.run(SOCKET_FAMILIES), blocked)
