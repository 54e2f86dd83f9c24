"""`reap` needs no place: SkyPilot lists the clusters of all places together."""

from pathlib import Path

import pytest

from orchestrator.views.cli import cli
from sandbox.backends.skypilot import backend
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.tenancy import Tenancy
from tests.clicking import runner


def test_what_is_left_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cluster that could not be ended is named, and the exit code says that the provider failed half-way."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    async def reap(provisioner: Provisioner, tenancy: Tenancy) -> tuple[list[str], list[str]]:
        return [], ["bd-stuck"]

    monkeypatch.setattr(backend, "installed", object)
    monkeypatch.setattr(backend, "reap", reap)
    ran = runner().invoke(cli, ["reap", "--backend", "skypilot"])
    assert (ran.exit_code, ran.stdout) == (3, "0 removed, 1 could not be removed\n")
    assert ran.stderr.startswith("could not remove bd-stuck: ")


def test_no_place_is_demanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the sweep ended is told, and its own place among the living is given up again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    swept: list[Tenancy] = []

    async def reap(provisioner: Provisioner, tenancy: Tenancy) -> tuple[list[str], list[str]]:
        swept.append(tenancy)
        return ["bd-left"], []

    monkeypatch.setattr(backend, "installed", object)
    monkeypatch.setattr(backend, "reap", reap)
    ran = runner().invoke(cli, ["reap", "--backend", "skypilot"])
    assert (ran.exit_code, ran.output) == (0, "removed bd-left\n1 removed\n")
    assert not swept[0]._path.exists()
