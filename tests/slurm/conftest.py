"""What the tests of rented machines share."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from private_slurm import PrivateSlurm

WARDEN_SECONDS = 60.0  # a chamber whose keeper was killed with its machine is ended by the keeper's own warden


@pytest.fixture
def rented(slurm: PrivateSlurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateSlurm]:
    """This process rents from the cluster; nothing of the test may be left on it."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for name, value in slurm.environment().items():
        monkeypatch.setenv(name, value)
    yield slurm
    assert slurm.jobs() == []
    until = time.monotonic() + WARDEN_SECONDS
    while slurm.containers() and time.monotonic() < until:
        time.sleep(0.5)
    assert slurm.containers() == []


@pytest.fixture
def sky(rented: PrivateSlurm) -> Any:
    """SkyPilot's own package, imported where it finds this cluster."""
    import sky

    return sky
