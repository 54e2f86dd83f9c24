"""What is held inside a sandbox because Modal does not hold it, and the comparison with what came of it."""

from collections.abc import Mapping
from importlib import resources

from sandbox.backend import Capabilities
from sandbox.errors import Refused, Unavailable
from sandbox.gpus import gpu_differences
from sandbox.job import Enforcer, Job, Limits

# Nothing of it may end by itself, and it takes in orphans whose parents are gone.
ENTRYPOINT = ("sh", "-c", "while :; do sleep 60; done")
TOOLS = ("sh", "head", "tar", "env", "setpriv", "mkdir", "chown")
MUST_BE_HELD = ("pids", "open_files")
NO_CAPABILITIES = "0000000000000000"

# The kernel's count of processes that it ended for want of memory, read by root: cgroup v2, then v1.
OUT_OF_MEMORY = (
    "sh",
    "-c",
    'while read -r name count; do [ "$name" != oom_kill ] || echo "$count"; done'
    " </sys/fs/cgroup/memory.events 2>/dev/null ||"
    ' while read -r name count; do [ "$name" != oom_kill ] || echo "$count"; done'
    " </sys/fs/cgroup/memory/memory.oom_control",
)

CAVEATS = (
    "The root folder is writable by root only, and read-only only where Modal's kernel lets the sandbox mount;"
    " /tmp and /work share one disk with it, and nobody limits their size and number of files where it does not.",
    "Processes and open files are limited by the sandbox's own kernel per user (rlimits), not by Modal.",
    "There is no seccomp profile of ours, and loopback sockets cannot be taken away:"
    " the boundary is Modal's own sandbox.",
    "That the network is blocked is Modal's word; what the sandbox sees of it is a fact of the chamber.",
    "A GPU is compared with what was asked for only where the sandbox's own tools report one.",
    "A killed owner's sandbox does not end by itself: the warden ends it, and its lifetime does in any case.",
)


def command(uid: int, limits: Limits, boot: str) -> tuple[str, ...]:
    wrapper = resources.files("sandbox.backends.modal").joinpath("guest.sh").read_text("utf-8")
    numbers = (uid, limits.pids, limits.open_files, limits.work_bytes, limits.work_inodes)
    return ("sh", "-c", wrapper, "blastdoor", *map(str, numbers), boot)


def compare(facts: Mapping[str, str], job: Job, uid: int) -> None:
    """Raises Refused when the image cannot become a chamber, or less is held than must be."""
    if lacks := ", ".join(facts.get("lacks", "").split()):
        raise Refused(f"the image {job.image} lacks {lacks}; on Modal an image needs {', '.join(TOOLS)}")
    found = differences(facts, uid)
    if "gpu" in facts:
        found += gpu_differences(job.limits.gpu, facts)
    if found:
        raise Refused(f"the chamber's posture is not what was asked for: {'; '.join(found)}")


def told(error: BaseException) -> BaseException:
    """A wrapper that could not give up its rights says so in its last words, and no other try would help."""
    if isinstance(error, Unavailable) and "setpriv:" in str(error):
        return Refused(f"the sandbox does not let go of root's rights: {error}")
    return error


def differences(facts: Mapping[str, str], uid: int) -> list[str]:
    """Where the chamber, before any hostile byte, sees less than must hold."""
    wanted = {"uid": f"{uid} {uid} {uid} {uid}", "capabilities": NO_CAPABILITIES}
    if "no_new_privileges" in facts:
        # A kernel that does not report it (gVisor) took the order all the same, or setpriv would have given up.
        wanted["no_new_privileges"] = "1"
    found = [
        f"{name}: wanted {value}, the chamber sees {facts.get(name, 'nothing')}"
        for name, value in wanted.items()
        if facts.get(name) != value
    ]
    held = facts.get("held", "").split()
    return found + [f"{limit}: the sandbox's kernel does not limit it" for limit in MUST_BE_HELD if limit not in held]


def capabilities() -> Capabilities:
    controller = ("wall", "build", "grace", "bundle_bytes", "log_bytes", "output_bytes", "output_files")
    enforced = dict.fromkeys((*controller, "frame_bytes", "frames"), Enforcer.CONTROLLER)
    enforced |= dict.fromkeys(("memory", "cpus", "gpu"), Enforcer.ENGINE)
    enforced |= dict.fromkeys(MUST_BE_HELD, Enforcer.GUEST)
    enforced |= dict.fromkeys(("work_bytes", "work_inodes"), Enforcer.NOBODY)
    return Capabilities(
        boundary="modal: a sandbox of Modal's, on Modal's machines",
        relay=True,
        live_log=True,
        stop=True,
        enforced=enforced,
        caveats=CAVEATS,
    )
