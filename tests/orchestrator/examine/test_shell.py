"""A line in a chamber's shell: what it printed, its exit code, and whether it ended the shell."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from orchestrator.examine.guest import shell_server
from orchestrator.examine.shell import Answer, ShellEnd, read_answer
from orchestrator.settings import Settings
from orchestrator.views.running import shell
from tests.clicking import runner


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Callable[[str], Answer]]:
    """Runs a line as the server in a chamber does."""
    started = shell_server.start()
    yield lambda text: read_answer(shell_server.answer(started, text.encode(), tmp_path / "line"))
    started.kill()
    started.wait()
    for pipe in (started.stdin, started.stdout):
        assert pipe
        pipe.close()


def test_lines(line: Callable[[str], Answer]) -> None:
    """A code comes with every line, folder and variables stay, and `exit` leaves with its own code."""
    assert line("echo one; x=2") == Answer(b"one\n", 0)
    assert line("echo $x; (exit 7)") == Answer(b"2\n", 7)
    assert line("echo bye; exit 3") == Answer(b"bye\n", 3, left=True)


@pytest.mark.parametrize("payload", [b"", b"hello", b"-1\nx", b"9999\nx", b"0 else\nx"])
def test_forged_answers(payload: bytes) -> None:
    """Whatever a chamber says instead is shown as it is, and counts as a failure."""
    assert read_answer(payload) == Answer(payload, 1)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command, with answers given for a chamber's; None is one that died."""

    def run(*words: str, answers: list[Answer | None], typed: str = "") -> Result:
        @asynccontextmanager
        async def place(*_: object) -> Any:
            yield SimpleNamespace(parts=None, tree=None, node=SimpleNamespace(id="1"))

        async def converse(
            _: object, __: object, ___: float, ask: Callable[[], Awaitable[str | None]], say: Callable[[Answer], None]
        ) -> ShellEnd:
            code: int | None = 0
            for answer in answers:
                if await ask() is None:
                    break
                if answer is None:
                    return ShellEnd(None, "out of memory")
                code = answer.code
                say(answer)
            return ShellEnd(code, "killed")

        monkeypatch.setattr(shell, "open_place", place)
        monkeypatch.setattr(shell, "run_shell", converse)
        return runner().invoke(shell.command, list(words), input=typed, obj=Settings(), standalone_mode=False)

    return run


@pytest.mark.parametrize(
    ("answers", "code", "output", "error"),
    [
        ([Answer(b"no\n", 7)], 7, "no\n", ""),
        ([Answer(b"", 3, left=True)], 3, "", ""),
        ([None], 1, "", "left: out of memory\n"),
    ],
)
def test_one_line(ran: Callable[..., Result], answers: list[Answer | None], code: int, output: str, error: str) -> None:
    """With -c the exit code is the line's, and the output is its own alone; what never answered is not well."""
    result = ran("best", "-c", "test", answers=answers)
    assert (result.return_value, result.stdout, result.stderr) == (code, output, error)


def test_a_conversation(ran: Callable[..., Result]) -> None:
    """A line that failed says so; `exit` ends the command with its code."""
    result = ran("best", answers=[Answer(b"", 2), Answer(b"", 5, left=True)], typed="false\nexit 5\n")
    assert (result.return_value, result.stdout) == (5, "(exit code 2)\n")
