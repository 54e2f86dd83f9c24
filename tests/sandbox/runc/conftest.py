"""What tests of images without a daemon share."""

import asyncio
from collections.abc import AsyncIterator, Callable
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


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[RuncConfig]:
    """Images that an engine had, which answers no more; in the end nothing is left of who baked or built."""
    folder = tmp_path / "images"
    config = RuncConfig(folder=tmp_path / "runc", images_folder=folder, image_host=f"unix://{tmp_path}/none.sock")
    images = Images(folder, RuncConfig().image_host)
    await images.image(BUSYBOX)
    images.close()
    yield config
    assert not list((config.folder / "chambers").glob("*"))
    assert not list((folder / "roots").glob(".blastdoor-scratch-*"))
