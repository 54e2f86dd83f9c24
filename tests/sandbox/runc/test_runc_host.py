"""What attack rows see of chambers without a daemon is what is there, not what we wrote down ourselves."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sandbox.attacks.hosts import RuncHost
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.images import Images
from sandbox.config import RuncConfig
from tests.sandbox.runc.test_runc_images import NAME, PROGRAMS, saved
from tests.sandbox.runc.test_runc_layers import entry, layer


def host(folder: Path, images: Images | None = None) -> RuncHost:
    backend = SimpleNamespace(estate=SimpleNamespace(folder=folder), images=images)
    return RuncHost(cast(RuncBackend, backend), RuncConfig(folder=folder))


@contextmanager
def chamber(folder: Path, place: Path, **environment: str) -> Iterator[str]:
    """A process in place of a chamber's first, of which nothing is written down but its number.

    It answers before it is looked at: the kernel tells a starter that a program runs before it knows its environment.
    """
    process = subprocess.Popen(["cat"], cwd=place, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"there?\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"there?\n"
    (folder / "c").mkdir()
    (folder / "c" / "pid").write_text(str(process.pid))
    try:
        yield "blastdoor-o-c"
    finally:
        process.kill()
        process.communicate()


async def test_place_is_the_kernels_word(tmp_path: Path) -> None:
    with chamber(tmp_path, Path("/")) as name:
        assert await host(tmp_path).working_directory(name) == "/"


async def test_place_outside(tmp_path: Path) -> None:
    with chamber(tmp_path, tmp_path) as name:
        assert await host(tmp_path).working_directory(name) == f"{tmp_path} (neither its root nor its /work)"


async def test_record_has_what_the_process_got(tmp_path: Path) -> None:
    """A secret is found in the process, and in any file of the chamber's folder."""
    with chamber(tmp_path, tmp_path, SECRET="canary-1") as name:
        (tmp_path / "c" / "state").mkdir()
        (tmp_path / "c" / "state" / "any").write_text("canary-2")
        record = await host(tmp_path).record(name)
    assert "canary-1" in record
    assert "canary-2" in record


async def test_files_that_two_realms_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is links to the same files has another name, and is no copy."""
    images = Images(tmp_path / "images", "unix:///nowhere")
    images.load(saved(tmp_path / "image", layer(*PROGRAMS, (entry("etc/who"), b"me")).getvalue()), NAME)
    seen = host(tmp_path, images)
    plain, apart = [await seen.files_of(NAME, realm) for realm in ("", "gold")]
    assert len(plain) == len(apart) == 4
    assert not plain & apart

    def linked(source: Path, target: Path) -> Path:
        subprocess.run(["cp", "-al", "--", str(source), str(target)], check=True)
        return target

    monkeypatch.setattr("sandbox.backends.runc.images.copied_tree", linked)
    assert await seen.files_of(NAME, "silver") == plain


async def test_answer_takes_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that can start none does not answer."""
    await host(tmp_path).answers()
    (tmp_path / "true").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "true").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(subprocess.CalledProcessError):
        await host(tmp_path).answers()
