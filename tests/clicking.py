"""The command line in this process: its two streams apart, and `output` for both.

Since 8.2 that is click's own way. SkyPilot holds click below it, where one has to choose between the two.
"""

import functools
from typing import Any

import click
from click.testing import CliRunner, Result

from orchestrator.views.cli import cli
from orchestrator.views.commands import COMMANDS, load

_OLD = tuple(map(int, click.__version__.split(".")[:2])) < (8, 2)


class _BothStreams(Result):
    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class _Runner(CliRunner):
    def invoke(self, *args: Any, **settings: Any) -> Result:
        result = super().invoke(*args, **settings)
        result.__class__ = _BothStreams
        return result


def runner(**settings: Any) -> CliRunner:
    return _Runner(mix_stderr=False, **settings) if _OLD else CliRunner(**settings)


@functools.cache
def every_command() -> click.Group:
    """The command line with the code of every command loaded."""
    return click.Group("blastdoor", commands={name: load(name) for name in COMMANDS}, params=cli.params)


def commands_in(package: str) -> list[click.Command]:
    """Those whose code is in that package of the views."""
    return [load(name) for name, place in COMMANDS.items() if place.code.startswith(f"{package}.")]
