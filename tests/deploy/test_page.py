"""The page on deploying: it names every template, and only commands, flags and images that there are."""

import re

import click

from build_images import ORCHESTRATOR
from orchestrator.machine.images import NAMES
from tests.clicking import every_command
from tests.deploy.templates import DEPLOY, files

PAGE = DEPLOY / "README.md"
_CALL = re.compile(r"\bblastdoor ([a-z]+)((?: --[a-z-]+(?: [a-z0-9.]+)?)*)")
# Of an image, beside what belongs to it.
BESIDE = {"requirements.txt", "packages.txt", "README.md"}


def test_every_template_is_named() -> None:
    """Whoever reads the page knows of each file."""
    text = PAGE.read_text()
    assert [path.name for path in files() if path.name not in BESIDE and path.name not in text] == []


def test_commands_and_flags() -> None:
    """What is shown can be typed, on the page and in the templates' comments."""
    calls = [
        found for path in files() for found in _CALL.findall(path.read_text()) if found[0] in every_command().commands
    ]
    assert {name for name, _ in calls} >= {"check", "doctor", "reap", "gate", "run", "resume", "status"}
    for name, flags in calls:
        known = {
            option for it in every_command().commands[name].params if isinstance(it, click.Option) for option in it.opts
        }
        assert set(re.findall(r"--[a-z-]+", flags)) <= known, (name, flags)


def test_flags_named_in_settings() -> None:
    """A setting that has a flag says which, and a campaign takes it."""
    run = {
        option for it in every_command().commands["run"].params if isinstance(it, click.Option) for option in it.opts
    }
    for name in ("modal", "skypilot"):
        named = re.findall(r"--[a-z-]+", (DEPLOY / name / "settings.toml").read_text())
        assert named
        assert set(named) <= run


def test_images_to_build() -> None:
    """Names behind `blastdoor images build` and scripts/build-images are some that they know."""
    page = PAGE.read_text()
    for line in re.findall(r"blastdoor images build((?: [a-z]+)+)", page):
        assert set(line.split()) <= set(NAMES)
    for line in re.findall(r"scripts/build-images((?: [a-z]+)+)", page):
        assert set(line.split()) <= {*NAMES, ORCHESTRATOR}
