"""Our images at Modal: the same Dockerfiles, through Modal's own SDK and a server of ours that builds what it asks."""

import platform
import re
from pathlib import Path

import modal
import pytest

from sandbox.backends.modal.bake import bake
from sandbox.backends.modal.engine import ModalEngine, image_id, registry_image
from sandbox.baking import ImageSpec
from sandbox.config import ModalConfig
from sandbox.definitions import Definition, layered, lineage
from sandbox.wheels import Interpreter
from tests.modal_emulator import ModalEmulator

HERE = Interpreter("3.11", platform.machine(), 36)


@pytest.mark.parametrize("name", ["trial", "judge", "cuda"])
async def test_defined_without_a_connection(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modal's SDK takes the definition as it is: the lines of the Dockerfile, and a folder to copy from."""

    async def nothing(requirements: Path, python: Interpreter, folder: Path) -> None:
        (folder / "pip-0-py3-none-any.whl").write_bytes(b"")

    monkeypatch.setattr("sandbox.definitions.fetch_pinned", nothing)
    image = await layered(registry_image(ModalConfig().base), lineage(f"blastdoor-{name}"), tmp_path)
    assert isinstance(image, modal.Image)


@pytest.mark.modal
async def test_baked_from_the_dockerfile(modal_emulator: ModalEmulator, tmp_path: Path) -> None:
    """A task's base that is ours is built from its Dockerfile, not replaced by what it stands on."""
    config = ModalConfig(owners_folder=tmp_path / "owners", inputs_folder=tmp_path / "inputs")
    said: list[str] = []
    baked = await bake(config, ImageSpec(base="blastdoor-trial:latest"), said.append)
    assert re.fullmatch(r"im-[A-Za-z0-9]+", baked.name)
    assert any("images/trial" in line for line in said)
    assert await bake(config, ImageSpec(base="blastdoor-trial:latest"), said.append) == baked
    assert (await bake(config, ImageSpec(base=config.base), said.append)).name != baked.name


@pytest.mark.modal
async def test_files_travel(modal_emulator: ModalEmulator, tmp_path: Path) -> None:
    """Pinned wheels go along with the lines. Here without numpy: the emulator takes no file as large as that."""
    judge = lineage("blastdoor-judge")[-1]
    (tmp_path / "definition").mkdir()
    pinned = (judge.folder / "requirements.txt").read_text()
    (tmp_path / "definition" / "requirements.txt").write_text(pinned[pinned.index("pip==") :])
    lines = (*judge.lines[:-1], "RUN python3 -c 'import pip; assert pip.__version__ == \"26.3\"'")
    small = Definition("small", judge.base, lines, tmp_path / "definition")
    config = ModalConfig(owners_folder=tmp_path / "owners", inputs_folder=tmp_path / "inputs")
    engine = await ModalEngine.connect(config.app, config.environment)
    try:
        image = await layered(registry_image(config.base), (small,), tmp_path, HERE)
        # The last line looks for what was installed: a build that ends well has it.
        assert image_id(await engine.build(image, 300.0)).startswith("im-")
    finally:
        await engine.close()
