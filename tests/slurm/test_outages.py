"""The line to a real cluster is cut, stalls and is slow in the middle of a campaign (T86).

It is the one line that there is: ssh, from SkyPilot's server and from us, for launches, files, orders and outcomes.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orchestrator.domain import events as e
from private_slurm import PrivateSlurm
from tests.e2e.backends import blastdoor, circle_packing, run
from tests.fault_proxy import FaultProxy

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.touching("skypilot", "recovery"),
]

SLOW = 16_000  # bytes a second
STALL_S = 20.0  # ssh gives a connection up after 15 s
CUT_S = 10.0
STARTS = (e.AttemptOpened, e.Proposed, e.ModelCallIntended)


@pytest.fixture
def line(rented: PrivateSlurm) -> Iterator[FaultProxy]:
    with FaultProxy(rented.login) as line, rented.reached_at(urlsplit(line.url).port or 0):
        yield line


class Outages:
    """Hears a campaign's events, and goes between it and SkyPilot: one fault after the other, each at its step."""

    def __init__(self, line: FaultProxy, folder: Path) -> None:
        self._line = line
        self._folder = folder
        self._away = False
        self.left: list[tuple[str, Callable[[], None], float | None]] = [
            ("launch", line.cut, None),
            ("submit", self._slow, None),
            ("send", line.stall, STALL_S),
            ("submit", line.cut, CUT_S),
        ]
        self.status = ""
        self.machines = 0
        self.events: list[e.Event] = []

    def _slow(self) -> None:
        self._line.slow(SLOW)

    def at(self, step: str) -> None:
        """One for each trial that got so far, and the first for a machine that is to come."""
        if self.left and self.left[0][0] == step and not self._away:
            _, begin, seconds = self.left.pop(0)
            self._away = True
            begin()
            if seconds:
                threading.Timer(seconds, self._over).start()

    def __call__(self, event: e.Event, _: str) -> None:
        self.events.append(event)
        if isinstance(event, e.BreakerOpened) and event.tries == 1:  # it was probed once, in vain
            threading.Thread(target=self._look).start()
        if isinstance(event, e.TrialEnded) and event.ending is None:
            self._over()

    def _look(self) -> None:
        self.status = blastdoor("status", self._folder).stdout
        self._over()

    def _over(self) -> None:
        self._away = False
        self._line.heal()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def outages(line: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outages:
    """SkyPilot is imported here, after `rented` said where it is."""
    from sandbox.backends.skypilot.sdk import SkyPilot

    outages = Outages(line, tmp_path / "rented")

    def watched(step: str) -> Callable[..., Any]:
        method = getattr(SkyPilot, step)

        async def act(self: SkyPilot, *words: Any) -> Any:
            await asyncio.to_thread(outages.at, step)
            done = await method(self, *words)
            outages.machines += step == "launch"
            return done

        return act

    for step in ("launch", "send", "submit"):
        monkeypatch.setattr(SkyPilot, step, watched(step))
    return outages


def test_T86_the_line_to_a_cluster(tmp_path: Path, rented: PrivateSlurm, line: FaultProxy, outages: Outages) -> None:
    """Cut before a machine is there: the breaker opens, `status` says who is away, and nothing is started until the
    cluster answers. Slow, silent or cut while a trial runs: it is taken up again, on the same machine. Nobody is
    charged or set aside, and tree and scores are those of a campaign without a fault.
    """
    undisturbed = run(circle_packing(tmp_path / "docker"), attempts=1)
    disturbed = run(
        circle_packing(tmp_path / "rented"),
        attempts=1,
        backend="skypilot",
        infra=rented.infra,
        standing=1,
        observer=outages,
    )
    assert line.felt
    assert not outages.left, "all of them came"
    assert disturbed.nodes == undisturbed.nodes
    assert (disturbed.usd, disturbed.site.backend) == (0, f"skypilot/{rented.infra}/warm")
    assert disturbed.standing_usd > 0
    assert not outages.of(e.AttemptQuarantined)
    assert outages.machines == 1
    assert rented.infra in outages.status
    began, closed = (
        next(at for at, event in enumerate(outages.events) if isinstance(event, kind))
        for kind in (e.BreakerOpened, e.BreakerTried)
    )
    assert not [event for event in outages.events[began:closed] if isinstance(event, STARTS)]
    assert outages.of(e.BreakerClosed)
