"""No process that we start inherits our environment: what it needs is built for it, by name (T62)."""

import os
import sys
from pathlib import Path

import pytest

from sandbox.backends.guard import Guard
from sandbox.environment import DOCKER, MODAL, PIP, SKYPILOT, child_environment, without_inherited
from sandbox.wheels import Interpreter, fetch_wheels

SECRETS = (
    *("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY", "BLASTDOOR_LEDGER", "OPENAI_API_KEY", "GOOGLE_API_KEY"),
    *("AWS_BEARER_TOKEN_BEDROCK", "GITHUB_TOKEN", "CI_JOB_TOKEN", "PGPASSWORD", "A_NAME_THAT_NOBODY_KNOWS"),
)


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> str:
    for name in SECRETS:
        monkeypatch.setenv(name, f"canary-{name}")
    for name in ("MODAL_TOKEN_ID", "SKYPILOT_DEBUG", "DOCKER_HOST", "PIP_INDEX_URL", "AWS_PROFILE"):
        monkeypatch.setenv(name, f"own-{name}")
    return "canary-"


def of_process(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@pytest.mark.parametrize(
    ("provider", "needs", "own"),
    [("docker", DOCKER, "DOCKER_HOST"), ("modal", MODAL, "MODAL_TOKEN_ID"), ("skypilot", SKYPILOT, "AWS_PROFILE")],
)
async def test_t62_wardens(canary: str, provider: str, needs: tuple[str, ...], own: str) -> None:
    """A warden has what reaches its provider, and no secret of ours: it may outlive us by half an hour."""
    guard = Guard("me", f"sandbox.backends.{provider}.warden", "unix:///nowhere", needs=needs)
    await guard.post()
    try:
        await guard.ready()
        assert guard.pid
        seen = of_process(guard.pid)
    finally:
        await guard.dismiss(all_ended=True)
    assert not [name for name, value in seen.items() if canary in value]
    assert seen[own] == f"own-{own}"
    assert seen["PATH"] == os.environ["PATH"]
    theirs = {"docker": "DOCKER_HOST", "modal": "MODAL_TOKEN_ID", "skypilot": "SKYPILOT_DEBUG"}
    assert [theirs[it] in seen for it in theirs] == [it == provider for it in theirs], "its own, and no other's"


async def test_t62_pip(canary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip starts programs for credentials and reads packages: it gets its own variables and those of the network."""
    dump = tmp_path / "python3"
    dump.write_text(f"#!/bin/sh\nenv >{tmp_path}/seen\n")
    dump.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dump))
    await fetch_wheels(("any",), Interpreter("3.11", "x86_64", 36), tmp_path)
    seen = (tmp_path / "seen").read_text()
    assert canary not in seen
    assert "PIP_INDEX_URL=own-PIP_INDEX_URL" in seen
    assert "DOCKER_HOST" not in seen


def test_what_another_package_made(canary: str) -> None:
    """Of an environment that a package made of ours, what it set itself stays, and what it only passed on is sifted.
    What is given by name is there, and wins over what would be inherited.
    """
    made = os.environ | {"ITS_OWN": "1", "GITHUB_TOKEN": "another"}
    found = without_inherited(made, SKYPILOT)
    assert (found["ITS_OWN"], found["GITHUB_TOKEN"], found["AWS_PROFILE"]) == ("1", "another", "own-AWS_PROFILE")
    assert not [name for name, value in found.items() if canary in value]
    assert child_environment(PIP, PIP_INDEX_URL="x")["PIP_INDEX_URL"] == "x"
    assert canary not in repr(child_environment())


def test_an_account_is_known_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's own account on AWS is an address and what to say there: one without the other is none."""
    names = {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}
    names |= {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}
    for name in names:
        monkeypatch.setenv(name, "own")
    assert names <= child_environment(SKYPILOT).keys()
    assert not names & child_environment(PIP).keys()
