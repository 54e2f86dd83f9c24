"""The line to the model's provider breaks in the middle of a campaign, which waits for it and goes on (T86)."""

from functools import partial
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding
from orchestrator.llm import upstream
from orchestrator.loop import breaker
from tests.fault_proxy import FaultProxy
from tests.messages import MessagesServer
from tests.orchestrator.loop.scripted import ran, scripted, write_task
from tests.orchestrator.loop.test_models import CHEAP, asking, points, settings_for

PROBES = 5  # 5, 10, 20, 40 and 60 seconds apart
AWAY_S = 120.0


@pytest.mark.parametrize("fault", ["cut", "stall"])
async def test_T86_a_model_that_is_away_for_two_minutes(
    tmp_path: Path, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Nobody is charged, quarantined or proposed for meanwhile, and only what was sent is paid."""
    monkeypatch.setattr(upstream, "Patience", partial(upstream.Patience, tries=1, idle_s=1.0))
    monkeypatch.setattr(breaker, "PROBE_S", 0.5)
    points(messages_server, *range(1, 10))  # what a stall held back is asked when it is over, and nobody waits for it
    with FaultProxy(messages_server.url) as line:
        settings = settings_for(messages_server, api_url=line.url)
        acts = [asking] * 20
        folder = write_task(tmp_path, CHEAP)
        async with scripted(folder, None, *acts, settings=settings, proposer="llm", attempts=3) as session:
            ended: list[e.AttemptEnded] = []

            def cut(event: e.AttemptEnded) -> None:
                ended.append(event)
                if len(ended) == 2:  # the baseline's, and the first change's
                    getattr(line, fault)()

            session.when(e.AttemptEnded, cut)
            session.when(e.BreakerOpened, lambda event: line.heal() if event.tries >= PROBES else None)
            await session.run()
            assert line.felt
            calls = session.of(e.ModelCallEnded)
            answered = [call for call in calls if call.ending is CallEnding.COMPLETE]
            assert session.charged == 3
            assert not session.of(e.AttemptQuarantined)
            assert sum(event.wait_s for event in session.of(e.BreakerOpened)) >= AWAY_S
            assert len(session.of(e.BreakerClosed)) == 1
            assert len(answered) == 3
            assert len(calls) - len(answered) <= 2, "one or two failures are enough to stop"
            unsent = [call.spent.microdollars for call in calls if call not in answered]
            assert fault == "stall" or sum(unsent) == 0


async def test_T86_a_slow_line_to_the_model(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Every answer arrives late, and nothing comes of that: no stall, no second call, no breaker."""
    points(messages_server, 3, 5)
    with FaultProxy(messages_server.url) as line:
        line.slow(20_000)
        settings = settings_for(messages_server, api_url=line.url)
        folder = write_task(tmp_path, CHEAP)
        session = await ran(folder, None, asking, asking, settings=settings, proposer="llm", attempts=2)
        assert line.accepted
        assert session.charged == 2
        assert len(session.of(e.ModelCallEnded)) == len(messages_server.requests) == 2
        assert not session.of(e.AttemptRequeued)
        assert not session.of(e.BreakerOpened)
