"""Settings: a flag wins over the environment, that over the file, that over the default."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.llm.prices import Prices
from orchestrator.settings import Settings, user_file
from orchestrator.wiring.backends.docker import docker_config


def test_file_is_the_users(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file lies where the user keeps such files."""
    assert user_file() == own_settings
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_file() == Path("/home/somebody/.config/blastdoor/settings.toml")


def test_cascade(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Default, file, environment, flag: each wins over the ones before it."""
    assert docker_config(Settings()).runtime == "runc"
    own_settings.write_text('runtime = "of-file"\nwarm = 3\n')
    assert (docker_config(Settings()).runtime, docker_config(Settings()).warm) == ("of-file", 3)
    monkeypatch.setenv("BLASTDOOR_RUNTIME", "of-environment")
    assert (docker_config(Settings()).runtime, docker_config(Settings()).warm) == ("of-environment", 3)
    assert docker_config(Settings(), runtime="of-flag").runtime == "of-flag"
    assert docker_config(Settings(), runtime=None).runtime == "of-environment"


def test_engine_cascade(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the settings wins over DOCKER_HOST, and that over the default socket."""
    assert docker_config(Settings()).host == "unix:///var/run/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", "unix:///of/docker-host")
    assert docker_config(Settings()).host == "unix:///of/docker-host"
    own_settings.write_text('docker_host = "unix:///of/file"\n')
    assert docker_config(Settings()).host == "unix:///of/file"


@pytest.mark.parametrize("line", ["runtme = 1", "warm = -1", "warm = 257", 'warm = "many"', "runtime = 5"])
def test_bad_values_are_errors(own_settings: Path, line: str) -> None:
    """A value that cannot be is an error that names its key; a misspelt key is never silently ignored."""
    own_settings.write_text(line + "\n")
    with pytest.raises(ValidationError, match=line.split()[0]):
        Settings()


def test_ledger_is_a_secret(own_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The URL of a database is kept as it is given, and never shown, also when it is refused."""
    monkeypatch.setenv("BLASTDOOR_LEDGER", "postgresql://me:canary@host/db")
    settings = Settings()
    assert settings.ledger is not None
    assert settings.ledger.get_secret_value() == "postgresql://me:canary@host/db"
    assert "canary" not in f"{settings} {settings!r} {settings.model_dump()} {settings.model_dump_json()}"
    for text in ("mysql://me:canary@host/db", "canary", ""):
        monkeypatch.setenv("BLASTDOOR_LEDGER", text)
        with pytest.raises(ValidationError, match="must be a URL like postgresql://") as caught:
            Settings()
        assert "canary" not in str(caught.value)
    monkeypatch.delenv("BLASTDOOR_LEDGER")
    own_settings.write_text('ledgr = "postgresql://me:canary@host/db"\n')
    with pytest.raises(ValidationError, match="ledgr") as caught:
        Settings()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "names"),
    [("claude-a", ("claude-a",)), ("claude-a, claude-b", ("claude-a", "claude-b")), ('["a", "b"]', ("a", "b"))],
)
def test_models_in_a_variable(monkeypatch: pytest.MonkeyPatch, written: str, names: tuple[str, ...]) -> None:
    """One name, several with commas, or a list: all that a person would try."""
    monkeypatch.setenv("BLASTDOOR_MODELS", written)
    assert Settings().models == names


def test_a_mark_of_the_encoding(own_settings: Path, tmp_path: Path) -> None:
    """Settings and prices that begin with a byte order mark, as some editors write them, are read like any others."""
    own_settings.write_text('\ufeffmodels = "claude-a"\n', encoding="utf-8")
    assert Settings().models == ("claude-a",)
    prices = tmp_path / "prices.toml"
    prices.write_text("\ufeff[models.mine]\ninput = 1\noutput = 2\n", encoding="utf-8")
    assert "mine" in Prices.load(prices).names
