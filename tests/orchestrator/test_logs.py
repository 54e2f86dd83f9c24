"""Logs: JSON when piped, for people in a terminal, on stderr in both cases."""

import io
import json
import logging
import sys

import pytest
import structlog

from orchestrator import logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def logged(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, level: int = logging.WARNING) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure(level)
    logger = structlog.get_logger()
    with structlog.contextvars.bound_contextvars(trial="t1"):
        logger.debug("too.quiet")
        logger.warning("something.happened", reason="line one\nline \x1b[31mtwo")
    return stream.getvalue()


def test_json_when_piped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each event is one line of JSON with its level, its time and the ids that were bound. What is below the level is
    not written, and stdout belongs to the commands.
    """
    (line,) = logged(monkeypatch, io.StringIO()).splitlines()
    record = json.loads(line)
    assert (record["event"], record["level"], record["trial"]) == ("something.happened", "warning", "t1")
    assert record["timestamp"].endswith("Z")
    assert "\x1b" not in line
    assert "too.quiet" in logged(monkeypatch, io.StringIO(), logging.DEBUG)
    assert capsys.readouterr().out == ""


def test_for_people_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal, an event is text."""
    text = logged(monkeypatch, Terminal())
    assert "something.happened" in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text.splitlines()[0])
