"""The engine that a newer release of Debian has keeps the contract, too.

Engines check and complete what they are asked for in ways of their own, and what is completed is refused where it was
not asked for.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.machine.private_engine import PrivateEngine
from sandbox import Bundle, DockerConfig, InputStore, Job
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject
from tests.newer_engine import unpack_engine

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user starts no engine"),
    pytest.mark.touching("docker"),
]


@pytest.fixture
def newer(tmp_path: Path) -> Iterator[str]:
    """Its address. It has our image, by the bytes that our own engine has."""
    root = unpack_engine(tmp_path)
    engine = PrivateEngine(tmp_path / "engine", dockerd=root / "usr/sbin/dockerd")
    with engine.running() as host:
        with subprocess.Popen(["docker", "save", Job(command=("true",)).image], stdout=subprocess.PIPE) as saving:
            subprocess.run(["docker", "--host", host, "load", "--quiet"], stdin=saving.stdout, check=True)
        yield host
    engine.clean()


async def test_contract(newer: str, tmp_path: Path) -> None:
    for row in CONTRACT:
        subject = DockerSubject(DockerConfig(host=newer))
        if row not in subject.lacks:
            try:
                await CONTRACT[row](subject)
            except Exception as error:
                error.add_note(f"the row is {row}")
                raise
            finally:
                await subject.close()
    await _input_is_mounted(newer, tmp_path)


async def _input_is_mounted(newer: str, folder: Path) -> None:
    (folder / "data").write_text("whole")
    config = DockerConfig(host=newer, inputs_folder=folder / "inputs")
    item = InputStore(config.inputs_folder).add("data", folder / "data")
    backend = await config.connect()
    try:
        job = Job(command=("sh", "-c", "! touch /inputs/data/new && cp /inputs/data/data /work/out"), inputs=(item,))
        async with await backend.open(job) as chamber:
            outcome = await chamber.run(Bundle({}))
    finally:
        await backend.close()
    assert outcome.outputs == {"data": b"whole"}
    assert not _volumes(newer)


def _volumes(host: str) -> list[bytes]:
    asked = ["docker", "--host", host, "volume", "ls", "--quiet"]
    return subprocess.run(asked, capture_output=True, check=True).stdout.split()
