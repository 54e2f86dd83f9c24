"""Which images are built again, and when; and what sets a machine up runs before anything is installed on it."""

import subprocess
import sys
from pathlib import Path

import pytest

import build_images
from orchestrator.machine.image_files import check_integrity
from orchestrator.machine.images import plan
from orchestrator.machine.programs import Unprepared

REPOSITORY = Path(__file__).parents[3]


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


@pytest.mark.parametrize(("script", "says"), [("engine.py", "with-engine COMMAND"), ("build_images.py", "build only:")])
def test_scripts_need_nothing_but_python(script: str, says: str) -> None:
    """`make` on a bare machine: no package is installed, and the working folder is another."""
    command = [sys.executable, "-I", "-S", str(REPOSITORY / "scripts" / script), "--help"]
    ran = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert says in ran.stdout + ran.stderr


def test_messages_name_what_a_wheel_has() -> None:
    """No text of the product sends its user to a script of a checkout; two files say where they come from."""
    told = {
        str(path.relative_to(REPOSITORY))
        for folder in ("blastdoor", "orchestrator", "sandbox")
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in (".py", ".toml", ".sh", ".md", ".txt") and "scripts/" in path.read_text(encoding="utf-8")
    }
    assert told == {"orchestrator/machine/__init__.py", "sandbox/box/requirements.txt"}
