"""Which images are built again, and when."""

from pathlib import Path

import pytest

from build_images import main, plan
from distribution import Unprepared
from image_files import check_integrity


def test_plan_is_stable() -> None:
    """The same definition gives the same digests, so that a second run has nothing to do."""
    assert [image.digest for image in plan(None)] == [image.digest for image in plan(None)]


def test_base_travels_down() -> None:
    """Another base changes what stands on it, and nothing else."""
    first, second = ({image.name: image.digest for image in plan(base)} for base in ("a", "b"))
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"blastdoor-trial", "blastdoor-attack"}


def test_agents_only_when_asked() -> None:
    """The large image is built for whoever asks for it, on the same images as ever."""
    usual, more = plan(None), plan(None, ["agent"])
    assert [image.digest for image in more[:-1]] == [image.digest for image in usual]
    assert more[-1].name == "blastdoor-agent"


def test_what_an_image_stands_on_comes_before_it() -> None:
    """Whoever asks for NVIDIA's toolkit gets the image that it is laid on, too."""
    names = [image.name for image in plan(None, ["toolkit"])]
    assert names[-2:] == ["blastdoor-cuda", "blastdoor-toolkit"]
    assert "blastdoor-judge" not in names


def test_unknown_image(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is no image is refused with those that are."""
    with pytest.raises(SystemExit):
        main(["agents"])
    assert "there is no image agents to ask for; there is judge, cuda, toolkit, agent" in capsys.readouterr().err


def test_what_is_not_pinned_is_refused(tmp_path: Path) -> None:
    """A package of another content than the pinned one does not get into an image."""
    archive = tmp_path / "package.tgz"
    archive.write_bytes(b"another")
    with pytest.raises(Unprepared, match="is not what was pinned"):
        check_integrity(archive, "sha512-AAAA")
