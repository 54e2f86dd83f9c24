"""Tests of the orchestrator see no settings but their own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of the user's file, which is not there yet; no variable of ours is set."""
    for name in [name for name in os.environ if name.startswith("BLASTDOOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "config" / "blastdoor"
    folder.mkdir(parents=True)
    yield folder / "settings.toml"
    structlog.reset_defaults()
