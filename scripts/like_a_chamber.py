"""Run a command in what of a chamber's posture needs no engine: to find out whether a program can live with it.

    python3 scripts/like_a_chamber.py COMMAND…          # as root

Our seccomp profile, a uid of its own, no capabilities, no new privileges, a read-only root with a small /work and /tmp,
no network, a private ipc, the limits on open files and locked memory, no core files. No pids or memory cgroup, no
masked paths: it is for trying things, such as a GPU's driver, on machines without an engine, and no boundary.
"""

import ctypes
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

SECCOMP = Path(__file__).resolve().parent.parent / "sandbox/seccomp.json"
UID = 1_500_000
INTERNET = (2, 10)
ADDRESS_FAMILY_NOT_SUPPORTED = 97
OPEN_FILES = 1024
LOCKED_BYTES = 8 << 20  # what systemd and Docker give
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x00020000, 0x08000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
LAST_CAPABILITY = 63
ALLOW, ERRNO, OPERATION_NOT_PERMITTED = 0x7FFF0000, 0x00050000, 1
COMPARE = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}

libc = ctypes.CDLL(None, use_errno=True)


class Comparison(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def checked(result: int, doing: str) -> None:
    if result:
        raise SystemExit(f"{doing}: {os.strerror(ctypes.get_errno() or -result)}")


def close_the_root() -> None:
    checked(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET), "unshare")
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    for place, options in (("/tmp", "mode=1777,size=256m"), ("/dev/shm", "mode=1777,size=256m")):  # noqa: S108
        checked(libc.mount(b"tmpfs", place.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options.encode()), place)
    checked(libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND | MS_RDONLY, None), "read-only root")


def drop_everything() -> None:
    for name, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)):
        resource.setrlimit(name, (value, value))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOCKED_BYTES, LOCKED_BYTES))
    for capability in range(LAST_CAPABILITY):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def filter_calls() -> None:
    profile = json.loads(SECCOMP.read_text())
    refused = {"action": "SCMP_ACT_ERRNO", "errnoRet": ADDRESS_FAMILY_NOT_SUPPORTED, "names": ["socket"]}
    profile["syscalls"] += [refused | {"args": [{"index": 0, "value": it, "op": "SCMP_CMP_EQ"}]} for it in INTERNET]
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ERRNO | OPERATION_NOT_PERMITTED))
    for rule in profile["syscalls"]:
        add_rule(seccomp, context, rule)
    checked(seccomp.seccomp_load(context), "seccomp")


def add_rule(seccomp: ctypes.CDLL, context: ctypes.c_void_p, rule: dict[str, Any]) -> None:
    allowed = rule["action"] == "SCMP_ACT_ALLOW"
    action = ALLOW if allowed else ERRNO | rule.get("errnoRet", OPERATION_NOT_PERMITTED)
    given = rule.get("args", [])
    compared = (Comparison * max(1, len(given)))(
        *(Comparison(it["index"], COMPARE[it["op"]], it["value"], it.get("valueTwo", 0)) for it in given)
    )
    for name in rule["names"]:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # this machine or this libseccomp may not know it
            add = seccomp.seccomp_rule_add_array
            checked(add(context, ctypes.c_uint32(action), number, len(given), compared), name)


def main() -> None:
    if len(sys.argv) < 2 or os.geteuid() != 0:
        raise SystemExit("usage, as root: like_a_chamber.py COMMAND…")
    close_the_root()
    drop_everything()
    os.environ["HOME"] = os.environ["TMPDIR"] = "/tmp"  # noqa: S108  a mount of our own, see above
    filter_calls()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  it is what was asked for


if __name__ == "__main__":
    main()
