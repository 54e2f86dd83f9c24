"""Tests of the orchestrator see no settings but their own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.orchestrator.ledger.memory import keep_ledgers_in_memory


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of the user's file, which is not there yet; no variable of ours is set."""
    for name in [name for name in os.environ if name.startswith("BLASTDOOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "config" / "blastdoor"
    folder.mkdir(parents=True)
    yield folder / "settings.toml"
    structlog.reset_defaults()


@pytest.fixture
def on_disk() -> None:
    """For a test that looks at a ledger's file, copies it, or starts a process that opens it."""


@pytest.fixture
def ledgers_in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders whose tests run campaigns take it for all of them; a test that needs the file asks for `on_disk`."""
    if "on_disk" not in request.fixturenames:
        keep_ledgers_in_memory(monkeypatch)
