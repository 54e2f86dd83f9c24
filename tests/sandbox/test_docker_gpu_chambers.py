"""Chambers with GPUs on a real engine that has none: the request is refused, or left out and all else is real.

The GPUs are pretended by an image whose nvidia-smi tells of them, so what is tried here is our own part: looking,
giving out, labels that other owners see, and the comparison with what the chamber says.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Bundle, DockerConfig, Ending, ImageSpec, Job, Limits, Refused, Unavailable
from sandbox.answers import fields, text
from sandbox.backends.docker import backend as docker_backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.gpus import GPU_LABEL
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.link import Deadlines
from sandbox.posture import container_config

pytestmark = pytest.mark.docker

TOOL = """#!/bin/sh
case "$1" in
--query*) echo "$0" | sed 's/.*/{card}/' ;;
-q) echo "CUDA Version : 12.4" ;;
esac
"""
ONE_L4 = "NVIDIA L4, 23034 MiB, 550.54, GPU-one, Disabled"
TWO_L4 = f"{ONE_L4}\\nNVIDIA L4, 23034 MiB, 550.54, GPU-two, Disabled"


async def image_with(card: str) -> str:
    text = base64.b64encode(TOOL.format(card=card).encode()).decode()
    run = f"echo {text} | base64 -d > /usr/local/bin/nvidia-smi && chmod 755 /usr/local/bin/nvidia-smi"
    return (await DockerConfig().bake(ImageSpec(base="blastdoor-trial:latest", run=(run,)), lambda _: None)).name


def job(image: str, gpu: str | None = "L4:1") -> Job:
    return Job(command=("true",), image=image, limits=Limits(wall=30, memory="64MiB", work_bytes="16MiB", gpu=gpu))


@contextlib.asynccontextmanager
async def backend(tmp_path: Path, provision: float = 60.0) -> AsyncIterator[DockerBackend]:
    config = DockerConfig(inputs_folder=tmp_path / "in", warm=2, deadlines=Deadlines(provision=provision))
    connected = await DockerBackend.connect(config)
    try:
        yield connected
    finally:
        await connected.close()


async def labels_of(backend: DockerBackend) -> list[str]:
    found = await backend.engine.containers(f"{OWNER_LABEL}={backend.owner}")
    return [text(it, "Labels", GPU_LABEL) for it in found]


@pytest.fixture
def no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*given: Any, **named: Any) -> dict[str, Any]:
        config: dict[str, Any] = container_config(*given, **named)
        return {**config, "HostConfig": {**config["HostConfig"], "DeviceRequests": []}}

    monkeypatch.setattr(docker_backend, "container_config", without)


async def test_an_engine_without_gpus(tmp_path: Path) -> None:
    """It is refused in one line that says what to do, and nothing is left behind."""
    async with backend(tmp_path) as engine:
        if "nvidia" in fields(await engine.engine.info(), "Runtimes"):
            pytest.skip("this engine has GPUs: what is tested here is their absence")
        for gpu in ("any:1", "A100:2"):
            with pytest.raises(Refused, match="no GPU runtime; install the NVIDIA container toolkit") as refused:
                await engine.open(job("blastdoor-trial:latest", gpu))
            assert "\n" not in str(refused.value)
        assert await labels_of(engine) == []


@pytest.mark.usefixtures("no_requests")
async def test_a_gpu_each(tmp_path: Path) -> None:
    """A chamber has the GPU that it was given, with all that is told of it; a second one waits for its end."""
    image = await image_with(ONE_L4)
    async with backend(tmp_path) as engine:
        async with await engine.open(job(image)) as chamber:
            assert await labels_of(engine) == ["GPU-one"]
            assert (chamber.facts["gpu"], chamber.facts["gpu_count"], chamber.facts["gpu_id"]) == (
                ("NVIDIA L4", "1", "GPU-one")
            )
            second = asyncio.create_task(engine.open(job(image)))
            await asyncio.sleep(1)
            assert not second.done()
            assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
        async with await second as chamber:
            assert (await chamber.run(Bundle({}))).facts["gpu_id"] == "GPU-one"
        assert await labels_of(engine) == []
        assert engine.warm_ready == 0


@pytest.mark.usefixtures("no_requests")
async def test_between_owners(tmp_path: Path) -> None:
    """Another owner's chamber keeps its GPU: ours is not started, and says whose fault it is not."""
    image = await image_with(ONE_L4)
    async with backend(tmp_path) as theirs, backend(tmp_path, provision=8.0) as ours:
        async with await theirs.open(job(image)):
            with pytest.raises(Unavailable, match="GPU-one is in use by another owner"):
                await ours.open(job(image))
            assert await labels_of(ours) == []
        async with await ours.open(job(image)) as chamber:
            assert chamber.facts["gpu_id"] == "GPU-one"


@pytest.mark.usefixtures("no_requests")
async def test_more_than_was_given(tmp_path: Path) -> None:
    """A chamber that sees a neighbour's GPU beside its own is refused, and so is one that asked for none."""
    image = await image_with(TWO_L4)
    async with backend(tmp_path) as engine:
        with pytest.raises(Refused, match="wanted L4:1, the chamber sees NVIDIA L4, NVIDIA L4"):
            await engine.open(job(image))
        with pytest.raises(Refused, match="none was asked for, the chamber sees NVIDIA L4"):
            await engine.open(job(image, None))
        with pytest.raises(Refused, match="wanted T4:1, there is NVIDIA L4, NVIDIA L4"):
            await engine.open(job(image, "T4:1"))
        async with await engine.open(job(image, "L4:2")) as chamber:
            assert chamber.facts["gpu_count"] == "2"
        assert await labels_of(engine) == []
