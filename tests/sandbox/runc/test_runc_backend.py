"""Chambers without a daemon, for real."""

import asyncio
import dataclasses
import json
import os
import threading
from pathlib import Path
from typing import Any, Literal

import pytest

from sandbox import Bundle, Ending, Gpu, InputStore, Job, Limits, Refused, RuncConfig, Unavailable
from sandbox.backends.runc import spec
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.runtime import Runtime
from sandbox.errors import NoSuchGpu
from sandbox.posture import FULL
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


async def connected(folder: Path, **more: object) -> RuncBackend:
    return await RuncBackend.connect(RuncConfig.model_validate({"folder": folder, **more}))


async def test_warm_chambers_are_used_once(tmp_path: Path) -> None:
    """A chamber that was started ahead serves a job; none serves two, and none is left in the end."""
    backend = await connected(tmp_path, warm=1)
    names = set()
    try:
        for _ in range(3):
            async with await backend.open(TRUE) as chamber:
                names.add(chamber.name)
                assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
    finally:
        await backend.close()
    assert len(names) == 3
    assert not list((tmp_path / "chambers").iterdir())
    assert not backend.estate.cgroups.exists(f"blastdoor-{backend.owner}")


@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_inputs_in_an_image_that_has_no_place_for_them(
    config: RuncConfig, tmp_path: Path, runtime: Literal["runc", "crun", "runsc"]
) -> None:
    """gVisor makes one in the root; the image that all chambers share has none afterwards, either."""
    places = {"images_folder": config.images_folder, "inputs_folder": tmp_path / "inputs"}
    backend = await connected(config.folder, runtime=runtime, **places)
    (tmp_path / "file").write_text("content")
    inputs = tuple(InputStore(tmp_path / "inputs").add(name, tmp_path / "file") for name in ("one", "two"))
    job = Job(command=("cat", "/inputs/one/file", "/inputs/two/file"), image=BUSYBOX, inputs=inputs)
    try:
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle({}))
        image = await backend.images.image(BUSYBOX)
    finally:
        await backend.close()
    assert (outcome.ending, outcome.log_tail) == (Ending.COMPLETED, b"contentcontent")
    assert not list((image.folder / "inputs").iterdir())


@on_each
async def test_nothing_is_mounted_on_the_host(tmp_path: Path, runtime: str) -> None:
    """All of a chamber's mounts are in its own namespace."""
    backend = await connected(tmp_path, runtime=runtime)
    try:
        async with await backend.open(TRUE):
            image = await backend.images.image(TRUE.image)
            assert not mounts_below(tmp_path)
            assert not mounts_below(image.folder)
    finally:
        await backend.close()


@on_each
async def test_image_is_never_changed(tmp_path: Path, runtime: str) -> None:
    """Chambers share it: neither a runtime that makes mount points, nor a writable root, leaves anything in it."""
    config = RuncConfig.model_validate({"folder": tmp_path, "runtime": runtime})
    backend = await RuncBackend.connect(config, dataclasses.replace(FULL, read_only_root=False))
    try:
        image = await backend.images.image(TRUE.image)
        before = sorted(os.listdir(image.folder)), sorted(os.listdir(image.folder / "etc"))  # noqa: PTH208
        job = Job(command=("sh", "-c", "mkdir /planted; echo x >/etc/planted; ls / >&2"))
        async with await backend.open(job) as chamber:
            await chamber.run(Bundle({}))
        assert before == (sorted(os.listdir(image.folder)), sorted(os.listdir(image.folder / "etc")))  # noqa: PTH208
    finally:
        await backend.close()


@on_each
async def test_what_a_chamber_said_is_not_its_own(tmp_path: Path, runtime: str) -> None:
    """It writes to its answers and to its log, also by their names; it takes nothing back, and lets nobody else."""
    backend = await connected(tmp_path, runtime=runtime)
    try:
        async with await backend.open(Job(command=("python3", "-uc", PIPES))) as chamber:
            outcome = await chamber.run(Bundle({}))
    finally:
        await backend.close()
    kept = "Permission denied, Operation not permitted, done"
    assert outcome.log_tail.decode().splitlines() == [kept, kept, "to stdout", "to stderr"]


async def test_filter_of_the_chamber_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """crun compiles a profile once; a filter that refuses less would be seen from inside."""
    backend = await connected(tmp_path, runtime="crun")
    probe = Job(command=("python3", "-c", NAMESPACE))
    told = []
    start = Runtime.start

    def seen(self: Runtime, name: str, folder: Path, *words: Any) -> int:
        told.append(json.loads((folder / "config.json").read_text()))
        return start(self, name, folder, *words)

    monkeypatch.setattr(Runtime, "start", seen)
    try:
        for _ in range(2):
            async with await backend.open(probe) as chamber:
                outcome = await chamber.run(Bundle({}))
                assert outcome.facts["seccomp"] == "2"
                assert b"Operation not permitted" in outcome.log_tail
    finally:
        await backend.close()
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


async def test_cancelled_while_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runtime makes for a caller that gave up meanwhile is ended before the caller hears of it."""
    backend = await connected(tmp_path)
    try:
        runtime = SlowRuntime(monkeypatch)
        opening = asyncio.create_task(backend.open(TRUE))
        await asyncio.to_thread(runtime.asked.wait, 60)
        opening.cancel()
        runtime.may.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not list((tmp_path / "chambers" / backend.owner).iterdir())
    finally:
        await backend.close()


async def test_an_end_does_not_wait_for_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chamber that is out of time is killed at once, however many starts a slow runtime keeps waiting."""
    monkeypatch.setattr("sandbox.backends.runc.backend.THREADS", 1)
    backend = await connected(tmp_path)
    try:
        chamber = await backend.open(TRUE)
        runtime = SlowRuntime(monkeypatch)
        opening = asyncio.create_task(backend.open(TRUE))
        await asyncio.to_thread(runtime.asked.wait, 60)
        await asyncio.wait_for(chamber.kill(), 30)
        assert not backend.estate.cgroups.exists(backend.estate.group(chamber.name.rpartition("-")[2]))
        runtime.may.set()
        await (await opening).kill()
    finally:
        runtime.may.set()
        await backend.close()


async def test_nobody_collects_what_pid_1_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container without an init each chamber would stay as a dead process."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(Refused, match="docker run --init"):
        await connected(tmp_path)


async def test_refusals(tmp_path: Path) -> None:
    """Before anything runs, in one line: a GPU, an image that nobody has, a flag that nobody holds here."""
    backend = await connected(tmp_path)
    try:
        with pytest.raises(NoSuchGpu, match=r"wanted no-such-kind:1|this machine has no GPU"):
            await backend.open(Job(command=("true",), limits=Limits(gpu=Gpu(kind="no-such-kind"))))
        with pytest.raises(Refused, match="nobody:latest"):
            await backend.open(Job(command=("true",), image="nobody:latest"))
    finally:
        await backend.close()
    with pytest.raises(Refused, match="log_driver"):
        await RuncBackend.connect(RuncConfig(folder=tmp_path), dataclasses.replace(FULL, log_driver=False))
    with pytest.raises(Refused, match="closed"):
        await backend.open(TRUE)


@on_each
async def test_runtime_that_fails(tmp_path: Path, runtime: str) -> None:
    """What the runtime said is in the line, it is nobody's fault inside, and nothing of the chamber is left."""
    backend = await connected(tmp_path, runtime=runtime)
    try:
        image = await backend.images.image(TRUE.image)
        for root, said in (("empty", rf"{runtime} failed: .*exit 1"), ("nowhere", "nowhere cannot be mounted")):
            if root == "empty":
                (tmp_path / root).mkdir()
            spec_for = backend._specs(TRUE, dataclasses.replace(image, folder=tmp_path / root), [])
            with pytest.raises(Unavailable, match=said):
                await backend._make(spec_for, TRUE.limits)
        assert not list((tmp_path / "chambers" / backend.owner).iterdir())
    finally:
        await backend.close()


@on_each
async def test_runtime_that_lets_a_chamber_swap(tmp_path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel holds it to is compared, not what the runtime was told: memory that is swapped is memory."""
    asked = spec._resources

    def lenient(*words: Any) -> dict[str, Any]:
        found = asked(*words)
        found["memory"]["swap"] *= 2
        return found

    backend = await connected(tmp_path, runtime=runtime)
    try:
        monkeypatch.setattr(spec, "_resources", lenient)
        with pytest.raises(Refused, match="swap: asked 0, the kernel holds it to"):
            await backend.open(TRUE)
    finally:
        await backend.close()


async def test_runtime_that_starts_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that a runtime inherited may lead out of the chamber: the kernel is asked where it is."""
    backend = await connected(tmp_path)

    def elsewhere(*words: Any, **more: Any) -> dict[str, Any]:
        found = spec.oci_spec(*words, **more)
        found["process"].update(cwd="/usr", args=["sleep", "60"])
        return found

    monkeypatch.setattr("sandbox.backends.runc.backend.oci_spec", elsewhere)
    try:
        with pytest.raises(Refused, match=r"started a chamber in /usr \(neither its root"):
            await backend.open(TRUE)
        assert not list((tmp_path / "chambers" / backend.owner).iterdir())
    finally:
        await backend.close()


async def test_chamber_that_ends_while_it_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an outage, and nothing of it stays open."""
    backend = await connected(tmp_path)

    def gone(_: int) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("sandbox.backends.runc.backend.working_directory", gone)
    try:
        await backend.images.image(TRUE.image)
        before = _grips()
        with pytest.raises(Unavailable, match="ended as soon as it was made"):
            await backend.open(TRUE)
        assert _grips() == before
    finally:
        await backend.close()


async def test_killed_from_outside_is_the_chambers_own_end(tmp_path: Path) -> None:
    """Somebody who kills a chamber's processes on the host leaves no outcome of ours behind it: it failed."""
    backend = await connected(tmp_path)
    try:
        async with await backend.open(Job(command=("sleep", "60"))) as chamber:
            running = asyncio.create_task(chamber.run(Bundle({})))
            group = backend.estate.group(chamber.name.rpartition("-")[2])
            # Its first processes unpack files: one that is killed then never ran.
            while not any(map(_sleeps, backend.estate.cgroups.processes(group))):  # noqa: ASYNC110  nobody is told
                await asyncio.sleep(0.02)
            await asyncio.to_thread(backend.estate.cgroups._kill, backend.estate.cgroups._holder("pids").folder / group)
            outcome = await running
        assert outcome.ending is Ending.FAILED
    finally:
        await backend.close()


def _sleeps(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0060\0"
    except OSError:
        return False


def _grips() -> int:
    """How many processes we hold."""
    return sum("pidfd" in str(it.readlink()) for it in Path("/proc/self/fd").iterdir() if it.is_symlink())
