"""The line to the place where machines are rented goes away in the middle of a campaign (T86).

SkyPilot's server is on this machine and answers all the while: only what goes over the line does not.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.loop import campaign as campaign_loop
from orchestrator.wiring.site import Site
from sandbox.backends.skypilot import rent
from sandbox.backends.skypilot.end import PAUSE_S
from sandbox.box.errand import Doing, read_bundle, read_errand
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Scripted, make_site, scripted, write_task
from tests.sandbox.skypilot.connecting import connected, settings
from tests.sandbox.skypilot.grounds import ENDED, PaperMachine, report_bytes
from tests.sandbox.skypilot.yard import Yard, YardProvisioner
from tests.virtual_time import VirtualTime

POINTS = [{"value": number} for number in range(1, 5)]
USD_PER_HOUR = 3.6
STARTS = (e.AttemptOpened, e.Proposed, e.ModelCallIntended)


class Worker(PaperMachine):
    """What a candidate leaves there is its parameters, as the scripted judge reads them."""

    def __init__(self) -> None:
        super().__init__()
        self._params = b""

    async def send(self, source: Path, target: str) -> None:
        if "/trials/" in target and read_errand(source).doing is Doing.RUN:
            self._params = read_bundle(source).files.get("params.json", b"")

    async def submit(self, command: str) -> None:
        await super().submit(command)
        self._words = report_bytes(replace(ENDED, outputs={"answer.json": self._params}))


class Outages(YardProvisioner):
    """One after the other, each at a step: before what it does, or when the answer to it is under way."""

    def __init__(self, yard: Yard, fault: str, seconds: float, steps: Sequence[str]) -> None:
        super().__init__(yard)
        self._fault = fault
        self._seconds = seconds
        self.left = list(steps)
        self._looks = ""
        self.armed = False

    async def call(self, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        self._looks = "collect" if "exec tar" in command and "-m sandbox.box" not in command else "call"
        return await super().call(name, command, cap, timeout)

    def fate(self, method: str) -> None:
        step = self._looks if method == "call" else method
        if self.armed and self.left and self.yard.line.is_whole and step == self.left[0].partition(" ")[0]:
            loop, line = asyncio.get_running_loop(), self.yard.line
            begin = getattr(line, self._fault)
            (loop.call_soon(begin) if " " in self.left.pop(0) else begin())
            loop.call_later(self._seconds, line.heal)


async def rented_site(script: Script, folder: Path, provisioner: YardProvisioner, warm: int) -> Site:
    config = settings(folder, warm=warm)
    backend = await connected(provisioner, config, pause_s=PAUSE_S)
    home = make_site(script)

    def paid_by(purse: object) -> None:
        backend.purse = purse  # type: ignore[assignment]  # the campaign's own

    return replace(
        home,
        name="skypilot/slurm/yard",
        backend=backend,
        judging=home,
        usd_per_second=lambda _: USD_PER_HOUR / 3600,
        terms=config.terms,
        ceiling=lambda _: 2,
        paid_by=paid_by,
        stand_down=backend.stand_down,
    )


def keep_time(session: Scripted) -> None:
    """By the loop's own clock, which skips all waits."""
    start, began = datetime.now(UTC), time.monotonic()
    session.bench.book.listeners.remove(session.clock.skip_wait)
    session.bench.book._clock = lambda: datetime.fromtimestamp(start.timestamp() + time.monotonic() - began, UTC)
    session.bench.breaker.clock = time.monotonic


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    clock = VirtualTime(monkeypatch)
    monkeypatch.setattr(rent, "billed_clock", time.monotonic)
    monkeypatch.setattr(campaign_loop, "POLL_S", 5.0)
    return clock


async def campaign(folder: Path, warm: int, provisioner: Outages, width: int = 1) -> Scripted:
    """It ends with every attempt charged once and scored as if nothing had happened; no machine is left."""
    yard, script = provisioner.yard, Script()
    provisioner._fate = provisioner.fate
    site = await rented_site(script, folder / "rented", provisioner, warm)
    task = write_task(folder / "task")
    async with scripted(task, script, *POINTS, site=site, width=width, attempts=len(POINTS), usd=1000.0) as session:
        keep_time(session)

        def look(event: e.Event, _: str) -> None:
            provisioner.armed |= isinstance(event, e.AttemptEnded)
            if session.bench.state.campaign.away and not yard.line.is_whole:
                assert not isinstance(event, STARTS)

        session.bench.book.listeners.append(look)
        await session.run(36_000)
    assert not provisioner.left, "all of them came"
    assert session.charged == len(POINTS)
    assert not session.of(e.AttemptQuarantined)
    nodes = session.bench.state.nodes.values()
    assert [node.ending for node in nodes] == [Ending.SCORED] * (1 + len(POINTS))
    scores = [node.verdict.metrics["score"] for node in nodes if node.verdict]
    assert scores == [0, *(point["value"] for point in POINTS)]
    assert not yard.clusters
    assert not yard.requests
    return session


def booked(session: Scripted) -> float:
    return session.bench.book.accounts.used(Account.USD) / 1e6


def yard() -> Yard:
    return Yard(lambda _: Worker(), usd_per_hour=USD_PER_HOUR, quoted=USD_PER_HOUR)


@pytest.mark.parametrize("fault", ["cut", "stall"])
@pytest.mark.parametrize(
    ("warm", "steps"),
    [
        (0, ("send", "submit", "submit reply", "collect", "down", "launch")),
        (1, ("send", "submit", "submit reply", "collect", "down")),
    ],
)
def test_T86_a_place_that_is_silent_for_two_minutes(
    tmp_path: Path, clock: VirtualTime, fault: str, warm: int, steps: tuple[str, ...]
) -> None:
    """Whatever is under way when it begins: nobody is charged or set aside, and it costs little more than the time."""
    place = yard()
    session = clock.run(campaign(tmp_path, warm, Outages(place, fault, 120.0, steps)))
    bill = sum(place.bill.values())
    assert 0.999 * bill <= booked(session) <= bill + USD_PER_HOUR / 3600 * 120


@pytest.mark.parametrize(("warm", "fault"), [(0, "cut"), (1, "stall")])
def test_T86_a_place_that_is_away_for_longer_than_anybody_waits(
    tmp_path: Path, clock: VirtualTime, warm: int, fault: str
) -> None:
    """The breaker opens, nothing is started or rented until the place itself answers, and then it goes on by itself."""
    place = yard()
    session = clock.run(campaign(tmp_path, warm, Outages(place, fault, 1800.0, ["submit"]), width=2))
    opened = session.of(e.BreakerOpened)
    assert len(session.of(e.AttemptRequeued)) <= 4
    assert len(opened) > 10, "it was probed over and over"
    assert {it.providers for it in opened} == {("skypilot/slurm/yard",)}
    assert len(session.of(e.BreakerTried)) == len(session.of(e.BreakerClosed)) == 1


@pytest.mark.parametrize("warm", [0, 1])
def test_T86_a_line_on_which_everything_takes_long(tmp_path: Path, clock: VirtualTime, warm: int) -> None:
    """Slow is not silent: nobody gives up on anything."""
    place = yard()
    session = clock.run(campaign(tmp_path, warm, Outages(place, "drag", 600.0, ["submit"])))
    assert not session.of(e.AttemptRequeued)
    assert not session.of(e.BreakerOpened)
