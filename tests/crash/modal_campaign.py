"""A campaign on Modal in a process of its own, to be killed: a baseline and a grid of two points."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from orchestrator.api import How, Settings, search
from tests.crash.nursery import is_begun

ATTEMPTS = 2


def work(folder: Path, standing: int) -> None:
    how = How.RESUME if is_begun(folder) else How.START
    flags: dict[str, Any] = {"proposer": "grid", "width": 1, "rate": 1e6, "backend": "modal", "usd": 5.0}
    flags |= {"standing": standing} if standing else {}
    asyncio.run(search(folder, how=how, settings=Settings(), **({} if how is How.RESUME else flags)))


def main() -> None:
    """Words: the folder, and how many stand ready. Begins the campaign, or goes on with it."""
    work(Path(sys.argv[1]), int(sys.argv[2]))
