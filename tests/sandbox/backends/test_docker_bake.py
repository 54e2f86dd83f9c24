"""Baking on a real engine: what is asked for is in the chamber, what was needed to get it there is not."""

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import docker
import pytest

from sandbox import BakedImage, Bundle, DockerConfig, ImageSpec, Job, Outcome, Refused, Unavailable, baking
from sandbox.backends.docker import bake as docker_bake
from sandbox.backends.docker.bake import bake
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.workbench import workbench
from sandbox.baking import baked_name
from tests.sandbox.make_wheel import make_wheel

pytestmark = [pytest.mark.docker, pytest.mark.touching("baking")]

BASE = "blastdoor-trial:latest"
HOST = DockerConfig().host


def fresh(*, base: str = BASE, run: tuple[str, ...] = (), **packages: tuple[str, ...]) -> ImageSpec:
    """A spec that nobody has baked before."""
    return ImageSpec(base=base, run=(*run, f": {uuid.uuid4().hex}"), **packages)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of this test alone: others bake meanwhile."""
    name = f"blastdoor-baked-{uuid.uuid4().hex[:12]}"
    monkeypatch.setattr(baking, "REPOSITORY", name)
    return name


@pytest.fixture
async def engine(repository: str) -> AsyncIterator[Engine]:
    """The engine, which holds no container of a baker and no new image in the end."""
    engine = await asyncio.to_thread(Engine, HOST)
    yield engine
    for item in docker.APIClient(HOST).images(repository):
        await engine.remove_image(str(item["RepoTags"][0]))
    engine.close()


async def containers(_: Engine) -> list[str]:
    theirs = {"name": baking.REPOSITORY}
    return [str(it["Names"]) for it in docker.APIClient(HOST).containers(all=True, filters=theirs)]


async def none_left(engine: Engine) -> bool:
    for _ in range(600):
        if not await containers(engine):
            return True
        await asyncio.sleep(0.1)
    return False


async def baked(spec: ImageSpec) -> tuple[BakedImage, list[str]]:
    lines: list[str] = []
    return await DockerConfig().bake(spec, lines.append), lines


async def chamber(image: BakedImage, script: str, **files: str) -> Outcome:
    backend = await DockerConfig().connect()
    try:
        job = Job(command=("sh", "-c", script), image=image.name)
        async with await backend.open(job) as opened:
            return await opened.run(Bundle.of(**files))
    finally:
        await backend.close()


async def test_nothing_to_add(engine: Engine) -> None:
    """An empty spec is the base itself."""
    image, lines = await baked(ImageSpec(base=BASE))
    assert image == BakedImage(BASE, (await engine.image(BASE))["Id"])
    assert lines == []


async def test_wheel_from_the_index(engine: Engine) -> None:
    """A real package is there in a chamber, and pip, its settings and the fetched files are not."""
    image, lines = await baked(fresh(pip=("six==1.17.0",)))
    look = "python3 -c 'import six; print(six.__version__)'; python3 -c 'import pip'; ls -d /blastdoor-bake; env"
    log = (await chamber(image, look)).log_tail.decode()
    assert "1.17.0\n" in log
    assert "No module named 'pip'" in log
    assert "cannot access '/blastdoor-bake'" in log
    assert "PIP_" not in log
    assert any(line.startswith("fetching wheels for Python 3.") for line in lines)
    assert await none_left(engine)


async def test_debian_packages(engine: Engine) -> None:
    """A compiler from Debian compiles in a chamber."""
    image, _ = await baked(fresh(apt=("gcc", "libc6-dev")))
    program = '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); return 0; }\n'
    outcome = await chamber(image, "gcc main.c -o main && ./main", **{"main.c": program})
    assert outcome.log_tail == b"42\n"
    assert outcome.exit_code == 0
    left = await chamber(image, "ls /var/lib/apt/lists /var/cache/apt/archives /var/log")
    assert b".deb" not in left.log_tail
    assert b"Packages" not in left.log_tail
    assert await none_left(engine)


async def test_lines_run_as_root_without_network(engine: Engine) -> None:
    """Each line is a shell's, in order, as root, after packages, for which nothing is fetched if the base has them;
    there is no way out; setuid bits do not stay.
    """
    lines = (
        "id -u > /etc/greeting",
        "ls /sys/class/net >> /etc/greeting; echo routes: $(($(wc -l < /proc/net/route) - 1)) >> /etc/greeting",
        "cp /bin/ls /usr/local/bin/raised; chmod 4755 /usr/local/bin/raised",
    )
    image, _ = await baked(fresh(apt=("bash",), run=lines))
    outcome = await chamber(image, "bash -c 'cat /etc/greeting; stat -c %a /usr/local/bin/raised'")
    assert outcome.log_tail.decode().split() == ["0", "lo", "routes:", "0", "755"]


async def test_t96_the_control_leaves_nothing_behind(engine: Engine) -> None:
    """Of one who leaves `find` where it is, a pipe and a device go, and the image is kept."""
    image, _ = await baked(fresh(run=("mkfifo /etc/pipe; mknod /etc/null c 1 3; ls /etc/pipe /etc/null > /made; :",)))
    outcome = await chamber(image, "cat /made; ls /etc/pipe /etc/null")
    assert outcome.log_tail.decode().count("No such file") == 2, outcome.log_tail
    assert outcome.log_tail.startswith(b"/etc/pipe\n")


async def test_an_image_on_an_image(engine: Engine) -> None:
    """The same spec is the same image, without a word about any step; a baked image is a base like any other."""
    spec = fresh(run=("echo one > /etc/one",))
    first, _ = await baked(spec)
    assert await baked(spec) == (first, [])
    second, _ = await baked(fresh(base=first.name, run=("echo two > /etc/two",)))
    assert (await chamber(second, "cat /etc/one /etc/two")).log_tail == b"one\ntwo\n"


async def test_bases_that_are_refused(engine: Engine, repository: str, tmp_path: Path) -> None:
    """One is held to the same rule as every image; one that is not there is refused with the way to get it. Without an
    engine there is none.
    """
    await engine.derive_image(BASE, f"{repository}:preloading", ["ENV LD_PRELOAD=/tmp/x.so"], {})
    for base, why in ((f"{repository}:preloading", "LD_PRELOAD"), ("blastdoor-no-such-image", "build it")):
        with pytest.raises(Refused, match=why):
            await baked(fresh(base=base))
    with pytest.raises(Unavailable, match="no Docker engine answers"):
        await DockerConfig(host=f"unix://{tmp_path}/none").bake(fresh(), print)


async def test_cancelled(engine: Engine) -> None:
    """Whoever gives up leaves no container behind, at any moment of it."""
    for wait in (0.0, 0.05, 0.2, 1.0):
        at_work = asyncio.create_task(baked(fresh(run=("sleep 600",))))
        await asyncio.sleep(wait)
        at_work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await at_work
    assert await none_left(engine)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mv $(which find) /etc/moved; cp /bin/ls /raised; chmod 4755 /raised", "/raised with a set-user-ID bit"),
        ("mv $(which find) /etc/moved; mkfifo /etc/pipe", "a pipe or a device at /etc/pipe"),
        ("i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i + 1)); done", "in one another"),
    ],
    ids=["bit", "pipe", "deep"],
)
async def test_t96_what_a_step_left_is_refused(engine: Engine, line: str, said: str) -> None:
    """What a line did to the image's own programs does not keep us from looking at its files."""
    with pytest.raises(Refused, match=said):
        await baked(fresh(run=(line,)))
    assert await none_left(engine)


async def test_two_at_once_bake_once(engine: Engine) -> None:
    """Whoever comes second waits for the first one's image."""
    spec = fresh(run=("sleep 1; cat /proc/sys/kernel/random/uuid > /etc/once",))
    (first, told), (second, also_told) = await asyncio.gather(baked(spec), baked(spec))
    assert first == second
    assert sum("another process" in line for line in told + also_told) == 1
    assert sum("keeping" in line for line in told + also_told) == 1
    assert await none_left(engine)


async def test_the_smallest_image(engine: Engine) -> None:
    """BusyBox is enough for run lines; for packages, one line says what is missing."""
    image, _ = await baked(fresh(base="blastdoor-busybox:latest", run=("echo hello > /greeting",)))
    assert (await chamber(image, "cat /greeting")).log_tail == b"hello\n"
    with pytest.raises(Refused, match="no python3"):
        await baked(fresh(base="blastdoor-busybox:latest", pip=("six",)))
    with pytest.raises(Refused, match="no apt-get"):
        await baked(fresh(base="blastdoor-busybox:latest", apt=("gcc",)))


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"pip": ("blastdoor-no-such-package",)}, "pip: ERROR: No matching distribution found for blastdoor-no-such"),
        ({"apt": ("blastdoor-no-such-package",)}, "apt-get: E: Unable to locate package blastdoor-no-such-package"),
        ({"run": ("echo out of flour >&2; exit 4",)}, "out of flour (exit 4)"),
        ({"run": ("rm $(command -v tar)",)}, "tar is gone, and no chamber starts without it"),
    ],
)
async def test_what_can_not_be_baked(engine: Engine, parts: Any, line: str) -> None:
    """A spec that cannot be met is refused in one line, with the tool's own words, and leaves nothing."""
    with pytest.raises(Refused) as caught:
        await baked(fresh(**parts))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert await none_left(engine)


async def test_dependency_that_only_the_image_needs(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip chooses by the Python it runs on; what the image's own misses is fetched in a second round."""
    ours = ".".join(map(str, sys.version_info[:3]))
    make_wheel(tmp_path, "outer_zzz", f"inner_zzz; python_full_version != '{ours}'")
    make_wheel(tmp_path, "inner_zzz")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    image, lines = await baked(fresh(pip=("outer_zzz",)))
    if any(f"for Python {ours} " in line for line in lines):
        pytest.skip("the image's Python is exactly ours: there is no difference to bridge")
    assert lines.count("installing wheels, without network") == 2
    script = "python3 -c 'import inner_zzz, outer_zzz; print(inner_zzz.NAME)'; head -1 $(command -v outer_zzz-tool)"
    log = (await chamber(image, script)).log_tail.decode()
    assert log.startswith("inner_zzz\n")
    assert "python3" in log, "a package's commands belong to the image's Python"


async def test_bounded_in_time(engine: Engine) -> None:
    """A line that never ends is given up, and its container with it."""
    with pytest.raises(Refused, match="longer than 3 s"):
        await bake(HOST, fresh(run=("sleep 600",)), lambda line: None, limit_s=3)
    assert await none_left(engine)


async def test_name_left_behind(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baker that died before its container started does not stop the next one for ever."""
    spec = fresh()
    base = (await engine.image(BASE))["Id"]
    assert await engine.claim(baked_name(spec.digest(base)).replace(":", "-"), workbench(base, "none"))
    monkeypatch.setattr(docker_bake, "STARTING_S", 0.5)
    _, lines = await baked(spec)
    assert "another process" in lines[0]


@pytest.mark.crash
async def test_baker_that_was_killed(engine: Engine, repository: str) -> None:
    """After a SIGKILL of the baker its container goes by itself, and the next one bakes."""
    spec = fresh(run=("sleep 5",))
    code = f"""import asyncio
from sandbox import baking
baking.REPOSITORY = {repository!r}
from sandbox import DockerConfig, ImageSpec
spec = ImageSpec.model_validate_json({spec.model_dump_json()!r})
asyncio.run(DockerConfig().bake(spec, lambda line: print(line, flush=True)))"""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    assert process.stdout
    assert b"sleep 5" in await asyncio.wait_for(process.stdout.readline(), 120)
    process.kill()
    await process.wait()
    assert await none_left(engine)
    _, lines = await baked(spec)
    assert "keeping" in lines[-1]
