"""A campaign to be killed that asks a model, on the fake backend: what a provider counted must be in the books."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from orchestrator.domain.proposal import Proposal
from orchestrator.loop import campaign
from orchestrator.proposers import Brief
from orchestrator.settings import Settings
from orchestrator.wiring.beginning import How
from tests.crash.fate import Fate
from tests.crash.nursery import is_begun
from tests.orchestrator.loop.scripted import proposal, scripted, write_task

ATTEMPTS = 2
KEY = "sk-ant-api03-of-the-crash-test"
_MODEL = '[model]\nmodels = ["claude-sonnet-5-5"]\nusd = "$0.05"\nmax_output = 1000\n'


def make(folder: Path) -> Path:
    return write_task(folder, _MODEL)


def live(folder: str, url: str, at: int | None = None, count: str = "") -> None:
    """Work on the campaign until it is finished, or until fate strikes; `count` names a file for the points met."""
    campaign.POLL_S = 0.01
    fate = Fate(at)
    fate.rule()
    asyncio.run(_work(Path(folder), url))
    fate.end()
    if count:
        Path(count).write_text(json.dumps(fate.points))


async def _work(folder: Path, url: str) -> None:
    how = How.RESUME if is_begun(folder) else How.START
    flags: dict[str, Any] = {} if how is How.RESUME else {"proposer": "llm", "attempts": ATTEMPTS}
    settings = Settings(api_url=url, api_key=SecretStr(KEY))
    async with scripted(folder, None, *[_ask] * ATTEMPTS, how=how, settings=settings, **flags) as session:
        await session.run()


async def _ask(brief: Brief) -> Sequence[Proposal]:
    assert brief.line is not None
    answer = await brief.line.ask(
        system=["A point."], messages=[{"role": "user", "content": str(brief.number)}], max_tokens=200
    )
    return [proposal(json.loads(answer.text))]
