"""After a SIGKILL of the orchestrator, at whichever step, nothing runs on and nothing is left."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox import DockerConfig
from sandbox.answers import fields, needed
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


async def doomed(step: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(OWNER), step, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    out, _ = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == -9, "the owner did not die where it should"
    return out.decode().strip()


async def state_of(owner: str) -> Mapping[str, Any]:
    engine = await asyncio.to_thread(Engine, DockerConfig().host)
    try:
        [chamber] = await engine.containers(f"{OWNER_LABEL}={owner}")
        return fields(await engine.inspect(needed(chamber, "Id")), "State")
    finally:
        engine.close()


@pytest.mark.parametrize("step", ["create", "inspect", "attach", "start", "run"])
async def test_nothing_is_left(step: str) -> None:
    """The warden ends what a killed owner left, even with a candidate that keeps its own stdin open."""
    owner = await doomed(step)
    for _ in range(1200):
        if not await left_of(owner):
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"left behind: {await left_of(owner)}")


async def test_a_forgotten_chamber_ends_at_its_longest_life() -> None:
    """Owner and warden are killed, and its own stdin is held open in there: the engine ends it at that time."""
    owner = await doomed("forgotten")
    for _ in range(1200):
        state = await state_of(owner)
        if not state["Running"]:
            break
        await asyncio.sleep(0.1)
    else:
        pytest.fail("it runs on")
    assert state["Health"]["Log"], "it ended before its time: nothing was held open"
    backend = await DockerConfig().connect()
    await backend.reap()
    await backend.close()
