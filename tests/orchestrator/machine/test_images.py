"""Which images are built again, and when."""

from pathlib import Path

import pytest

import build_images
from orchestrator.machine.image_files import check_integrity
from orchestrator.machine.images import plan
from orchestrator.machine.programs import Unprepared


def test_base_travels_down() -> None:
    """Another base changes what stands on it, and nothing else; the same definition gives the same digests, so that a
    second run has nothing to do, under another tag too.
    """
    bases = ("a", "a", "b")
    first, same, other = ({it.name: it.digest for it in plan(base, ["attack", "busybox"])} for base in bases)
    assert first == same
    assert {name for name in first if first[name] != other[name]} == {"blastdoor-trial", "blastdoor-attack"}
    usual, tagged = plan(None, ["judge"]), plan(None, ["judge"], "mine")
    assert [(it.tag, it.digest) for it in tagged] == [(f"{it.name}:mine", it.digest) for it in usual]


@pytest.mark.parametrize(
    ("name", "built"),
    [
        ("busybox", ["busybox"]),
        ("attack", ["base", "trial", "attack"]),
        ("agent", ["base", "trial", "agent"]),
        ("toolkit", ["base", "trial", "cuda", "toolkit"]),
    ],
)
def test_what_an_image_stands_on_comes_before_it(name: str, built: list[str]) -> None:
    """A name brings what it stands on, and nothing else."""
    assert [image.name for image in plan(None, [name])] == [f"blastdoor-{it}" for it in built]


def test_the_orchestrators_own_is_of_a_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    """The script knows one more; a name that is no image is refused with those that are."""
    found = [image.name for image in build_images.images(None, ["orchestrator"])]
    assert found == ["blastdoor-orchestrator-base", "blastdoor-orchestrator"]
    with pytest.raises(SystemExit):
        build_images.main(["agents"])
    assert "there is no image agents; there is trial, attack, busybox, judge" in capsys.readouterr().err


def test_what_is_not_pinned_is_refused(tmp_path: Path) -> None:
    """A package of another content than the pinned one does not get into an image."""
    archive = tmp_path / "package.tgz"
    archive.write_bytes(b"another")
    with pytest.raises(Unprepared, match="is not what was pinned"):
        check_integrity(archive, "sha512-AAAA")
