"""The line to the model's provider breaks in the middle of a campaign, which waits for it and goes on (T86)."""

from functools import partial
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding
from orchestrator.llm import upstream
from tests.fault_proxy import FaultProxy
from tests.messages import MessagesServer
from tests.orchestrator.loop.scripted import scripted, write_task
from tests.orchestrator.loop.test_models import CHEAP, asking, points, settings_for

PROBES = 3


async def test_T86_a_model_that_is_away(
    tmp_path: Path, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is charged, quarantined or proposed for meanwhile, and only what was answered is paid."""
    monkeypatch.setattr(upstream, "Patience", partial(upstream.Patience, tries=1))
    points(messages_server, 3, 5, 7)
    with FaultProxy(messages_server.url) as line:
        settings = settings_for(messages_server, api_url=line.url)
        acts = [asking] * 20
        folder = write_task(tmp_path, CHEAP)
        async with scripted(folder, None, *acts, settings=settings, proposer="llm", attempts=3) as session:
            ended: list[e.AttemptEnded] = []

            def cut(event: e.AttemptEnded) -> None:
                ended.append(event)
                if len(ended) == 2:  # the baseline's, and the first change's
                    line.cut()

            session.when(e.AttemptEnded, cut)
            session.when(e.BreakerOpened, lambda event: line.heal() if event.tries >= PROBES else None)
            await session.run()
            calls = session.of(e.ModelCallEnded)
            answered = [call for call in calls if call.ending is CallEnding.COMPLETE]
            assert session.charged == 3
            assert not session.of(e.AttemptQuarantined)
            assert len(session.of(e.BreakerOpened)) >= PROBES
            assert len(session.of(e.BreakerClosed)) == 1
            assert len(answered) == len(messages_server.requests) == 3
            assert sum(call.spent.microdollars for call in calls if call not in answered) == 0
            assert len(calls) - len(answered) <= 2, "one or two failures are enough to stop"
