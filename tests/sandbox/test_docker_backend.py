"""What the Docker backend promises beyond the contract, on a real engine."""

import asyncio
import dataclasses
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox import (
    Bundle,
    Channel,
    DockerConfig,
    Ending,
    InputStore,
    Job,
    Limits,
    Lost,
    Mode,
    Refused,
    TakenAway,
    Unavailable,
)
from sandbox.backends.docker import backend as docker_backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.backends.docker.realms import Realms
from sandbox.backends.local import longest_life
from sandbox.conformance import programs
from sandbox.conformance.check import Ear
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject
from sandbox.link import Deadlines
from sandbox.posture import FULL, container_config, inside_differences

pytestmark = pytest.mark.docker

SMALL = Limits(wall=30, memory="64MiB", work_bytes="16MiB")
BUSYBOX_ROWS = ("success_with_outputs", "missing_command", "stop_with_partial_outputs")


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncIterator[DockerBackend]:
    connected = await DockerBackend.connect(DockerConfig(inputs_folder=tmp_path / "inputs"))
    yield connected
    await connected.close()


async def containers_of(backend: DockerBackend) -> list[Any]:
    return list(await backend.engine.containers(f"{OWNER_LABEL}={backend.owner}"))


async def left_of(backend: DockerBackend) -> list[Any]:
    """What a closed backend left; seen by nobody who would clean up, as every new owner does."""
    engine = Engine(DockerConfig().host)
    try:
        return list(await engine.containers(f"{OWNER_LABEL}={backend.owner}"))
    finally:
        engine.close()


@pytest.mark.parametrize("row", BUSYBOX_ROWS)
async def test_needs_only_sh_head_and_tar(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image with BusyBox and nothing else is enough."""
    original = programs.Program.job

    def on_busybox(self: programs.Program, **wanted: Any) -> Job:
        return original(self, **{"image": "blastdoor-busybox:latest", **wanted})

    monkeypatch.setattr(programs.Program, "job", on_busybox)
    subject = DockerSubject(DockerConfig())
    try:
        await CONTRACT[row](subject)
    finally:
        await subject.close()


@pytest.mark.parametrize("runtime", ["runc", "runsc"])
async def test_large_input_is_mounted_read_only(runtime: str, tmp_path: Path) -> None:
    """A large input is there, whole and read-only, not through stdin; equal content under two names is there twice."""
    source = tmp_path / "data"
    source.mkdir()
    (source / "big").write_bytes(bytes(range(256)) * 40_000)
    config = DockerConfig(inputs_folder=tmp_path / "store", runtime=runtime)
    items = tuple(InputStore(config.inputs_folder).add(name, source) for name in ("data", "again"))
    backend = await DockerBackend.connect(config)
    script = "head -c 300 /inputs/data/big >/work/out/start; (echo x >/inputs/data/new) 2>/dev/null && exit 9"
    script += "; cmp /inputs/data/big /inputs/again/big"
    try:
        job = Job(command=("sh", "-c", script), inputs=items, limits=Limits(bundle_bytes=1024))
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle({}))
    finally:
        await backend.close()
    assert outcome.ending is Ending.COMPLETED
    assert outcome.outputs["start"] == (bytes(range(256)) * 2)[:300]


async def test_what_is_not_there_is_refused(backend: DockerBackend) -> None:
    """An input that was never added, an image, a runtime (which is never silently replaced): each with what to do, and
    nothing is left. A backend that was closed opens nothing.
    """
    with pytest.raises(Refused, match="add it first"):
        await backend.open(Job(command=("true",), inputs=({"name": "x", "digest": "0" * 64},)))
    with pytest.raises(Refused, match="build it"):
        await backend.open(Job(command=("true",), image="blastdoor-no-such-image"))
    assert await containers_of(backend) == []
    with pytest.raises(Refused, match="no runtime 'runnix'"):
        await DockerBackend.connect(DockerConfig(runtime="runnix"))
    await backend.close()
    with pytest.raises(Refused, match="closed"):
        await backend.open(programs.NOTHING.job(limits=SMALL))


async def test_input_that_the_engine_cannot_mount(
    backend: DockerBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine on another machine has no such folder: one line, no second try, and no volume is left."""
    (tmp_path / "data").write_text("here")
    item = InputStore(tmp_path / "inputs").add("data", tmp_path / "data")
    monkeypatch.setattr(InputStore, "locate", lambda _, item, realm="": tmp_path / "nowhere" / item.digest)
    with pytest.raises(Refused, match="mounts no overlay of an input"):
        await backend.open(Job(command=("true",), inputs=(item,)))
    assert await containers_of(backend) == []


async def test_any_difference_of_posture_refuses_the_start(backend: DockerBackend) -> None:
    """Whichever field a real engine reports otherwise than asked, the chamber does not start; as asked, it does."""
    job = programs.NOTHING.job(limits=SMALL)
    async with await backend.open(job) as chamber:
        container = (await backend.engine.inspect(chamber.name))["Id"]
        image = (await backend.engine.image(job.image))["Id"]
        uid, life_s = int(chamber.facts["uid"].split()[0]), longest_life(SMALL, Deadlines())
        asked: Any = container_config(
            FULL, SMALL, "runc", backend.boot, image, uid=uid, reads=backend.reads, life_s=life_s
        )
        await backend.compare(asked, container)
        for key in asked["HostConfig"]:
            otherwise = {**asked, "HostConfig": {**asked["HostConfig"], key: "something else"}}
            with pytest.raises(Refused, match=key):
                await backend.compare(otherwise, container)


async def test_posture_seen_inside_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that reports a flag but does not apply it is found out by the chamber itself."""
    backend = await DockerBackend.connect(DockerConfig(), dataclasses.replace(FULL, no_new_privileges=False))
    monkeypatch.setattr(docker_backend, "inside_differences", lambda _, *seen: inside_differences(FULL, *seen))
    try:
        with pytest.raises(Refused, match="no_new_privileges"):
            await backend.open(programs.NOTHING.job(limits=SMALL))
        assert await containers_of(backend) == []
    finally:
        await backend.close()


async def test_cancelled_open_leaves_nothing(backend: DockerBackend) -> None:
    """Whoever gives up while a chamber is being made leaves no container behind, at any moment of it."""
    for wait in (0.0, 0.02, 0.1, 0.2, 0.3):
        opening = asyncio.create_task(backend.open(programs.NOTHING.job(limits=SMALL)))
        await asyncio.sleep(wait)
        opening.cancel()
        await asyncio.wait({opening})
        if not opening.cancelled():
            await opening.result().kill()
    assert await containers_of(backend) == []


async def test_chamber_taken_away_is_lost_not_failed(backend: DockerBackend) -> None:
    """A container that somebody else removed is Lost: the program did not fail."""
    ear = Ear()
    async with await backend.open(programs.SLEEP.job(limits=SMALL)) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
        await ear.hears()
        await backend.engine.remove(chamber.name)
        with pytest.raises(Lost):
            await running


async def test_what_could_not_be_removed_is_tried_again(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chamber that the engine would not let us end is not called ended, and is removed at the next beat."""
    remove = backend.engine.remove

    async def refuse(name: str) -> bool:
        raise Unavailable("pretended")

    limits = SMALL.model_copy(update={"wall": 0.3})
    async with await backend.open(programs.SLEEP.job(limits=limits)) as chamber:
        monkeypatch.setattr(backend.engine, "remove", refuse)
        with pytest.raises(Unavailable, match="could not be ended"):
            await chamber.run(Bundle({}))
    assert len(await containers_of(backend)) == 1
    monkeypatch.setattr(backend.engine, "remove", remove)
    await backend.remove_left()
    assert await containers_of(backend) == []


@pytest.mark.parametrize("runtime", ["runc", "runsc"])
async def test_removed_by_several_at_once(runtime: str) -> None:
    """Gone means gone for each of them: also for those whom the engine tells that a removal is in progress."""
    backend = await DockerBackend.connect(DockerConfig(runtime=runtime, warm=0))

    async def remove(name: str) -> None:
        await backend.engine.remove(name)
        with pytest.raises(Lost):
            await backend.engine.inspect(name)

    try:
        for _ in range(3):
            chamber = await backend.open(Job(command=("sleep", "60"), limits=SMALL))
            await asyncio.gather(*(remove(chamber.name) for _ in range(8)))
            await chamber.kill()
    finally:
        await backend.close()


async def test_dead_warden_is_replaced(backend: DockerBackend) -> None:
    """Nothing is started unguarded: a warden that died is replaced before the next chamber opens."""
    first = backend.warden_pid
    assert first
    os.kill(first, signal.SIGKILL)
    async with asyncio.timeout(60):
        while psutil.pid_exists(first):  # noqa: ASYNC110  the process tells nobody else
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.05)  # its end has been heard of
    async with await backend.open(programs.NOTHING.job(limits=SMALL)):
        assert backend.warden_pid not in (None, first)


async def test_a_create_whose_reply_was_lost_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine makes it after we gave up and looked for it: then an orderly close leaves it to the warden."""
    backend = await DockerBackend.connect(DockerConfig())
    create, asked = backend.engine.create, []

    async def lost(name: str, config: Any) -> str:
        asked.append((name, config))
        raise Unavailable("create: the engine does not answer")

    monkeypatch.setattr(backend.engine, "create", lost)
    with pytest.raises(Unavailable, match="does not answer"):
        await backend.open(programs.NOTHING.job(limits=SMALL))
    await create(*asked[0])
    assert len(await containers_of(backend)) == 1
    await backend.close()
    assert await left_of(backend) == []


async def test_close_during_open_leaves_nothing() -> None:
    """A chamber that is being made while the backend is closed does not stay."""
    backend = await DockerBackend.connect(DockerConfig())
    opening = asyncio.create_task(backend.open(programs.NOTHING.job(limits=SMALL)))
    await asyncio.sleep(0.6)
    await backend.close()
    await asyncio.wait({opening})
    assert await left_of(backend) == []


async def test_close_ends_chambers_before_it_waits_for_a_copy_of_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy takes minutes, in which nothing runs on; what waited for it is not opened any more."""
    backend = await DockerBackend.connect(DockerConfig())
    asked, lets = asyncio.Event(), asyncio.Event()

    async def copied(_: Realms, image: str, *__: str) -> str:
        asked.set()
        await lets.wait()
        return image

    monkeypatch.setattr(Realms, "copied", copied)
    chamber = await backend.open(Job(command=("sleep", "60"), limits=SMALL))
    running = asyncio.create_task(chamber.run(Bundle({})))
    opening = asyncio.create_task(backend.open(programs.NOTHING.job(limits=SMALL).model_copy(update={"realm": "a"})))
    await asked.wait()
    closing = asyncio.create_task(backend.close())
    async with asyncio.timeout(120):
        assert (await running).ending is Ending.KILLED
    assert not closing.done()
    lets.set()
    await closing
    with pytest.raises(Refused, match="was closed while"):
        await opening
    assert await left_of(backend) == []


@pytest.mark.parametrize("noticed", [True, False])
async def test_T86_t88_a_chamber_that_was_reaped_when_its_owners_lease_had_lapsed(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    """Whoever comes may reap what it had; that is nobody's fault inside, whether the lease was taken anew before that
    end is heard of, or, on waking, not yet. What is opened from then on is safe.
    """
    async with await backend.open(Job(command=("sleep", "60"), limits=SMALL)) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({})))
        (container,) = await containers_of(backend)
        monkeypatch.setattr(backend.lease, "clock", lambda: time.time() + 600)
        fresh = await backend.open(programs.NOTHING.job(limits=SMALL)) if noticed else None
        await backend.engine.remove(container["Id"])
        with pytest.raises(TakenAway, match="our lease had lapsed"):
            await running
    async with fresh or await backend.open(programs.NOTHING.job(limits=SMALL)) as chamber:
        assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED


@pytest.mark.parametrize("runtime", ["runc", "runsc"])
async def test_processor_seconds_grow_with_work(runtime: str) -> None:
    """What a chamber computes is seen from outside while it runs, whatever it says; gone, it is no longer asked."""
    busy = "while True: sum(range(100_000))\n"
    seen: list[float] = []

    async def talk(channel: Channel) -> None:
        while len(seen) < 2 or seen[-1] < seen[0] + 0.3:
            used = await channel.processor_seconds()
            assert used is not None
            seen.append(used)
            await asyncio.sleep(0.1)
        kept.append(channel)

    kept: list[Channel] = []
    backend = await DockerBackend.connect(DockerConfig(runtime=runtime))
    try:
        job = Job(command=("python3", "busy.py"), mode=Mode.RELAY, limits=Limits(wall=60))
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle.of(**{"busy.py": busy}), talk=talk)
    finally:
        await backend.close()
    assert outcome.ending is Ending.COMPLETED
    assert seen == sorted(seen)
    assert await kept[0].processor_seconds() is None


async def test_t83_a_realm_has_an_image_of_its_own(backend: DockerBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chamber of a realm has the same files and settings as any other, from layers that no other realm reads."""
    image, realm = "blastdoor-busybox:latest", f"test-{backend.owner}"
    # The engine makes the rest of etc for each container, at the minute of its start.
    look = "cd / && ls -ln bin etc | grep -v -e resolv -e host -e mtab >/work/out/files; echo $PATH >/work/out/path"

    async def seen(realm: str) -> Any:
        async with await backend.open(Job(command=("sh", "-c", look), image=image, realm=realm)) as chamber:
            return (await chamber.run(Bundle({}))).outputs

    monkeypatch.setattr(docker_backend, "IMAGE_S", 0.0)  # it is looked for each time
    original, copy = await backend.image_id(image), await backend.image_id(image, realm)
    try:
        assert await seen(realm) == await seen("")
        layers = [(await backend.engine.image(name))["RootFS"]["Layers"] for name in (original, copy)]
        assert not set(layers[0]) & set(layers[1])
        assert await backend.image_id(image, realm) == copy, "made once"
        assert await containers_of(backend) == []
    finally:
        await backend.engine.remove_image(copy)


async def test_many_chambers_leave_nothing(backend: DockerBackend) -> None:
    """Every container is gone when its context is left."""

    async def one() -> None:
        async with await backend.open(programs.NOTHING.job(limits=SMALL)) as chamber:
            await chamber.run(Bundle({}))

    for _ in range(2):
        await asyncio.gather(*(one() for _ in range(5)))
    assert await containers_of(backend) == []


ADVISES = b"""
import mmap, os, shutil, sqlite3
private = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE)
private.write(b"x" * (1 << 20))
for advice in (mmap.MADV_FREE, mmap.MADV_WILLNEED, mmap.MADV_SEQUENTIAL, mmap.MADV_HUGEPAGE, mmap.MADV_DONTNEED):
    private.madvise(advice)
assert private[0] == 0, "memory was not given back"
with open("/etc/passwd", "rb") as file:
    for advice in range(6):
        os.posix_fadvise(file.fileno(), 0, 0, advice)
    assert os.preadv(file.fileno(), [bytearray(4)], 0) == 4
assert os.system("cp -r /etc/. /work/tmp/etc 2>/work/tmp/errors; test -s /work/tmp/etc/passwd") == 0
with sqlite3.connect("/work/tmp/db") as base:
    base.execute("pragma journal_mode=wal")
    base.execute("pragma mmap_size=1048576")
    base.execute("create table t(a)")
    base.executemany("insert into t values(?)", [(n,) for n in range(1000)])
assert base.execute("pragma integrity_check").fetchone() == ("ok",)
"""
WATCHES = b"""
import fcntl, os, subprocess
log = os.open("/work/tmp/log", os.O_RDWR | os.O_CREAT)
following = subprocess.Popen(["tail", "-s", "0.05", "-f", "/work/tmp/log"], stdout=subprocess.PIPE)
os.write(log, b"later\\n")
assert following.stdout.readline() == b"later\\n"
following.kill()
copied = fcntl.fcntl(log, fcntl.F_DUPFD_CLOEXEC, 100)
assert copied >= 100 and fcntl.fcntl(copied, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
fcntl.lockf(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
reader, writer = os.pipe()
assert fcntl.fcntl(writer, 1031, 65536) == fcntl.fcntl(writer, 1032) == 65536
"""


async def test_t83_programs_live_without_the_page_caches_writers(backend: DockerBackend) -> None:
    """Advice is answered as if it were followed; memory is given back to the kernel, and databases and copies work. One
    that would be told of a change looks by itself (T97); locks and copies of descriptors are what they were.
    """
    both = Job(command=("sh", "-c", "python3 advises.py && python3 watches.py"), limits=SMALL)
    async with await backend.open(both) as chamber:
        outcome = await chamber.run(Bundle({"advises.py": ADVISES, "watches.py": WATCHES}))
    assert outcome.ending is Ending.COMPLETED, outcome.log_tail


async def test_reads_from_disk_are_limited(backend: DockerBackend) -> None:
    """A chamber sees the rate that was asked for, on every disk that its images and inputs are on."""
    look = "cat /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device /sys/fs/cgroup/io.max >/work/out/rates 2>/dev/null"
    async with await backend.open(Job(command=("sh", "-c", f"{look}; true"), limits=SMALL)) as chamber:
        rates = (await chamber.run(Bundle({}))).outputs["rates"].decode()
    assert len(rates.splitlines()) == len(backend.reads)
    assert rates.count(str(DockerConfig().disk_read)) == len(backend.reads)
