"""Group H, what a chamber starts with: its working directory, its image's settings, what an earlier trial left."""

import json
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from sandbox.attacks.attack import IMAGE, QUICK, Arena, Finding, attack, name_of, told
from sandbox.attacks.neighbours import beside
from sandbox.errors import Refused
from sandbox.job import Job, Outcome
from sandbox.posture import OTHER_LIMITS, UNLIMITED


@asynccontextmanager
async def _cold(arena: Arena) -> AsyncIterator[Arena]:
    """The same, without chambers made ahead: one that waits would hold on to an image that is to be removed."""
    cold = await arena.host.reopened(arena.posture, warm=0)
    try:
        yield cold
    finally:
        await cold.backend.close()


def _accepted(workdir: str) -> bool:
    try:
        Job(command=("true",), workdir=workdir)
    except ValidationError:
        return False
    return True


PLACE = """
import os
from probe import *
def link(path):
    try:
        return os.readlink(path)
    except OSError as error:
        return type(error).__name__
links = [link("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd")]
tell(here=os.getcwd(), first=link("/proc/1/cwd"), links=links)
"""


@attack(
    "T10",
    "start in a directory behind an inherited descriptor",
    runsc="descriptors are the sentry's own; it does not tell where PID 1 is, so only the candidate's place is judged",
)
async def working_directory(arena: Arena) -> Finding:
    """A job cannot name such a place, and an image that names it is not obeyed."""
    wanted = ("/proc/self/fd/8", "../x", "a/../../x", "/", "/work", "a\nb", "..")
    accepted = [place for place in wanted if _accepted(place)]
    async with _cold(arena) as cold, cold.host.derived(IMAGE, "WORKDIR /proc/self/fd/8") as name:
        ran = (await cold.host.image_settings(name)).get("WorkingDir") == "/proc/self/fd/8"
        job = Job(command=("true",), image=name, limits=QUICK)
        async with await cold.backend.open(job) as chamber:
            reported = await cold.host.working_directory(name_of(chamber))
        outcome = await cold.run(PLACE, image=name)
    seen = told(outcome)
    inside = seen.get("here") == "/work/src" and seen["first"] in ("/work", "PermissionError")
    blocked = not accepted and reported in ("/", "/work") and inside
    evidence = f"of {len(wanted)} places accepted: {accepted or 'none'}; the host reports {reported}; inside {seen}"
    return Finding(ran and bool(seen), blocked, str(outcome.ending), evidence[:240])


@attack("T11", "an image whose environment preloads code, or which brings a volume")
async def image_environment(arena: Arena) -> Finding:
    """Each such image is refused before anything of it is created; the same image with harmless settings is not."""
    hostile = {
        "LD_PRELOAD": "ENV LD_PRELOAD=/work/src/evil.so",
        "BASH_ENV": "ENV BASH_ENV=/work/src/evil.sh",
        "PYTHONPATH": "ENV PYTHONPATH=/work/src",
        "/keep": "VOLUME /keep",
    }
    told_so, carried = {}, []
    for name, change in hostile.items():
        async with arena.host.derived(IMAGE, change) as image:
            record = await arena.host.image_settings(image)
            carried.append(name in str(record.get("Env")) or name in str(record.get("Volumes")))
            told_so[name] = await _refusal(arena, image)
    async with _cold(arena) as cold, cold.host.derived(IMAGE, "ENV LANG=C.UTF-8") as image:
        harmless = await _refusal(cold, image)
    blocked = all(name in reason for name, reason in told_so.items()) and not harmless
    evidence = f"refused: {', '.join(name for name, reason in told_so.items() if reason) or 'none'}"
    return Finding(all(carried), blocked, "refused", evidence)


async def _refusal(arena: Arena, image: str) -> str:
    try:
        async with await arena.backend.open(Job(command=("true",), image=image, limits=QUICK)):
            return ""
    except Refused as error:
        return str(error)


# SysV segments and message queues outlive the process, so the one who looks also removes what it finds.
LEAVE = """
import ctypes, os, socket, time
from probe import *
mark, key = os.environ["MARK"], int(os.environ["KEY"])
def leave(folder):
    with open(folder + "/" + mark, "w") as file:
        file.write(mark)
folders = ("/dev/shm", "/tmp", "/work", "/work/out", "/var/tmp", "/run")
left = {folder: denied(lambda: leave(folder)) for folder in folders}
left["segment"] = syscall(29, 194, key, 4096, 0o1666)[1]
left["queue"] = syscall(240, 180, ctypes.c_char_p(mark.encode()), os.O_CREAT | os.O_RDWR, 0o666, None)[1]
door = socket.socket(socket.AF_UNIX)
left["abstract"] = denied(lambda: door.bind("\\0" + mark))
door.listen()
tell(left=left)
"""
STAY = (
    LEAVE
    + """
print("settled", flush=True)
time.sleep(60)
"""
)
LOOK = """
import ctypes, os, socket
from probe import *
mark, key = os.environ["MARK"], int(os.environ["KEY"])
found, looked = [], 0
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if (folder, name) not in (("/", "proc"), ("/", "sys"), ("/", "usr"))]
    looked += len(files)
    found += [os.path.join(folder, name) for name in files if name == mark]
segment = syscall(29, 194, key, 0, 0)
if not segment[1]:
    found.append("segment")
    syscall(31, 195, segment[0], 0, None)
queue = syscall(240, 180, ctypes.c_char_p(mark.encode()), os.O_RDWR, 0, None)
if not queue[1]:
    found.append("queue")
    syscall(241, 181, ctypes.c_char_p(mark.encode()))
door = socket.socket(socket.AF_UNIX)
abstract = denied(lambda: door.connect("\\0" + mark))
found += [] if abstract else ["abstract socket"]
tell(looked=looked, found=found, errors=[segment[1], queue[1], abstract])
"""


def _marks() -> dict[str, str]:
    return {"MARK": f"left-{uuid.uuid4().hex}", "KEY": str(secrets.randbelow(2**30) + 1)}


def _compared(left: Outcome, looked: Outcome) -> Finding:
    first, second = told(left), told(looked)
    places = [place for place, error in first.get("left", {}).items() if not error]
    ran = {"/dev/shm", "/tmp", "/work", "segment", "queue", "abstract"} <= set(places) and second.get("looked", 0) > 0
    evidence = f"left {' '.join(places)}; found {second.get('found')} with {second.get('errors')}"
    return Finding(ran, ran and not second["found"], str(looked.ending), evidence)


@attack("T12", "find what an earlier trial left")
async def leftovers(arena: Arena) -> Finding:
    """Files, shared memory, message queues and sockets of a trial are gone when the next one looks."""
    env = _marks()
    left = await arena.run(LEAVE, env=env)
    return _compared(left, await arena.run(LOOK, env=env))


@attack("T12", "find what a trial beside it holds")
async def belongings(arena: Arena) -> Finding:
    """The same is out of sight while the other trial is still alive."""
    return _compared(*await beside(arena, STAY, LOOK, _marks()))


RAISE = """
import json, os, resource
from probe import *
def limit(name):
    which = getattr(resource, "RLIMIT_" + name.upper())
    most = resource.getrlimit(which)[1]
    if most >= 0:
        try:
            resource.setrlimit(which, (most + 1, most + 1))
        except (OSError, ValueError):
            pass
    return resource.getrlimit(which)
tell(limits={name: limit(name) for name in json.loads(os.environ["NAMES"])})
"""


@attack("T98", "use a limit of whoever started the chamber, or raise one")
async def inherited_limits(arena: Arena) -> Finding:
    """Locked memory, queues, waiting signals and priorities are held to what we say, and stay there."""
    finite = {name: hard for name, (_, hard) in OTHER_LIMITS.items() if hard != UNLIMITED}
    outcome = await arena.run(RAISE, env={"NAMES": json.dumps(sorted(finite))})
    held = told(outcome).get("limits", {})
    beyond = {name: both for name, both in held.items() if not 0 <= max(both) <= finite[name] or min(both) < 0}
    ran = set(held) == set(finite)
    return Finding(ran, ran and not beyond, str(outcome.ending), f"limits {held}, beyond ours: {beyond or 'none'}")
