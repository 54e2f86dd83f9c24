"""A campaign on disk, and a way to run commands on it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from orchestrator.domain.ending import Ending
from orchestrator.ledger import CampaignLock
from orchestrator.views.running import guards
from tests.clicking import commands_in, runner
from tests.orchestrator.views.campaign.builder import Story

HOSTILE = "[red]evil[/red] \x1b[2J\x1b]0;x\x07 \u202e |`'\" <b>\nsecond line"


class Stage:
    """A task folder with a workspace; tell the story, then run commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True)
        (self.workspace / "solve.py").write_text("print(1)\n")
        (self.workspace / "params.json").write_text("{}\n")
        self.story = Story(folder)
        self._written = False

    @property
    def campaign(self) -> Path:
        return self.folder / ".blastdoor"

    def lock(self) -> CampaignLock:
        """Somebody works on the campaign as long as it is held."""
        return CampaignLock(self.campaign / "lock")

    def write(self) -> None:
        if not self._written:
            self._written = True
            self.story.write()

    def run(self, *words: str, code: int = 0, stdin: str | None = None) -> str:
        """What the command printed; its exit code must be as given."""
        self.write()
        result = _invoke([*words, str(self.folder)], stdin)
        assert result.exit_code == code, (result.exit_code, result.output, result.exception)
        return result.stdout if code == 0 else result.output

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code))

    def refused(self, *words: str, stdin: str | None = None) -> str:
        """The one line of a command that refuses, with the exit code of bad input."""
        return self.run(*words, code=2, stdin=stdin).strip().splitlines()[-1]


def _invoke(words: Sequence[str], stdin: str | None) -> Result:
    group = click.Group(
        "blastdoor", commands={command.name or "": command for command in (*commands_in("campaign"), guards.command)}
    )
    # Our own main takes the number that a command gives back for its exit code; click's does not.
    group.result_callback()(lambda code: click.get_current_context().exit(code or 0))
    return runner().invoke(group, words, input=stdin)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A baseline, one kept change, one discarded with hostile words, one failure, one at work."""
    made = Stage(tmp_path / "task")
    story = made.story.open(beside="grid", usd=5_000_000)
    story.add_guard("1", "tests")
    story.baseline(1.0)
    story.attempt("1", 2.0, kept=True, description="more rows", log=b"step 1\nstep 2\nstep 3\n")
    story.attempt("1", 0.5, description=HOSTILE, log=b"\x1b[31mred\x1b[0m\n\xff\xfe\n")
    story.attempt("1", None, ending=Ending.FAILED, description="breaks")
    story.attempt("1.1", None, description="at work")
    return made
