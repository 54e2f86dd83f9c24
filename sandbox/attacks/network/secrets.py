"""Group N, secrets: a canary in the orchestrator's environment must stay out of chambers and of every record."""

import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from sandbox.attacks.attack import IMAGE, PROBE, QUICK, Arena, Finding, attack, name_of, told
from sandbox.bundle import Bundle
from sandbox.errors import Refused
from sandbox.job import Job

# A shape that no warm chamber has: it is made after the canary was set.
UNWARMED = QUICK.model_copy(update={"open_files": QUICK.open_files - 1})


@contextmanager
def _secret() -> Iterator[str]:
    """A canary in the orchestrator's environment."""
    canary = f"canary-{uuid.uuid4().hex}"
    os.environ["BLASTDOOR_CANARY"] = canary
    try:
        yield canary
    finally:
        del os.environ["BLASTDOOR_CANARY"]


# The canary itself must not travel, not even to be searched for: its beginning is what is looked for. The decoy
# proves that the search finds what is there. /usr is the image's, older than the canary. One walk looks for both:
# a loaded gVisor takes long over it.
SEARCH = """
import glob, os
from probe import *
needles = {"found": b"can" + b"ary-", "decoys": b"dec" + b"oy-"}
seen, looked = {kind: [] for kind in needles}, 0
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if (folder, name) not in (("/", "proc"), ("/", "sys"), ("/", "usr"))]
    paths = [os.path.join(folder, name) for name in files]
    if folder == "/":
        paths += glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
    for path in paths:
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 2**20:
                with open(path, "rb") as file:
                    held = file.read(2**20)
                for kind, needle in needles.items():
                    if needle in held:
                        seen[kind].append(path)
            looked += 1
        except OSError:
            pass
tell(looked=looked, **seen)
"""


@attack("T62", "find the orchestrator's secrets in environment, command lines and files")
async def secrets_inside(arena: Arena) -> Finding:
    """A canary in the orchestrator's environment is nowhere in the chamber; a decoy given to the job is found."""
    with _secret():
        decoy: dict[str, Any] = {"env": {"DECOY": "decoy-1"}, "files": {"planted": b"decoy-2"}}
        outcome = await arena.run(SEARCH, limits=UNWARMED, **decoy)
    seen = told(outcome)
    decoys = seen.get("decoys", [])
    ran = "/work/src/planted" in decoys and any("environ" in path for path in decoys)
    evidence = f"{seen.get('looked')} files searched; canary in {seen.get('found')}, decoys in {decoys}"
    return Finding(ran, ran and not seen["found"], str(outcome.ending), evidence[:240])


DUMP = """
import glob, os, shutil
print(dict(os.environ), flush=True)
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        shutil.copyfile(path, "/work/out/" + path.strip("/").replace("/", "-"))
    except OSError as error:
        print(path, error)
raise SystemExit("decoy-3")
"""


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def _client_chatter() -> Iterator[list[str]]:
    """Everything that the engine's client would write at its most talkative."""
    logger, handler = logging.getLogger("urllib3"), _Lines()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


async def _records(arena: Arena) -> dict[str, str]:
    """One trial that dumps what it can read and fails, one that is refused: all that is written down about them."""
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=UNWARMED, env={"DECOY": "decoy-1"})
    backend, host = arena.backend, arena.host
    with structlog.testing.capture_logs() as logs, _client_chatter() as chatter:
        async with await backend.open(job) as chamber:
            inspected = await host.record(name_of(chamber))
            outcome = await chamber.run(Bundle({"attack.py": DUMP.encode(), "probe.py": PROBE.encode()}))
        try:
            await backend.open(job.model_copy(update={"image": "blastdoor-missing:latest"}))
        except Refused as error:
            refusal = str(error)
    return {
        "outcome": repr(outcome),
        "facts": repr(dict(chamber.facts)),
        "inspect": inspected,
        "log": repr(logs),
        "chatter": "\n".join(chatter),
        "refusal": refusal,
    }


@attack("T63", "get secrets echoed in records and logs")
async def secrets_in_records(arena: Arena) -> Finding:
    """The canary is in no record of a trial, its refusal or its log; what the candidate itself said is there."""
    with _secret() as canary:
        records = await _records(arena)
    expected = ("outcome", "facts", "inspect", "refusal", *(["chatter"] if arena.host.has_client else []))
    empty = [name for name in expected if not records[name]]
    ran = not empty and "decoy-1" in records["outcome"] and "decoy-3" in records["outcome"]
    leaks = [name for name, text in records.items() if canary in text]
    sizes = {name: len(text) for name, text in records.items()}
    return Finding(ran, ran and not leaks, "failed", f"characters searched {sizes}; canary in {leaks or 'none'}")
