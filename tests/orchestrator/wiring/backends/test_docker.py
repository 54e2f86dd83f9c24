"""How many chambers this machine holds at once."""

import os
from pathlib import Path

import pytest

from orchestrator.wiring.backends import docker as engine
from orchestrator.wiring.backends.docker import local_ceiling
from sandbox import Limits

TINY = {"cpus": 0.01, "memory": "16MiB"}


@pytest.mark.parametrize(("gpus", "asked", "most"), [(8, "any:1", 8), (8, "A100:2", 4), (3, "T4:2", 1), (0, "T4:1", 1)])
def test_no_more_than_there_are_gpus(
    gpus: int, asked: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chamber has its GPUs for itself, so their number bounds the width; unseen ones are taken one at a time."""
    for number in range(gpus):
        (tmp_path / "gpus" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(engine, "GPUS", tmp_path / "gpus")
    assert local_ceiling(Limits(**TINY, gpu=asked)) == most
    assert local_ceiling(Limits(**TINY)) > 8


def test_no_more_than_cores_and_memory() -> None:
    """Chambers that take a core each are as many as there are cores, and one always fits."""
    assert local_ceiling(Limits(cpus=1, memory="16MiB")) == os.cpu_count()
    assert local_ceiling(Limits(memory="8TiB")) == 1
