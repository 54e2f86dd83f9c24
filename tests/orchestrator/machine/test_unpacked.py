"""`blastdoor images load` and `prune`: images for chambers without a daemon, from disk."""

from pathlib import Path

import pytest

from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.failing import explained
from tests.clicking import runner
from tests.sandbox.runc.test_runc_images import PROGRAMS, saved
from tests.sandbox.runc.test_runc_layers import entry, layer


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_loaded_twice_and_pruned(tmp_path: Path) -> None:
    """What a name stood for before is removed, and said; then nothing is left to remove."""
    ids = []
    for content in (b"old", b"new"):
        image = saved(tmp_path / content.decode(), layer(*PROGRAMS, (entry("etc/who"), content)).getvalue())
        ids.append(
            runner().invoke(cli, ["images", "load", str(image), "own:latest"]).output.split("sha256:")[1].strip()
        )
    assert runner().invoke(cli, ["images", "prune"]).output == f"removed  {ids[0]}\n"
    assert runner().invoke(cli, ["images", "prune"]).output == "nothing to remove\n"


def test_hostile_numbers_are_one_line(tmp_path: Path) -> None:
    hostile = entry("etc/who")
    hostile.mtime = 2**70
    image = saved(tmp_path / "image", layer(*PROGRAMS, (hostile, b"x")).getvalue())
    ran = runner().invoke(cli, ["images", "load", str(image), "own:latest"])
    assert isinstance(ran.exception, Exception)
    line, code = explained(ran.exception) or ("", None)
    assert "an owner or a time that no file can have" in line
    assert code == Exit.BAD_INPUT
