"""Fetching packages on our side of the door: wheels only, and never a line of a package's code."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from held_port import HeldPort
from sandbox import Refused, Unavailable
from sandbox.wheels import Interpreter, fetch_wheels
from tests.sandbox.make_wheel import make_source, make_wheel

PYTHON = Interpreter("3.11.2", "x86_64", 36)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is this machine's only source of packages, by pip's own configuration."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "fetched"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_tags_best_first() -> None:
    """All that the image's C library can load, newest first; old names where they belong."""
    tags = PYTHON.platforms()
    assert tags[0] == "manylinux_2_36_x86_64"
    assert tags[-1] == "linux_x86_64"
    assert tags.index("manylinux_2_17_x86_64") + 1 == tags.index("manylinux2014_x86_64")
    assert "manylinux1_x86_64" in tags
    younger = Interpreter("3.11.2", "aarch64", 20).platforms()  # manylinux began later there
    assert younger[-2:] == ["manylinux2014_aarch64", "linux_aarch64"]
    assert len(younger) == 6


async def test_dependencies_come_along(shelf: Path, folder: Path) -> None:
    """A package and what it depends on, fetched with the configuration of this machine."""
    make_wheel(shelf, "first", "second")
    make_wheel(shelf, "second")
    await fetch_wheels(("first",), PYTHON, folder)
    assert names(folder) == ["first-1.0-py3-none-any.whl", "second-1.0-py3-none-any.whl"]


async def test_the_image_decides_not_this_machine(shelf: Path, folder: Path) -> None:
    """Wheels are chosen for the image's Python and architecture."""
    for tag in ("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_aarch64", "cp39-cp39-linux_x86_64"):
        make_wheel(shelf, "native", tag=tag)
    await fetch_wheels(("native",), PYTHON, folder)
    assert names(folder) == ["native-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"]


async def test_unknown_package(shelf: Path, folder: Path) -> None:
    """pip's own last line, with what was looked for."""
    with pytest.raises(Refused, match=r"No matching distribution found for nowhere.*Python 3.11.2 on x86_64") as caught:
        await fetch_wheels(("nowhere",), PYTHON, folder)
    assert "\n" not in str(caught.value)


async def test_sources_are_refused_and_no_wheel_smuggles_them_in(shelf: Path, folder: Path, tmp_path: Path) -> None:
    """A package without a wheel is refused with the reason, and nothing of it was run. A dependency by address is not
    built here either, though pip would: the control shows that it does.
    """
    make_source(shelf, "sources", tmp_path / "proof")
    with pytest.raises(Refused, match="sources are not used: building them would run their code"):
        await fetch_wheels(("sources",), PYTHON, folder)
    source = make_source(tmp_path, "smuggled", tmp_path / "proof")
    make_wheel(shelf, "innocent", f"smuggled @ {source.as_uri()}")
    with pytest.raises(Refused, match="only wheels are fetched"):
        await fetch_wheels(("innocent",), PYTHON, folder)
    assert not (tmp_path / "proof").exists()

    control = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", str(folder), "innocent"]
    subprocess.run(control, capture_output=True, check=False)  # noqa: ASYNC221 nothing else is to run meanwhile
    assert (tmp_path / "proof").exists()


async def test_an_index_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network failure is not called an unknown package: trying again may help."""
    monkeypatch.setenv("PIP_RETRIES", "1")
    with HeldPort() as port:  # nobody listens there
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port.number}/simple")
        with pytest.raises(Unavailable, match="index could not be reached"):
            await fetch_wheels(("anything-zzz",), PYTHON, folder)


async def test_without_pip(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has no pip is told how to get it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(Refused, match="no pip to fetch packages with"):
        await fetch_wheels(("anything",), PYTHON, folder)


async def test_given_up(shelf: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gives up leaves no pip running."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(fetch_wheels(("anything-zzz",), PYTHON, folder), 2)
    assert str(folder) not in running_commands()


def running_commands() -> str:
    return "\n".join(" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
