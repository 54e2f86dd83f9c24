"""What tests of images without a daemon share."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import RuncConfig
from sandbox.backends.runc.images import Images

BUSYBOX = "blastdoor-busybox:latest"


async def comes_true(look: Callable[[], bool]) -> bool:
    for _ in range(1200):
        if look():
            return True
        await asyncio.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an image that an engine had."""
    images = Images(tmp_path_factory.mktemp("unpacked") / "images", RuncConfig().image_host)
    asyncio.run(images.image(BUSYBOX))
    images.close()
    return images.folder


@pytest.fixture
def config(tmp_path: Path, unpacked: Path) -> Iterator[RuncConfig]:
    """Images of a test's own, of an engine that answers no more; in the end nothing is left of who baked or built."""
    folder = tmp_path / "images"
    subprocess.run(["cp", "-a", "--", str(unpacked), str(folder)], check=True)
    config = RuncConfig(folder=tmp_path / "runc", images_folder=folder, image_host=f"unix://{tmp_path}/none.sock")
    yield config
    assert not list((config.folder / "chambers").glob("*"))
    assert not list((folder / "roots").glob(".blastdoor-scratch-*"))
