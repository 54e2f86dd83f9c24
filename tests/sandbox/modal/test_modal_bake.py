"""One definition, baked by Modal."""

import pytest

from sandbox.backends.modal.backend import ModalBackend
from sandbox.baking import ImageSpec
from sandbox.bundle import Bundle
from sandbox.config import ModalConfig
from sandbox.errors import Refused
from sandbox.job import Job
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.modal, pytest.mark.docker]

BASE = "blastdoor-trial:latest"


async def test_baked_once_and_used(backend: ModalBackend, config: ModalConfig, modal_emulator: ModalEmulator) -> None:
    """The same definition gives the same image; a job in it finds what was baked."""
    told: list[str] = []
    spec = ImageSpec(base=BASE, run=("echo 42 >/baked",))
    baked = await config.bake(spec, told.append)
    assert await config.bake(spec, told.append) == baked
    assert baked.name == baked.digest
    assert len(told) == 2
    other = await config.bake(ImageSpec(base=BASE, run=("echo 43 >/baked",)), told.append)
    assert other.digest != baked.digest
    async with await backend.open(Job(command=("cat", "/baked"), image=baked.name)) as chamber:
        assert (await chamber.run(Bundle({}))).log_tail == b"42\n"


@pytest.mark.parametrize(
    ("line", "word"),
    [("rm /usr/bin/setpriv", "exit|non-zero"), ("no-such-program", "not found|non-zero|127")],
)
async def test_a_line_that_fails(modal_emulator: ModalEmulator, config: ModalConfig, line: str, word: str) -> None:
    """It is refused with the last word of the build; an image without our tools fails as well."""
    with pytest.raises(Refused, match=word):
        await config.bake(ImageSpec(base=BASE, run=(line,)), lambda _: None)


async def test_an_image_at_modal_is_taken_as_it_is(config: ModalConfig) -> None:
    """Nobody is asked. To add something, name what it was made from."""
    assert (await config.bake(ImageSpec(base="im-abc"), lambda _: None)).name == "im-abc"
    with pytest.raises(Refused, match="name a base from a registry"):
        await config.bake(ImageSpec(base="im-abc", apt=("gcc",)), lambda _: None)
