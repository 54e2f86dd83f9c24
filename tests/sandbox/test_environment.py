"""No process that we start inherits our environment: what it needs is built for it, by name (T62)."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox.backends.guard import Guard
from sandbox.environment import DOCKER, MODAL, PIP, SKYPILOT, child_environment, without_inherited
from sandbox.wheels import Interpreter, fetch_wheels

ROOT = Path(sandbox.__file__).parents[1]
SECRETS = (
    *("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY", "BLASTDOOR_LEDGER", "OPENAI_API_KEY", "GOOGLE_API_KEY"),
    *("AWS_BEARER_TOKEN_BEDROCK", "GITHUB_TOKEN", "CI_JOB_TOKEN", "PGPASSWORD", "A_NAME_THAT_NOBODY_KNOWS"),
)
# What starts a process, in any of the ways that Python has.
STARTERS = {
    *("create_subprocess_exec", "create_subprocess_shell", "Popen", "getoutput", "getstatusoutput"),
    *("check_call", "check_output", "system", "popen", "posix_spawn", "posix_spawnp", "fork", "forkpty"),
    *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe", "spawnv", "spawnve", "spawnl"),
    *("ProcessPoolExecutor", "Process", "subprocess_exec", "subprocess_shell"),
}
MODULES = {"subprocess", "os", "asyncio", "multiprocessing", "pty", "concurrent"}


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


def _starts(tree: ast.AST) -> Iterator[ast.Call]:
    """`subprocess.run(…)`, `create_subprocess_exec(…)` and the like, by whatever name a module was imported."""
    names = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).partition(".")[0] in MODULES
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        words = _dotted(node.func)
        if words[0] in names and (words[-1] in STARTERS or words[-2:] == ["subprocess", "run"] or words == ["run"]):
            yield node


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]


def product() -> list[Path]:
    """Guests are programs inside chambers, whose environment is built; strings are programs for chambers, too."""
    found = [path for folder in ("sandbox", "orchestrator") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if "guest" not in path.parts]


def _is_built(value: ast.expr, text: str) -> bool:
    """By the function itself, or under a name that the module gives what it made."""
    made = "child_environment("
    return ast.unparse(value).startswith(made) or (isinstance(value, ast.Name) and f"\n{value.id} = {made}" in text)


def test_t62_every_start_has_a_built_environment() -> None:
    """A process that product code starts gets `env=child_environment(…)`: a new one without it fails here.

    All but two: the user's own words behind `blastdoor up` are run as the user's shell would run them, and a campaign
    that is resumed at the page asks providers in the user's name.
    """
    texts = {path: path.read_text() for path in product()}
    words = re.compile("|".join((*STARTERS, "subprocess")))  # what has none of them is not worth to be parsed
    starts = [(path, node) for path, text in texts.items() if words.search(text) for node in _starts(ast.parse(text))]
    assert len(starts) >= 6
    inherited = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in starts
        if not any(it.arg == "env" and _is_built(it.value, texts[path]) for it in node.keywords)
    ]
    own = ["orchestrator/machine/engine.py", "orchestrator/views/page/resuming.py"]
    assert [it.partition(":")[0] for it in inherited] == own, (
        f"give it env=child_environment(…) of sandbox/environment.py: {inherited}"
    )


def test_the_scan() -> None:
    """The search above sees each way to start a process, and nothing that only looks like it."""
    for code in (
        "import subprocess as s\ns.Popen(['x'])",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "from subprocess import run\nrun(['x'])",
        "import os\nos.system('x')",
        "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()",
        "import asyncio.subprocess\nasyncio.subprocess.create_subprocess_exec('x')",
    ):
        assert list(_starts(ast.parse(code))), code
    assert not list(_starts(ast.parse("import asyncio\nasyncio.run(x())\nself.run(y)\nimport os\nos.kill(1, 2)")))
