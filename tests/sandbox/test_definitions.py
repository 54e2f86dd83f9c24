"""Our images as data: the same lines that Docker builds, for those who build images on their own."""

from pathlib import Path

import pytest

from sandbox import definitions
from sandbox.definitions import Definition, layered, lineage
from sandbox.errors import Refused
from sandbox.wheels import Interpreter

IMAGES = Path(__file__).parents[2] / "images"


class Recording:
    """An image that remembers what was put on it."""

    def __init__(self, lines: tuple[str, ...] = (), contexts: tuple[Path, ...] = ()) -> None:
        self.lines, self.contexts = lines, contexts

    def dockerfile_commands(
        self, *dockerfile_commands: str | list[str], context_dir: Path | str | None = None
    ) -> "Recording":
        more = [line for lines in dockerfile_commands for line in ([lines] if isinstance(lines, str) else lines)]
        return Recording((*self.lines, *more), (*self.contexts, Path(str(context_dir))))


def test_lineage() -> None:
    """An image is followed to the first that stands on somebody else's; a stranger's has no lineage here. One that
    wants files from npm, or a second image to copy from, is refused with the way to build it.
    """
    ours = {"trial:latest": ["trial"], "trial": ["trial"], "judge:latest": ["trial", "judge"]}
    others = {"cuda:latest": ["trial", "cuda"], "trial:mine": [], "nothing:latest": []}
    for image, names in {**ours, **others}.items():
        assert [definition.name for definition in lineage(f"blastdoor-{image}")] == names
    assert lineage("python:3.11-slim-bookworm") == ()
    for name in ("agent", "toolkit"):
        with pytest.raises(Refused, match=f"blastdoor images build {name}"):
            lineage(f"blastdoor-{name}:latest")


@pytest.mark.parametrize("name", ["trial", "judge", "cuda"])
def test_every_instruction_is_there_once(name: str) -> None:
    """What a provider gets is the Dockerfile after FROM: each instruction in one line, no comment, nothing lost."""
    text = (IMAGES / name / "Dockerfile").read_text()
    starts = [line.split()[0] for line in text.splitlines() if line[:1].isupper()]
    definition = lineage(f"blastdoor-{name}")[-1]
    assert ["ARG", "FROM", *(line.split()[0] for line in definition.lines)] == starts
    assert " ".join(definition.lines).split() == [
        word for line in text.splitlines()[2:] if not line.startswith("#") for word in line.removesuffix("\\").split()
    ]


async def test_layers_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parent first, each with the files that its lines copy, wheels for the Python that is named."""
    asked: list[tuple[Path, Path, Interpreter]] = []

    async def fetch(requirements: Path, python: Interpreter, folder: Path) -> None:
        asked.append((requirements, folder, python))

    monkeypatch.setattr(definitions, "fetch_pinned", fetch)
    python = Interpreter("3.11", "x86_64", 36)
    image = await layered(Recording(), lineage("blastdoor-cuda"), tmp_path, python)
    trial, cuda = lineage("blastdoor-cuda")
    assert image.lines == (*trial.lines, *cuda.lines)
    assert image.contexts == (tmp_path / "trial", tmp_path / "cuda")
    assert asked == [(tmp_path / "cuda" / "requirements.txt", tmp_path / "cuda" / "wheels", python)]
    for definition, context in zip((trial, cuda), image.contexts, strict=True):
        assert all((context / source).exists() for source in _copied(definition))


def _copied(definition: Definition) -> list[str]:
    return [line.split()[1] for line in definition.lines if line.startswith("COPY ")]
