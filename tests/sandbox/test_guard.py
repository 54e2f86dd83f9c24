"""The warden's process: small while it waits, gone when all has ended, at work when its owner is gone."""

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from sandbox.backends import watch
from sandbox.backends.guard import Guard
from sandbox.errors import Unavailable

SWEEPS = """
from pathlib import Path

def sweep(owner, folder):
    Path(folder, owner).write_text("swept")
"""


@pytest.fixture
def sweeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that a warden can find, and nobody else."""
    (tmp_path / "a_sweeper.py").write_text(SWEEPS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "a_sweeper"


async def posted(module: str, *words: str) -> Guard:
    guard = Guard("me", module, *words)
    await guard.post()
    await guard.ready()
    return guard


@pytest.mark.parametrize("all_ended", [True, False])
async def test_sweeps_unless_all_has_ended(sweeper: str, tmp_path: Path, all_ended: bool) -> None:
    guard = await posted(sweeper, str(tmp_path))
    await guard.dismiss(all_ended=all_ended)
    assert (tmp_path / "me").exists() is not all_ended
    assert guard.pid is not None
    assert not psutil.pid_exists(guard.pid)


@pytest.mark.parametrize("said", [b"", b"done", b"done\ndone\nno", b"x" * 70_000])
async def test_a_pipe_that_ends_without_the_last_word(sweeper: str, tmp_path: Path, said: bytes) -> None:
    """As when the owner is killed, in the middle of a word too."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", watch.__file__, sweeper, "me", str(tmp_path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    assert await process.stdout.readline() == b"ready\n"
    await process.communicate(said)
    assert (tmp_path / "me").read_text() == "swept"


@pytest.mark.long
async def test_every_provider_has_one_that_can_be_loaded(tmp_path: Path) -> None:
    """From any folder, with nothing of providers loaded before it is needed."""
    providers = ("docker", "runc", "modal", "skypilot")
    for provider in providers:
        guard = await posted(f"sandbox.backends.{provider}.warden", "unix:///nowhere")
        assert not [it.path for it in psutil.Process(guard.pid).memory_maps() if "site-packages" in it.path]
        await guard.dismiss(all_ended=True)
    script = "".join(f"import sandbox.backends.{it}.warden as it; assert callable(it.sweep)\n" for it in providers)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=tmp_path)
    assert await process.wait() == 0


async def test_nothing_is_started_unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warden that cannot start is an error before the first chamber, with what to do."""
    monkeypatch.setattr(sys, "executable", "/bin/true")  # a machine on which nothing starts
    guard = Guard("me", "any")
    await guard.post()
    with pytest.raises(Unavailable, match="check free memory"):
        await guard.ready()
