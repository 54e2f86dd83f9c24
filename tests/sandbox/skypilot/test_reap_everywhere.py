"""`reap` needs no place: SkyPilot lists the clusters of all places together."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.views.cli import cli
from sandbox.backends.skypilot import backend
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.tenancy import Tenancy


def test_no_place_is_demanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the sweep ended is told, and its own place among the living is given up again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    swept: list[Tenancy] = []

    async def reap(provisioner: Provisioner, tenancy: Tenancy) -> tuple[list[str], list[str]]:
        swept.append(tenancy)
        return ["bd-left"], []

    monkeypatch.setattr(backend, "_installed", object)
    monkeypatch.setattr(backend, "reap", reap)
    ran = CliRunner().invoke(cli, ["reap", "--backend", "skypilot"])
    assert (ran.exit_code, ran.output) == (0, "removed bd-left\n1 removed\n")
    assert not swept[0]._path.exists()
