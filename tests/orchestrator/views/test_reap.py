"""`reap` says what it ended, what was ended when it connected, and what it could not end."""

import json
from dataclasses import dataclass, field

import pytest
from click.testing import Result

from orchestrator.views.cli import cli
from sandbox import DockerConfig
from tests.clicking import runner


@dataclass
class Engine:
    """A backend that ends some when it connects and some later."""

    reaped: tuple[str, ...] = ()
    later: list[str] = field(default_factory=list)
    unreaped: tuple[str, ...] = ()
    closed: bool = False

    async def reap(self) -> list[str]:
        return self.later

    async def close(self) -> None:
        self.closed = True


def reap(monkeypatch: pytest.MonkeyPatch, engine: Engine, *words: str) -> Result:
    async def connect(_: DockerConfig) -> Engine:
        return engine

    monkeypatch.setattr(DockerConfig, "connect", connect)
    ran = runner().invoke(cli, ["reap", *words])
    assert engine.closed
    return ran


@pytest.mark.parametrize(
    ("engine", "code", "out", "err"),
    [
        (Engine(), 0, "nothing was left behind\n", ""),
        (Engine(reaped=("a",), later=["b"]), 0, "removed a\nremoved b\n2 removed\n", ""),
        (
            Engine(reaped=("a",), unreaped=("b",)),
            3,
            "removed a\n1 removed, 1 could not be removed\n",
            "could not remove b: run `blastdoor reap` again once the provider answers\n",
        ),
    ],
)
def test_what_was_ended_is_told(monkeypatch: pytest.MonkeyPatch, engine: Engine, code: int, out: str, err: str) -> None:
    """On connecting, too. What could not be ended is told by name, on stderr, with what to do; the exit code is that of
    a provider that failed half-way.
    """
    ran = reap(monkeypatch, engine)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (code, out, err)


def test_json_has_what_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = reap(monkeypatch, Engine(reaped=("a",), unreaped=("b",)), "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (3, ["a"])
    assert "could not remove b" in ran.stderr
