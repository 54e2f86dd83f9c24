"""Chambers without a daemon, for real."""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox import Bundle, Ending, Gpu, InputStore, Job, Limits, Outcome, Refused, RuncConfig, Unavailable
from sandbox.backends.runc import spec
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.images import Rootfs
from sandbox.backends.runc.runtime import Runtime
from sandbox.errors import NoSuchGpu
from sandbox.posture import FULL, Posture
from sandbox.trees import mounts_below
from tests.sandbox.runc.conftest import BUSYBOX

pytestmark = pytest.mark.docker

TRUE = Job(command=("true",))
NAMESPACE = """
import ctypes, os
ctypes.CDLL(None, use_errno=True).unshare(1 << 28)
print(os.strerror(ctypes.get_errno()))
"""
PIPES = """
import os
def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return error.strerror
    return "done"
for pipe in ("/proc/1/fd/4", "/dev/stderr"):
    print(
        tried(lambda: os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)),
        tried(lambda: os.chmod(pipe, 0o666)),
        tried(lambda: os.open(pipe, os.O_WRONLY)),
        sep=", ",
    )
os.system("echo to stdout > /dev/stdout; echo to stderr > /dev/stderr")
"""
on_each = pytest.mark.parametrize("runtime", ["runc", "crun"])


Connect = Callable[..., Awaitable[RuncBackend]]


@pytest.fixture
async def connected(tmp_path: Path) -> AsyncIterator[Connect]:
    """`await connected(posture, runtime="crun")`: a backend by these settings; closed in the end, nothing is left."""
    made: list[RuncBackend] = []

    async def connect(posture: Posture = FULL, **wanted: object) -> RuncBackend:
        made.append(await RuncBackend.connect(RuncConfig.model_validate({"folder": tmp_path, **wanted}), posture))
        return made[-1]

    yield connect
    for backend in made:
        await backend.close()
        assert not backend.estate.folder.exists()
        assert not backend.estate.cgroups.exists(f"blastdoor-{backend.owner}")


async def ran(backend: RuncBackend, job: Job) -> Outcome:
    async with await backend.open(job) as chamber:
        return await chamber.run(Bundle({}))


def chambers(backend: RuncBackend) -> list[Path]:
    return list(backend.estate.folder.iterdir())


async def test_warm_chambers_are_used_once(connected: Connect) -> None:
    """A chamber that was started ahead serves a job; none serves two."""
    backend = await connected(warm=1)
    names = set()
    for _ in range(3):
        async with await backend.open(TRUE) as chamber:
            names.add(chamber.name)
            assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
    assert len(names) == 3


@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_inputs_in_an_image_that_has_no_place_for_them(
    config: RuncConfig, connected: Connect, tmp_path: Path, runtime: str
) -> None:
    """gVisor makes one in the root; the image that all chambers share has none afterwards, either."""
    places = {"images_folder": config.images_folder, "inputs_folder": tmp_path / "inputs"}
    backend = await connected(folder=config.folder, runtime=runtime, **places)
    (tmp_path / "file").write_text("content")
    inputs = tuple(InputStore(tmp_path / "inputs").add(name, tmp_path / "file") for name in ("one", "two"))
    outcome = await ran(
        backend, Job(command=("cat", "/inputs/one/file", "/inputs/two/file"), image=BUSYBOX, inputs=inputs)
    )
    assert (outcome.ending, outcome.log_tail) == (Ending.COMPLETED, b"contentcontent")
    assert not list(((await backend.images.image(BUSYBOX)).folder / "inputs").iterdir())


@on_each
async def test_image_is_never_changed(connected: Connect, tmp_path: Path, runtime: str) -> None:
    """Chambers share it: neither a runtime that makes mount points, nor a writable root, leaves anything in it. All
    mounts of a chamber are in its own namespace.
    """
    backend = await connected(dataclasses.replace(FULL, read_only_root=False), runtime=runtime)
    folder = (await backend.images.image(TRUE.image)).folder

    def seen() -> tuple[list[str], list[str]]:
        return sorted(os.listdir(folder)), sorted(os.listdir(folder / "etc"))  # noqa: PTH208

    before = seen()
    job = Job(command=("sh", "-c", "mkdir /planted; echo x >/etc/planted; ls / >&2"))
    async with await backend.open(job) as chamber:
        assert not mounts_below(tmp_path)
        assert not mounts_below(folder)
        await chamber.run(Bundle({}))
    assert seen() == before


@on_each
async def test_what_a_chamber_said_is_not_its_own(connected: Connect, runtime: str) -> None:
    """It writes to its answers and to its log, also by their names; it takes nothing back, and lets nobody else."""
    outcome = await ran(await connected(runtime=runtime), Job(command=("python3", "-uc", PIPES)))
    kept = "Permission denied, Operation not permitted, done"
    assert outcome.log_tail.decode().splitlines() == [kept, kept, "to stdout", "to stderr"]


async def test_filter_of_the_chamber_before(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """crun compiles a profile once; a filter that refuses less would be seen from inside."""
    backend = await connected(runtime="crun")
    told = []
    start = Runtime.start

    def seen(self: Runtime, name: str, folder: Path, *words: Any) -> int:
        told.append(json.loads((folder / "config.json").read_text()))
        return start(self, name, folder, *words)

    monkeypatch.setattr(Runtime, "start", seen)
    for _ in range(2):
        outcome = await ran(backend, Job(command=("python3", "-c", NAMESPACE)))
        assert outcome.facts["seccomp"] == "2"
        assert b"Operation not permitted" in outcome.log_tail
    assert ["annotations" in it for it in told] == [False, True]


class SlowRuntime:
    """A runtime that starts nothing before it may; `asked` is set once it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.may = threading.Event(), threading.Event()
        start = Runtime.start

        def slow(*words: Any) -> int:
            self.asked.set()
            assert self.may.wait(60), "nobody let the runtime start"
            return start(*words)

        monkeypatch.setattr(Runtime, "start", slow)


async def test_cancelled_while_it_is_made(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runtime makes for a caller that gave up meanwhile is ended before the caller hears of it."""
    backend = await connected()
    runtime = SlowRuntime(monkeypatch)
    opening = asyncio.create_task(backend.open(TRUE))
    await asyncio.to_thread(runtime.asked.wait, 60)
    opening.cancel()
    runtime.may.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not chambers(backend)


async def test_an_end_does_not_wait_for_starts(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chamber that is out of time is killed at once, however many starts a slow runtime keeps waiting."""
    monkeypatch.setattr("sandbox.backends.runc.backend.THREADS", 1)
    backend = await connected()
    chamber = await backend.open(TRUE)
    runtime = SlowRuntime(monkeypatch)
    opening = asyncio.create_task(backend.open(TRUE))
    try:
        await asyncio.to_thread(runtime.asked.wait, 60)
        await asyncio.wait_for(chamber.kill(), 30)
        assert not backend.estate.cgroups.exists(backend.estate.group(chamber.name.rpartition("-")[2]))
    finally:
        runtime.may.set()
    await (await opening).kill()


async def test_nobody_collects_what_pid_1_leaves(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container without an init each chamber would stay as a dead process."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(Refused, match="docker run --init"):
        await connected()


async def test_refusals(connected: Connect, tmp_path: Path) -> None:
    """Before anything runs, in one line: a GPU, an image that nobody has, a flag that nobody holds here."""
    backend = await connected()
    with pytest.raises(NoSuchGpu, match=r"wanted no-such-kind:1|this machine has no GPU"):
        await backend.open(Job(command=("true",), limits=Limits(gpu=Gpu(kind="no-such-kind"))))
    with pytest.raises(Refused, match="nobody:latest"):
        await backend.open(Job(command=("true",), image="nobody:latest"))
    closed = await RuncConfig(folder=tmp_path).connect()
    await closed.close()
    with pytest.raises(Refused, match="closed"):
        await closed.open(TRUE)
    with pytest.raises(Refused, match="log_driver"):
        await connected(dataclasses.replace(FULL, log_driver=False))


@on_each
@pytest.mark.parametrize(("root", "said"), [("empty", "failed: .*exit 1"), ("nowhere", "nowhere cannot be mounted")])
async def test_runtime_that_fails(
    connected: Connect, tmp_path: Path, runtime: str, root: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the runtime said is in the line, it is nobody's fault inside, and nothing of the chamber is left."""
    backend = await connected(runtime=runtime)
    image = await backend.images.image(TRUE.image)
    (tmp_path / "empty").mkdir()

    async def broken(*_: str) -> Rootfs:
        return dataclasses.replace(image, folder=tmp_path / root)

    monkeypatch.setattr(backend.images, "image", broken)
    with pytest.raises(Unavailable, match=said):
        await backend.open(TRUE)
    assert not chambers(backend)


def told(monkeypatch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], None]) -> None:
    """A runtime that holds something else than was asked for: it is told so, and we are not."""

    def other(*words: Any, **more: Any) -> dict[str, Any]:
        found = spec.oci_spec(*words, **more)
        change(found)
        return found

    monkeypatch.setattr("sandbox.backends.runc.backend.oci_spec", other)


@on_each
async def test_runtime_that_lets_a_chamber_swap(
    connected: Connect, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel holds it to is compared, not what the runtime was told: memory that is swapped is memory."""
    backend = await connected(runtime=runtime)
    twice = 2 * TRUE.limits.memory
    told(monkeypatch, lambda found: found["linux"]["resources"]["memory"].update(swap=twice))
    with pytest.raises(Refused, match="swap: asked 0, the kernel holds it to"):
        await backend.open(TRUE)


async def test_runtime_that_starts_elsewhere(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that a runtime inherited may lead out of the chamber: the kernel is asked where it is."""
    backend = await connected()
    told(monkeypatch, lambda found: found["process"].update(cwd="/usr", args=["sleep", "60"]))
    with pytest.raises(Refused, match=r"started a chamber in /usr \(neither its root"):
        await backend.open(TRUE)
    assert not chambers(backend)


async def test_chamber_that_ends_while_it_is_compared(connected: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an outage, and nothing of it stays open."""
    backend = await connected()

    def gone(_: int) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("sandbox.backends.runc.backend.working_directory", gone)
    await backend.images.image(TRUE.image)
    before = _grips()
    with pytest.raises(Unavailable, match="ended as soon as it was made"):
        await backend.open(TRUE)
    assert _grips() == before


async def test_killed_from_outside_is_the_chambers_own_end(connected: Connect) -> None:
    """Somebody who kills a chamber's processes on the host leaves no outcome of ours behind it: it failed."""
    backend = await connected()
    async with await backend.open(Job(command=("sleep", "60"))) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({})))
        group = backend.estate.group(chamber.name.rpartition("-")[2])
        # Its first processes unpack files: one that is killed then never ran.
        while not any(map(_sleeps, backend.estate.cgroups.processes(group))):  # noqa: ASYNC110  nobody is told
            await asyncio.sleep(0.02)
        for pid in backend.estate.cgroups.processes(group):
            with contextlib.suppress(ProcessLookupError):  # with its PID 1 all end
                os.kill(pid, signal.SIGKILL)
        assert (await running).ending is Ending.FAILED


def _sleeps(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0060\0"
    except OSError:
        return False


def _grips() -> int:
    """How many processes we hold."""
    return sum("pidfd" in str(it.readlink()) for it in Path("/proc/self/fd").iterdir() if it.is_symlink())
