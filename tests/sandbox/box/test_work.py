"""One errand, run as a process of its own beside a real engine."""

import asyncio
import os
import signal
import sys
import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import Bundle, DockerConfig, Ending, Input, InputStore, Job, Limits, Refused, Unavailable
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL, Lease
from sandbox.box.errand import OUTCOME, Doing, Errand, read_bundle
from sandbox.box.report import NAMES, Ended, Failed, Greeted, Missing, Report, parse_report
from sandbox.box.timer import end_everything
from sandbox.box.work import OWNERS, Root, has_input, unpack
from tests.conftest import Deep
from tests.sandbox.skypilot.grounds import REPOSITORY

pytestmark = [pytest.mark.docker, pytest.mark.touching("skypilot")]

LIMITS = Limits(wall=30, memory="64MiB", work_bytes="16MiB")


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    connected = await asyncio.to_thread(Engine, DockerConfig().host)
    yield connected
    connected.close()


@pytest.fixture
async def image(engine: Engine) -> str:
    return str((await engine.image("blastdoor-trial:latest"))["Id"])


async def started(folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sandbox.box", str(folder), env=os.environ | {"PYTHONPATH": str(REPOSITORY)}
    )


def came_of(folder: Path) -> Report:
    packed = folder / "packed.tar"
    with tarfile.open(packed, "w", format=tarfile.GNU_FORMAT) as target:
        for name in NAMES:
            target.add(folder / OUTCOME / name, name)
    return parse_report(packed.read_bytes(), LIMITS)


async def done(errand: Errand, folder: Path, bundle: Bundle | None = None) -> Report:
    errand.write(folder, bundle)
    process = await started(folder)
    assert await process.wait() == 0
    return came_of(folder)


def errand(image: str, script: str = ":", doing: Doing = Doing.RUN, seconds: float = 120, **wanted: object) -> Errand:
    job = Job(command=("sh", "-c", script), image=image, limits=LIMITS, **wanted)
    return Errand(doing=doing, job=job, runtime="runc", seconds=seconds)


async def test_a_trial(image: str, tmp_path: Path) -> None:
    """Bundle in, outcome out, x bits and all."""
    bundle = Bundle({"say.sh": b"#!/bin/sh\necho spoken; exit 3\n"}, frozenset({"say.sh"}))
    report = await done(errand(image, "./say.sh"), tmp_path / "trials" / "a", bundle)
    assert isinstance(report.page, Ended)
    assert (report.page.ending, report.page.exit_code) == (Ending.FAILED, 3)
    assert report.log == b"spoken\n"
    assert read_bundle(tmp_path / "trials" / "a") == bundle


async def test_a_greeting(image: str, tmp_path: Path) -> None:
    """Facts of a chamber, and nothing was run."""
    report = await done(errand(image, "exit 9", Doing.GREET), tmp_path / "trials" / "a")
    assert isinstance(report.page, Greeted)
    assert report.page.facts["cpu"]
    assert report.log == b""


async def test_its_own_clock(image: str, tmp_path: Path) -> None:
    """Past its own clock the errand ends itself and says so, whatever the job's limits are."""
    report = await done(errand(image, "sleep 60", seconds=12), tmp_path / "trials" / "a", Bundle({}))
    assert isinstance(report.page, Failed)
    assert "12 s" in report.page.reason


async def test_told_to_end(image: str, engine: Engine, tmp_path: Path) -> None:
    """SIGTERM ends the chamber first; there is an outcome, and no container."""
    folder = tmp_path / "trials" / "a"
    errand(image, "sleep 300").write(folder, Bundle({}))
    process = await started(folder)
    owner = await owner_of(tmp_path, engine)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    report = came_of(folder)
    assert isinstance(report.page, Failed)
    assert report.page.error == "lost"
    assert list(await engine.containers(f"{OWNER_LABEL}={owner}")) == []


async def test_the_absolute_end(image: str, engine: Engine, tmp_path: Path) -> None:
    """At its time the timer ends every chamber that errands of its root made, and tells the errands to end."""
    folder = tmp_path / "trials" / "a"
    errand(image, "sleep 300").write(folder, Bundle({}))
    process = await started(folder)
    owner = await owner_of(tmp_path, engine)
    timer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sandbox.box.timer", f"{time.time() + 1:.0f}", str(tmp_path),
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert await timer.wait() == 0
    await asyncio.wait_for(process.wait(), 120)
    assert list(await engine.containers(f"{OWNER_LABEL}={owner}")) == []


async def test_the_absolute_end_without_its_errand(image: str, engine: Engine, tmp_path: Path) -> None:
    """An errand that was killed with its warden leaves a chamber: the timer ends that too."""
    # Its lease holds for long: without one, any other test that connects would end the chamber first.
    lease = Lease(engine, 900)
    await lease.renew()
    container = await engine.create(
        f"blastdoor-{lease.owner}", {"Image": image, "Cmd": ["sleep", "300"], "Labels": {OWNER_LABEL: lease.owner}}
    )
    await engine.start(container)
    (tmp_path / OWNERS).mkdir()
    (tmp_path / OWNERS / lease.owner).touch()
    await end_everything(Root(tmp_path))
    assert list(await engine.containers(f"{OWNER_LABEL}={lease.owner}")) == []
    assert list(await engine.volumes(f"{OWNER_LABEL}={lease.owner}")) == []
    assert list((tmp_path / OWNERS).iterdir()) == []


async def owner_of(root: Path, engine: Engine) -> str:
    """Once a chamber of it runs."""
    for _ in range(2400):
        for path in (root / OWNERS).glob("*"):
            if any(item["State"] == "running" for item in await engine.containers(f"{OWNER_LABEL}={path.name}")):
                return path.name
        await asyncio.sleep(0.05)
    raise AssertionError("no chamber was made")


async def test_what_is_missing_is_asked_for(engine: Engine, image: str, tmp_path: Path) -> None:
    """An image by its id and inputs by their digest: told, taken in when they were sent, and checked."""
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/deep/data").write_text("hello")
    store = InputStore(tmp_path / "store")
    item = store.add("data", tmp_path / "tree")
    name = f"blastdoor-shipped-{os.getpid()}:latest"
    await engine.derive_image(image, name, ["ENV LANG=shipped"], {})
    shipped = str((await engine.image(name))["Id"])
    await engine.save_image(shipped, tmp_path / "image.tar")
    await engine.remove_image(name)
    wanted = errand(shipped, "cp /inputs/data/deep/data $BLASTDOOR_OUT/; echo $LANG", inputs=(item,))
    try:
        report = await done(wanted, tmp_path / "trials" / "a", Bundle({}))
        assert report.page == Missing(image=True, inputs=[item.digest])
        root = Root(tmp_path)
        root.image(shipped).parent.mkdir()
        (tmp_path / "image.tar").rename(root.image(shipped))
        with tarfile.open(root.input(item.digest), "w") as packed:
            packed.add(store.locate(item), ".")
        report = await done(wanted, tmp_path / "trials" / "b", Bundle({}))
        assert report.outputs == {"data": b"hello"}
        assert report.log == b"shipped\n"
    finally:
        await engine.remove_image(shipped)


async def test_an_input_of_another_content(image: str, tmp_path: Path) -> None:
    """What arrives under a digest is what has it, or it is not used."""
    item = Input(name="data", digest="0" * 64)
    (tmp_path / "other").write_text("something else")
    root = Root(tmp_path)
    root.input(item.digest).parent.mkdir()
    with tarfile.open(root.input(item.digest), "w") as packed:
        packed.add(tmp_path / "other", "data")
    report = await done(errand(image, inputs=(item,)), tmp_path / "trials" / "a", Bundle({}))
    assert isinstance(report.page, Failed)
    assert "another content" in report.page.reason


@pytest.mark.parametrize("trick", ["../out", "/abs", "link"])
def test_an_input_that_is_no_plain_tree(tmp_path: Path, trick: str) -> None:
    """Nothing is written beside the folder, and no link is made in it."""
    packed, folder = tmp_path / "packed", tmp_path / "folder"
    with tarfile.open(packed, "w") as archive:
        member = tarfile.TarInfo(str(tmp_path / "out") if trick == "/abs" else trick)
        if trick == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    folder.mkdir()
    with pytest.raises(Unavailable, match="no plain file"):
        unpack(packed, folder)
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "out").exists()


def test_t96_an_input_that_is_a_deep_tree(deep: Deep, tmp_path: Path) -> None:
    """It is refused in a line, and nothing of it is left."""
    root = Root(tmp_path / "root")
    (root.folder / "inputs").mkdir(parents=True)
    item = Input(name="data", digest="0" * 64)
    with tarfile.open(root.input(item.digest), "w") as packed:
        for depth in range(1, 1501):
            member = tarfile.TarInfo("/".join("d" * depth))
            member.type = tarfile.DIRTYPE
            packed.addfile(member)
    with pytest.raises(Refused, match="folders in one another"):
        has_input(InputStore(root.folder / "inputs"), root, item)
    assert [path.name for path in root.folder.iterdir()] == ["inputs"]
