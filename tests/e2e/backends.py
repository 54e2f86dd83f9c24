"""One campaign, run unchanged at several sites: the same candidates, with canaries in what may leave and what not."""

import asyncio
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.api import How, Settings, read_campaign, search
from orchestrator.domain.records import SiteRecord
from orchestrator.domain.state import State
from tests.started import completed

ROOT = Path(__file__).parents[2]
# In the candidate's own file, which must arrive; in the gold and in the judge's code, which must not.
SENT, GOLD, JUDGE = "canary-of-the-candidate-51c7", "canary-of-the-gold-9e02", "canary-of-the-judge-d4a8"


@dataclass(frozen=True)
class Campaign:
    """What a campaign came to: each node by its id, with its parent, ending, whether it was kept, and its scores.

    `usd` is what its attempts cost, `standing_usd` what stood for all of them, both in micro-dollars.
    """

    nodes: dict[str, tuple[Any, ...]]
    cohorts: set[str]
    site: SiteRecord
    trials: int
    usd: int
    standing_usd: int


def circle_packing(folder: Path) -> Path:
    """The example with its canaries."""
    shutil.copytree(ROOT / "examples" / "circle_packing", folder, ignore=shutil.ignore_patterns(".blastdoor"))
    solve, judge = folder / "workspace" / "solve.py", folder / "judge" / "judge.py"
    solve.write_text(solve.read_text() + f"\n# {SENT}\n")
    judge.write_text(judge.read_text() + f"\n# {JUDGE}\n")
    (folder / "judge" / "gold" / "canary.txt").write_text(f"{GOLD}\n")
    return folder


def blastdoor(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return completed(*words, timeout=600)


def run(folder: Path, *, attempts: int = 3, how: How = How.START, **flags: Any) -> Campaign:
    """The same seed and one at a time: the same candidates everywhere."""
    settings = Settings()
    asyncio.run(search(folder, how=how, settings=settings, attempts=attempts, seed=7, width=1, **flags))
    with read_campaign(folder, settings) as reading:
        return _seen(reading.state)


def _seen(state: State) -> Campaign:
    assert state.run.site
    nodes = {
        name: (node.parent, node.ending, node.kept, node.verdict.metrics if node.verdict else None)
        for name, node in state.nodes.items()
    }
    spent = sum(node.spent.microdollars for node in state.nodes.values())
    stood = state.campaign.standing.microdollars
    return Campaign(nodes, set(state.run.champions), state.run.site, len(state.trials), spent, stood)
