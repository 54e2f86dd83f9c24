"""After a SIGKILL of the orchestrator, at whichever step, nothing runs on and nothing is left."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from sandbox import DockerConfig
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL

pytestmark = [pytest.mark.docker, pytest.mark.crash]

OWNER = Path(__file__).with_name("doomed_owner.py")


async def left_of(owner: str) -> list[str]:
    engine = await asyncio.to_thread(Engine, DockerConfig().host)
    try:
        containers = await engine.containers(f"{OWNER_LABEL}={owner}")
        volumes = await engine.volumes(f"{OWNER_LABEL}={owner}")
        return [item["Id"] for item in containers] + [item["Name"] for item in volumes]
    finally:
        engine.close()


@pytest.mark.parametrize("step", ["create", "inspect", "attach", "start", "run"])
async def test_nothing_is_left(step: str) -> None:
    """The warden ends what a killed owner left, even with a candidate that keeps its own stdin open."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(OWNER), step, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    out, _ = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == -9, "the owner did not die where it should"
    owner = out.decode().strip()
    for _ in range(1200):
        if not await left_of(owner):
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"left behind: {await left_of(owner)}")
