"""Baking without a daemon: no engine answers, and what is asked for is in the chamber."""

import asyncio
import contextlib
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from sandbox import BakedImage, Bundle, ImageSpec, Job, Outcome, Refused, RuncConfig, Unavailable
from sandbox.backends.guard import Guard
from sandbox.backends.runc import bake as runc_bake
from sandbox.backends.runc import workbench
from sandbox.backends.runc.images import Images
from sandbox.backends.runc.workbench import RuncWorkbench
from tests.conftest import Deep
from tests.sandbox.make_wheel import make_wheel
from tests.sandbox.runc.conftest import BUSYBOX, comes_true

pytestmark = [pytest.mark.docker, pytest.mark.touching("baking")]

TRIAL = "blastdoor-trial:latest"


@pytest.fixture
async def with_trial(config: RuncConfig) -> RuncConfig:
    """The trial image is there, too."""
    images = Images(config.images_folder, RuncConfig().image_host)
    await images.image(TRIAL)
    images.close()
    return config


def fresh(*, base: str = BUSYBOX, run: tuple[str, ...] = (), **packages: tuple[str, ...]) -> ImageSpec:
    return ImageSpec(base=base, run=(*run, f": {uuid.uuid4().hex}"), **packages)


async def baked(config: RuncConfig, spec: ImageSpec) -> tuple[BakedImage, list[str]]:
    lines: list[str] = []
    return await config.bake(spec, lines.append), lines


async def chamber(config: RuncConfig, image: BakedImage, script: str, **files: str) -> Outcome:
    backend = await config.connect()
    try:
        async with await backend.open(Job(command=("sh", "-c", script), image=image.name)) as opened:
            return await opened.run(Bundle.of(**files))
    finally:
        await backend.close()


async def test_lines_run_as_root_without_network(config: RuncConfig) -> None:
    """Each line is a shell's, in order, as root; there is no way out; setuid bits do not stay; the base stays."""
    lines = (
        "id -u > /greeting",
        "ls /sys/class/net >> /greeting; echo routes: $(($(wc -l < /proc/net/route) - 1)) >> /greeting",
        "cp $(which sh) /raised; chmod 4755 /raised",
    )
    image, told = await baked(config, fresh(run=lines))
    assert told[-1].startswith("keeping the image as ")
    outcome = await chamber(config, image, "cat /greeting; stat -c %a /raised; ls -d /blastdoor-bake")
    said = outcome.log_tail.decode()
    assert said.split()[:5] == ["0", "lo", "routes:", "0", "755"]
    assert "/blastdoor-bake: No such file" in said
    base = await chamber(config, BakedImage(BUSYBOX, ""), "ls /raised")
    assert b"/raised: No such" in base.log_tail


async def test_what_a_line_may_not(config: RuncConfig) -> None:
    """It makes no device, mounts nothing, and leaves the host's kernel settings alone."""
    tries = ("mknod /disk b 8 0", "mount -t tmpfs none /mnt", "echo 1 > /proc/sys/kernel/panic", "hostname other")
    image, _ = await baked(config, fresh(run=tuple(f"({it}) 2>> /denied && echo {it} >> /done; :" for it in tries)))
    outcome = await chamber(config, image, "cat /done; grep -c . /denied")
    assert outcome.log_tail.decode().split()[-1] == str(len(tries))
    assert b"'/done': No such file" in outcome.log_tail


async def test_second_time_nothing_is_done(config: RuncConfig) -> None:
    """The same spec is the same image; a baked one is a base like any other."""
    spec = fresh(run=("echo one > /one",))
    first, _ = await baked(config, spec)
    assert await baked(config, spec) == (first, [])
    second, _ = await baked(config, fresh(base=first.name, run=("echo two > /two",)))
    assert (await chamber(config, second, "cat /one /two")).log_tail == b"one\ntwo\n"


async def test_pruned(config: RuncConfig) -> None:
    """What was baked goes when nobody uses it, and is baked again; its base stays. Packages may be others by then, so
    it is not taken for the same image.
    """
    spec = fresh(run=("echo one > /one",))
    image, _ = await baked(config, spec)
    images = Images(config.images_folder, config.image_host)
    await images.image(image.name)
    assert Images(config.images_folder, config.image_host).prune() == []
    images.close()
    assert images.prune() == [image.digest.removeprefix("sha256:")]
    assert images.loaded() == {}
    again, lines = await baked(config, spec)
    assert (again.name, lines[-1]) == (image.name, f"keeping the image as {image.name}")
    assert again.digest != image.digest
    assert (await chamber(config, again, "cat /one")).log_tail == b"one\n"


async def test_two_at_once_bake_once(config: RuncConfig) -> None:
    spec = fresh(run=("sleep 1; cat /proc/sys/kernel/random/uuid > /once",))
    (first, told), (second, also_told) = await asyncio.gather(baked(config, spec), baked(config, spec))
    assert first == second
    assert sum("another process" in line for line in told + also_told) == 1
    assert sum("keeping" in line for line in told + also_told) == 1


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"run": ("echo out of flour >&2; exit 4",)}, "out of flour (exit 4)"),
        ({"run": ("kill -9 $$",)}, "(exit 137)"),
        ({"run": ("rm $(which tar)",)}, "the image has no tar on its PATH"),
        ({"run": ("rm -rf /work; ln -s / /work",)}, "something else than a folder at /work"),
        ({"pip": ("six",)}, "no python3"),
        ({"apt": ("gcc",)}, "no apt-get"),
        ({"base": "blastdoor-no-such-image"}, "is not here, and no Docker engine answers"),
    ],
)
async def test_what_cannot_be_baked(config: RuncConfig, parts: Any, line: str) -> None:
    """A spec that cannot be met is refused in one line, and leaves nothing."""
    with pytest.raises(Refused) as caught:
        await baked(config, fresh(**parts))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_bounded_in_time(config: RuncConfig) -> None:
    backend = await config.connect()
    try:
        with pytest.raises(Refused, match="longer than 2 s"):
            await runc_bake.bake(backend, fresh(run=("sleep 600",)), lambda line: None, limit_s=2)
    finally:
        await backend.close()


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.3, 1.0])
async def test_cancelled(config: RuncConfig, wait: float) -> None:
    """One who gives up leaves nothing that runs, at any moment of it."""
    at_work = asyncio.create_task(baked(config, fresh(run=("sleep 600",))))
    await asyncio.sleep(wait)
    at_work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await at_work


async def test_cancelled_while_the_base_is_copied(config: RuncConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What copies is waited for: nobody writes any more into the folder that is removed."""
    begun, ended = threading.Event(), threading.Event()

    def slowly(source: Path, target: Path) -> Path:
        target.mkdir()
        begun.set()
        for number in range(50):
            (target / str(number)).write_text("")
            time.sleep(0.01)
        ended.set()
        return target

    monkeypatch.setattr(workbench, "copied_tree", slowly)
    at_work = asyncio.create_task(baked(config, fresh()))
    await asyncio.to_thread(begun.wait)
    at_work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await at_work
    assert ended.is_set()


async def test_a_base_that_has_our_folder(config: RuncConfig) -> None:
    """What lies where we put things is refused before anything runs, and is not lost."""
    image, _ = await baked(config, fresh(run=("mkdir /keep",)))
    root = config.images_folder / "roots" / image.digest.removeprefix("sha256:")
    (root / "keep").rename(root / "blastdoor-bake")
    with pytest.raises(Refused, match="has something at /blastdoor-bake"):
        await baked(config, fresh(base=image.name))
    assert (root / "blastdoor-bake").is_dir()


async def test_a_stage_that_leads_elsewhere(
    with_trial: RuncConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a package put in the way of files that we put there later does not lead out of the stage."""
    make_wheel(tmp_path, "outer_zzz")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    aside = tmp_path / "aside"
    aside.mkdir()
    real = RuncWorkbench.put

    async def put(bench: RuncWorkbench, archive: Path) -> None:
        stage = bench.folder / "stage"
        if not (stage / "pip").exists():
            (stage / "pip").symlink_to(aside)
        await real(bench, archive)

    monkeypatch.setattr(RuncWorkbench, "put", put)
    image, _ = await baked(with_trial, fresh(base=TRIAL, pip=("outer_zzz",)))
    outcome = await chamber(
        with_trial, image, "python3 -c 'import outer_zzz; print(outer_zzz.NAME)'; python3 -c 'import pip'"
    )
    assert outcome.log_tail.startswith(b"outer_zzz\n")
    assert b"No module named 'pip'" in outcome.log_tail
    assert not list(aside.iterdir())


async def test_debian_packages(with_trial: RuncConfig) -> None:
    """A program from Debian runs in a chamber; what was fetched is not in the image."""
    image, _ = await baked(with_trial, fresh(base=TRIAL, apt=("jq",)))
    look = "echo '[6,7]' | jq -c 'map(.*7)'; ls -R /var/lib/apt/lists /var/cache/apt/archives /var/log"
    outcome = await chamber(with_trial, image, look)
    assert outcome.log_tail.startswith(b"[42,49]\n")
    assert b".deb" not in outcome.log_tail
    assert b"Packages" not in outcome.log_tail


async def test_nothing_is_started_unguarded(config: RuncConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warden, a command would run on after a baker that is killed."""

    async def none(guard: Guard) -> None:
        raise Unavailable("the warden did not start")

    monkeypatch.setattr(Guard, "ready", none)
    with pytest.raises(Unavailable, match="the warden did not start"):
        await baked(config, fresh())


@pytest.mark.crash
async def test_baker_that_was_killed(config: RuncConfig) -> None:
    """After a SIGKILL of the baker its processes go, and the next one bakes and removes what was begun."""
    spec = fresh(run=("sleep 300",))
    code = f"""import asyncio
from sandbox import ImageSpec, RuncConfig
config = RuncConfig.model_validate_json({config.model_dump_json()!r})
spec = ImageSpec.model_validate_json({spec.model_dump_json()!r})
asyncio.run(config.bake(spec, lambda line: print(line, flush=True)))"""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    assert process.stdout
    assert b"sleep 300" in await asyncio.wait_for(process.stdout.readline(), 120)
    assert await comes_true(lambda: any((config.folder / "chambers").glob("*/*/pid")))
    process.kill()
    await process.wait()
    assert await comes_true(lambda: not any((config.folder / "chambers").glob("*"))), "its warden ends nothing"
    _, lines = await baked(config, fresh())
    assert "keeping" in lines[-1]


DEEP_LINE = "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 5; i=$((i + 1)); done"


@pytest.mark.usefixtures("deep")
async def test_t96_a_line_that_leaves_a_deep_tree(config: RuncConfig) -> None:
    """It is refused and nothing of it stays, so that the next owner starts; a tree that is not too deep is baked."""
    with pytest.raises(Refused, match="in one another"):
        await baked(config, fresh(run=(DEEP_LINE,)))
    assert not list((config.images_folder / "roots").glob(".blastdoor-scratch-*"))
    image, _ = await baked(config, fresh(run=(DEEP_LINE.replace("1500", "200"),)))
    assert (await chamber(config, image, "find / -xdev -name d | wc -l")).log_tail == b"200\n"


@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_t96_a_deep_leftover_stops_no_start(deep: Deep, config: RuncConfig, runtime: str) -> None:
    """Whatever a killed owner had begun to unpack, or a chamber had in its folder, every backend here connects."""
    dead = config.folder / "chambers" / "0123456789ab"
    deep(config.images_folder / "roots" / ".blastdoor-scratch-dead", 1_500)
    deep(dead / "one", 1_500)
    backend = await RuncConfig.model_validate({**dict(config), "runtime": runtime}).connect()
    try:
        assert backend.unreaped == ()
        assert sorted(backend.reaped) == [".blastdoor-scratch-dead", "blastdoor-0123456789ab-one"]
    finally:
        await backend.close()
    assert not dead.exists()


async def test_t96_no_bit_or_pipe_stays_where_find_is_gone(with_trial: RuncConfig) -> None:
    """What a line did to the image's own programs does not keep us from looking at its files."""
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('/etc/socket')"
    lines = (
        "cp $(which sh) /raised; cp $(which sh) /'a b'; chmod 4755 /raised; chmod 2755 /'a b'",
        f'mkfifo /etc/pipe; mknod /etc/white c 0 0; python3 -c "{bind}"; find /etc -type p -o -type s > /odd',
        "mv $(which find) /etc/moved",
    )
    image, _ = await baked(with_trial, fresh(base=TRIAL, run=lines))
    outcome = await chamber(
        with_trial, image, "cat /odd; stat -c %a /raised '/a b'; ls /etc/pipe /etc/socket /etc/white"
    )
    said = outcome.log_tail.decode()
    assert "/etc/pipe\n" in said
    assert "\n755\n755\n" in said
    assert said.count("No such file") == 3, said
