"""Children to be killed: each lives through a function of ours in a process of its own, and leaves a folder behind."""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from orchestrator.ledger import Missing
from tests.orchestrator.loop.books import ledger_of
from tests.started import WARM, Started


def child(target: str, warm: tuple[str, ...] = WARM, /, **arguments: Any) -> int:
    """How it ended: 0, or the negative number of a signal. `target` is MODULE:FUNCTION."""
    words = (target, json.dumps(arguments))
    return Started(*words, program=f"{__name__}:live", warm=warm, stdout=1, stderr=2).wait()


def is_begun(folder: Path) -> bool:
    """Whether its campaign has anything on record."""
    try:
        with ledger_of(folder) as ledger:
            return ledger.head().seq > 0
    except Missing:
        return False


def live() -> None:
    module, _, function = sys.argv[1].partition(":")
    getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    os._exit(0)  # what a Python does at its end is no part of these lives
