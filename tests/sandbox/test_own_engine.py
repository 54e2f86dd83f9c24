"""The engine that `blastdoor up` started is found by later commands, and only while it takes calls."""

import socket
from pathlib import Path

import pytest

from sandbox import DockerConfig
from sandbox.config.own_engine import OwnEngine, forget, own_engine, remember

DEFAULT = "unix:///var/run/docker.sock"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "blastdoor"


def test_found_while_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOCKER_HOST wins over it, and a socket that a killed daemon left is no engine."""
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    remember(OwnEngine("unix://sock", "folder"))
    assert DockerConfig().host == DEFAULT
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        server.listen()
        assert DockerConfig().host == "unix://sock"
        monkeypatch.setenv("DOCKER_HOST", "unix:///of/docker-host")
        assert DockerConfig().host == "unix:///of/docker-host"
        monkeypatch.delenv("DOCKER_HOST")
    assert DockerConfig().host == DEFAULT
    forget()
    forget()
    assert own_engine() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"host": "x"}', "\0", '{"host": 1, "folder": 2, "more": 3}'])
def test_a_file_that_is_not_ours(state: Path, text: str) -> None:
    """It is as if there were none."""
    state.mkdir()
    (state / "engine.json").write_text(text)
    assert (own_engine(), DockerConfig().host) == (None, DEFAULT)
