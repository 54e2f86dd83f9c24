"""Images from a Dockerfile without a daemon: no engine answers, and what its lines say is in the chamber."""

import hashlib
from pathlib import Path

import pytest

from sandbox import BakedImage, Refused, RuncConfig
from sandbox.backends.runc import build as runc_build
from sandbox.backends.runc.build import build
from sandbox.backends.runc.images import Images
from sandbox.definitions import Dockerfile, read_dockerfile
from tests.sandbox.runc.conftest import BUSYBOX
from tests.sandbox.runc.test_runc_bake import chamber
from tests.sandbox.runc.test_runc_images import PROGRAMS
from tests.sandbox.runc.test_runc_layers import layer

pytestmark = pytest.mark.docker

NAME = "own:latest"
LABELS = {"blastdoor.definition": "one"}


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """What a Dockerfile copies."""
    folder = tmp_path / "context"
    (folder / "parts/deep").mkdir(parents=True)
    (folder / "parts/deep/a").write_text("a")
    (folder / "parts/b").write_text("b")
    (folder / "tool").write_text("#!/bin/sh\necho made\n")
    (folder / "tool").chmod(0o700)
    return folder


async def built(config: RuncConfig, context: Path, *lines: str, base: str = BUSYBOX) -> str:
    backend = await config.connect()
    try:
        return await build(backend, Dockerfile(base, lines), context, NAME, LABELS)
    finally:
        await backend.close()


async def said(config: RuncConfig, script: str) -> list[str]:
    return (await chamber(config, BakedImage(NAME, ""), script)).log_tail.decode().split()


async def test_lines_in_their_order(config: RuncConfig, context: Path) -> None:
    """Files and folders go where the lines say, programs stay programs, setuid bits stay: that is the lines' affair."""
    lines = (
        "COPY parts /opt/parts",
        "COPY tool /usr/local/bin/tool",
        "COPY parts/b /opt/files/",
        "RUN cat /opt/parts/deep/a /opt/parts/b > /both && rm -r /opt/parts",
        "RUN cp $(which sh) /raised && chmod 4755 /raised && id -u > /who && ls /sys/class/net > /net",
    )
    id_ = await built(config, context, *lines)
    look = "cat /both; echo; /usr/local/bin/tool; cat /opt/files/b; echo; stat -c %a /raised; cat /who /net; ls /opt"
    assert await said(config, look) == ["ab", "made", "b", "4755", "0", "lo", "files"]
    assert await said(config, "ls / | grep -c blastdoor-bake") == ["0"]
    images = Images(config.images_folder, config.image_host)
    assert images.loaded()[NAME] == id_
    assert images.settings(id_)["Labels"] == LABELS
    assert images.size(id_) > (context / "tool").stat().st_size


async def test_an_image_is_a_base(config: RuncConfig, context: Path) -> None:
    first = await built(config, context, "RUN echo one > /one")
    assert await built(config, context, "RUN echo one > /one") == first
    assert await built(config, context, "RUN echo two > /two", base=NAME) != first
    assert await said(config, "cat /one /two") == ["one", "two"]


async def test_what_cannot_be_built(config: RuncConfig, context: Path) -> None:
    """One line says which and why, and the name stands for what it stood for before."""
    before = await built(config, context, "RUN echo one > /one")
    for line, reason in (
        ("RUN echo no such thing; exit 7", r"failed: no such thing \(exit 7\)"),
        ("COPY nowhere /opt/", r"nowhere.* \(exit 1\)"),
        ("COPY --from=other /a /b", "only a Docker engine follows"),
        ("FROM other", "only a Docker engine follows"),
        ("ENV LD_PRELOAD=/a", "only a Docker engine follows"),
        ("RUN rm /bin/tar", "has no tar on its PATH"),
    ):
        with pytest.raises(Refused, match=reason):
            await built(config, context, "RUN echo two > /two", line)
        assert Images(config.images_folder, config.image_host).loaded()[NAME] == before


async def test_bounded_in_time(config: RuncConfig, context: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runc_build, "LIMIT_S", 1.0)
    with pytest.raises(Refused, match="took longer than 1 s"):
        await built(config, context, "RUN sleep 600")


def test_a_root_that_is_no_image_yet(config: RuncConfig, tmp_path: Path) -> None:
    """It is known by its files and settings: the same ones are the same image."""
    archive = tmp_path / "root.tar"
    archive.write_bytes(layer(*PROGRAMS).getvalue())
    images = Images(config.images_folder, config.image_host)
    settings = {"Env": ["PATH=/bin"], "Labels": LABELS}
    first = images.adopt(archive, NAME, settings)
    assert images.adopt(archive, "other:latest", settings) == first
    assert images.adopt(archive, NAME, {"Env": ["PATH=/bin"]}) != first
    assert images.settings(first) == settings
    assert len(first) == len(hashlib.sha256().hexdigest())


def test_one_stage_is_read(tmp_path: Path) -> None:
    """A Dockerfile of ours is read without its comments; one of several stages is not ours to follow."""
    file = tmp_path / "Dockerfile"
    file.write_text("ARG BASE=a:1\nFROM ${BASE}\n# why\nRUN one \\\n    && two\n\nCOPY a /b\n")
    assert read_dockerfile(file) == Dockerfile("a:1", ("RUN one && two", "COPY a /b"))
    file.write_text("ARG BASE=a:1\nARG OTHER=b\nFROM ${OTHER} AS other\nFROM ${BASE}\n")
    assert read_dockerfile(file) is None
