"""What tests of evaluators share: a judge's own process as they find it."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.judge.evaluators import Channel, Functions, Judge
from tests.orchestrator.judge.guests import fresh_guests


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """Runs an evaluator on functions and gives the channel, with what was handed over."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for name in ("BLASTDOOR_STUB_SOCKET", "BLASTDOOR_STUB_SEEN", "EVO_RESULT_PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("BLASTDOOR_SEED", "7")
    for name, place in {"RESULT_PATH": "result.json", "TRACES_DIR": "traces", "METRICS_PATH": "m.csv"}.items():
        monkeypatch.setenv(f"BLASTDOOR_{name}", str(tmp_path / "out" / place))
    opened: list[Channel] = []

    def run(
        evaluator: str,
        functions: Functions | Callable[[], Functions] | None = None,
        wanted: Sequence[str] = ("solve",),
        system: str = "openevolve",
        again: Sequence[str] = (),
        **more: Any,
    ) -> Channel:
        (tmp_path / "evaluator.py").write_text(evaluator)
        (tmp_path / "out" / "result.json").unlink(missing_ok=True)
        channel = Channel({"solve": lambda x: 2 * x} if functions is None else functions, again)
        opened.append(channel)
        monkeypatch.setattr(importlib.import_module("blastdoor_relay"), "Frames", lambda: channel)
        judging = importlib.import_module(f"blastdoor_{system}")
        said = {"metric": "combined_score", **more}
        judging.judge(evaluator=str(tmp_path / "evaluator.py"), functions=wanted, **said)
        return channel

    with fresh_guests():
        yield run
        for channel in opened:
            channel.close()
