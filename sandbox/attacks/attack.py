"""What an attack is, where it is run, and how it is judged.

An attack proves three things: it ran (a typo blocks nothing), it had no effect, and the chamber ended as the taxonomy
says. `Finding.ran` false is therefore a failure of the suite, not a success of the defence.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from sandbox.backend import Backend, Chamber, Listener, Talk
from sandbox.bundle import Bundle
from sandbox.inputs import InputStore
from sandbox.job import Job, Limits, Outcome
from sandbox.posture import CHAMBER_UIDS, FULL, Posture

IMAGE = "blastdoor-attack:latest"
# No row waits for this wall clock: it is long, so that a row proves something on a machine that is busy.
QUICK = Limits(wall=60, memory="128MiB", pids=64, work_bytes="16MiB", work_inodes=2000, open_files=256, cpus=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """What an attack found. `evidence` is one line for a person."""

    ran: bool
    blocked: bool
    ending: str
    evidence: str


class NotHere(Exception):
    """A row needs to see more than this backend shows: it proved nothing, and that is not the backend's fault."""


class Host(Protocol):
    """What is seen of a backend's chambers from outside. A chamber goes by its name."""

    @property
    def socket(self) -> str:
        """The address of an engine, which no chamber must reach."""

    @property
    def has_client(self) -> bool:
        """Whether chambers are asked for through a client, which might write down what it says."""

    @property
    def uids(self) -> range:
        """Those that chambers may have, and nobody else has."""

    @property
    def inputs(self) -> InputStore:
        """Where its chambers have their inputs from."""

    async def reopened(self, posture: Posture, **changes: Any) -> "Arena":
        """The same backend once more, with other settings; the caller closes it."""

    async def knows(self, chamber: str) -> bool:
        """Whether anything of a chamber is still there."""

    async def answers(self) -> None:
        """Something that takes long where the host is choked."""

    async def cpu_seconds(self, chamber: str) -> float:
        """By the kernel's count."""

    async def kept_log(self, chamber: str) -> bytes: ...

    async def record(self, chamber: str) -> str:
        """All that the host has written down about a chamber."""

    async def working_directory(self, chamber: str) -> str:
        """Where its first process was told to start, or where the kernel sees it."""

    async def image_settings(self, name: str) -> Mapping[str, Any]: ...

    async def files_of(self, image: str, realm: str) -> set[str]:
        """What chambers of a realm read of an image: layers, or files by their numbers."""

    def derived(self, image: str, change: str) -> AbstractAsyncContextManager[str]:
        """An image with one setting changed by an instruction of a Dockerfile, for as long as it is needed."""


class Arena:
    """A backend to attack, where there is one with the host's view beside it."""

    def __init__(self, backend: Backend, runtime: str, posture: Posture = FULL, host: Host | None = None) -> None:
        self.posture = posture
        self.backend = backend
        self.runtime = runtime
        self._host = host

    @property
    def has_host(self) -> bool:
        return self._host is not None

    @property
    def uids(self) -> range:
        return self._host.uids if self._host else CHAMBER_UIDS

    @property
    def host(self) -> Host:
        """Raises NotHere for a backend that shows nothing from outside."""
        if self._host is None:
            raise NotHere("it looks at chambers from outside, and this backend does not let us")
        return self._host

    @property
    def is_gvisor(self) -> bool:
        return self.runtime.startswith("runsc")

    async def run(
        self,
        source: str,
        *,
        limits: Limits = QUICK,
        files: Mapping[str, bytes] | None = None,
        listener: Listener | None = None,
        talk: Talk | None = None,
        **job: Any,
    ) -> Outcome:
        """Run Python source as the hostile candidate in a fresh chamber; `probe.py` is importable beside it."""
        bundle = Bundle({"attack.py": source.encode(), "probe.py": PROBE.encode(), **(files or {})})
        asked = Job(**{"command": ("python3", "attack.py"), "image": IMAGE, "limits": limits, **job})
        async with await self.backend.open(asked) as chamber:
            return await chamber.run(bundle, listener=listener, talk=talk)


def name_of(chamber: Chamber) -> str:
    """By which its host knows it."""
    return str(getattr(chamber, "name", ""))


Attempt = Callable[[Arena], Awaitable[Finding]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One row. `differs` says, per runtime, what that runtime cannot do or does differently, and why.

    `is_bytes`: it is stopped outside, by the reader of the same bytes on every runtime.
    """

    id: str
    title: str
    attempt: Attempt
    differs: Mapping[str, str] = field(default_factory=dict)
    is_bytes: bool = False

    @property
    def is_control(self) -> bool:
        """Controls are honest: they must get through."""
        return self.id.startswith("C")


@dataclass(frozen=True, slots=True)
class Result:
    """`here` is false for a row that this backend cannot have; its evidence says why."""

    attack: Attack
    runtime: str
    finding: Finding
    milliseconds: float
    here: bool = True

    @property
    def good(self) -> bool:
        return self.finding.ran and self.finding.blocked


_REGISTRY: list[Attack] = []


def attack(row: str, title: str, *, is_bytes: bool = False, **differs: str) -> Callable[[Attempt], Attempt]:
    """Register a coroutine function as the attack of a row."""

    def register(attempt: Attempt) -> Attempt:
        _REGISTRY.append(Attack(row, title, attempt, differs, is_bytes))
        return attempt

    return register


def registered() -> list[Attack]:
    return sorted(_REGISTRY, key=lambda item: item.id)


async def perform(item: Attack, arena: Arena) -> Result:
    started = time.perf_counter()
    finding = await item.attempt(arena)
    return Result(item, arena.runtime, finding, (time.perf_counter() - started) * 1000)


class Target(Protocol):
    """What can be attacked; `runtime` names it in the table."""

    @property
    def runtime(self) -> str: ...

    @property
    def never(self) -> Mapping[str, str]:
        """Flags of the posture that cannot be switched off there, each with the reason."""

    async def open(self, posture: Posture = FULL) -> Arena:
        """The caller closes its backend. Raises Refused for a posture that it cannot have."""


def told(outcome: Outcome) -> dict[str, Any]:
    """What the probe wrote to out/probe.json; empty when it wrote nothing. The probe is ours, so it is believed."""
    raw = outcome.outputs.get("probe.json")
    return dict(json.loads(raw)) if raw else {}


def judged(outcome: Outcome, blocked: Callable[[dict[str, Any]], bool], evidence: str = "") -> Finding:
    """The usual judgement: the probe says that it ran, and a condition on what it saw."""
    seen = told(outcome)
    ran = seen.get("ran") is True
    text = evidence or json.dumps({key: value for key, value in seen.items() if key != "ran"})[:160]
    return Finding(ran, ran and blocked(seen), str(outcome.ending), text)


PROBE = '''
"""Small helpers for probes inside the chamber."""
import ctypes, json, os, platform

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"


def tell(**seen):
    """Publish what was seen; call it whenever there is something new."""
    with open("/work/out/probe.json.new", "w") as file:
        json.dump({"ran": True, **seen}, file)
    os.replace("/work/out/probe.json.new", "/work/out/probe.json")


def syscall(x86, arm, *args):
    """Call by number on this architecture; returns (result, errno name or '')."""
    import errno
    ctypes.set_errno(0)
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(ctypes.c_long(x86 if X86 else arm), *words)
    return result, errno.errorcode.get(ctypes.get_errno(), "") if result == -1 else ""


def denied(action):
    """The errno name with which an action is refused, '' when it is not."""
    import errno
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return ""
'''
