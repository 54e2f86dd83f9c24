"""What the SkyPilot backend refuses, charges, keeps and gives up, on a yard of our own."""

import asyncio
from pathlib import Path

import pytest

from sandbox import Bundle, Channel, Ending, Job, Limits, Lost, NotDelivered, Refused, Unavailable
from sandbox.backends.skypilot import chamber as skypilot_chamber
from sandbox.backends.skypilot.machine import BOX_S
from sandbox.backends.skypilot.names import mark_of, name_for
from sandbox.backends.skypilot.places import PLACES, WARM_CAVEAT, admitted, cloud_of
from sandbox.box.report import Failed, Report
from sandbox.tenancy import Mark
from tests.sandbox.skypilot.connecting import Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine, report_bytes
from tests.sandbox.skypilot.yard import Fault, Yard, YardProvisioner

JOB = Job(command=("true",), limits=Limits(wall=5))


def paper(words: bytes = b"") -> Yard:
    return Yard(lambda _: PaperMachine(words))


@pytest.mark.parametrize("place", PLACES)
def test_places(place: str) -> None:
    """A place is allowed, or refused with its reason, before anything is imported or made."""
    if PLACES[place].refused:
        with pytest.raises(Refused, match="no chamber is rented at"):
            admitted(f"{place}/somewhere")
    else:
        assert admitted(f"{place}/somewhere") is PLACES[place]


def test_unknown_places() -> None:
    """A place that nobody decided upon is refused; SkyPilot's other name for Kubernetes is known."""
    with pytest.raises(Refused, match="not known here"):
        admitted("moon/base")
    assert cloud_of("k8s/context") == "kubernetes"


async def test_refused_before_a_connection(tmp_path: Path) -> None:
    """Connecting to such a place fails at once."""
    with pytest.raises(Refused, match="container on a host shared"):
        await settings(tmp_path, infra="runpod").connect()


def test_names_carry_the_mark() -> None:
    """Owner, place and end can be read back from a name, and a stranger's name has none."""
    mark = Mark("0123456789ab", "cdef0123", 1_900_000_000)
    name = name_for(mark)
    assert mark_of(name) == mark
    assert len(name) == 40
    assert name_for(mark) != name
    assert [mark_of(other) for other in ("bd-x", "sky-1234", name + "x", "x" + name, name.upper())] == [None] * 5


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (Job(command=("true",), image="docker:ubuntu"), "host's network"),
        (Job(command=("true",), limits=Limits(gpu="any:1")), "kind of its GPU"),
        (Job(command=("true",), limits=Limits(wall=86_400)), "lower limits.wall"),
        (Job(command=("true",), mode="relay"), "no relay"),
        (Job(command=("true",), needs={"live_log": True}), "no live log"),
        (Job(command=("true",), needs={"stop": True}), "no stop"),
    ],
)
async def test_jobs_that_are_refused(job: Job, why: str, tmp_path: Path) -> None:
    """Nothing is asked of the provider for a job that cannot run there."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path))
    with pytest.raises(Refused, match=why):
        await backend.open(job)
    assert yard.launched == []
    await backend.close()


async def test_ends_that_are_set(tmp_path: Path) -> None:
    """A machine ends itself after the longest that the job may take and the autodown, and absolutely."""
    yard = paper()
    config = settings(tmp_path, autodown=300)
    backend = await connected(YardProvisioner(yard), config)
    await (await backend.open(JOB)).kill()
    name, wanted = yard.launched[0]
    assert wanted.idle_s == 5 + 5 + BOX_S + 300
    mark = mark_of(name)
    assert mark
    assert abs(mark.ends - wanted.ends) < 5
    await backend.close()


async def test_no_purse_nothing_stands(tmp_path: Path) -> None:
    """Without somebody who pays for it no cluster is kept, and with one that has no money neither."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=2))
    assert WARM_CAVEAT in backend.capabilities.caveats
    assert "reused" in backend.capabilities.boundary
    for purse in (None, Purse(0.01)):
        backend.purse = purse
        async with await backend.open(JOB) as chamber:
            assert (await chamber.run(Bundle({}))).usage.usd > 0
        assert yard.clusters == {}
    await backend.close()


async def test_one_cluster_for_many_trials(tmp_path: Path) -> None:
    """They cost nothing themselves; the purse is asked before the cluster is there and told once when it is gone."""
    yard, purse = paper(), Purse()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = purse
    for _ in range(3):
        async with await backend.open(JOB) as chamber:
            assert (await chamber.run(Bundle({}))).usage.usd == 0.0
    (name,) = yard.clusters
    assert list(purse.reserved) == [name]
    assert purse.settled == {}
    await backend.stand_down()
    assert yard.clusters == {}
    assert len(purse.settled[name]) == 1
    await backend.close()
    assert len(purse.settled[name]) == 1


async def test_at_once_no_more_than_asked_for(tmp_path: Path) -> None:
    """Four trials on two standing clusters: each waits for a free one, and no third is made."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=2))
    backend.purse = Purse()

    async def one() -> Ending:
        async with await backend.open(JOB) as chamber:
            return (await chamber.run(Bundle({}))).ending

    assert await asyncio.gather(*(one() for _ in range(4))) == [Ending.COMPLETED] * 4
    assert len(yard.launched) == 2
    await backend.close()
    assert yard.clusters == {}


async def test_a_machine_that_a_candidate_may_have_taken_is_not_used_again(tmp_path: Path) -> None:
    """Bytes that are no report, or a kill, and the cluster is ended; the next trial gets another."""
    yard = paper(b"forged")
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = Purse()
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(Bundle({}))
    assert outcome.ending is Ending.PROTOCOL
    assert not outcome.told
    assert yard.clusters == {}
    first = chamber.name
    async with await backend.open(JOB) as chamber:
        assert chamber.name != first
    await backend.close()


async def test_a_machine_that_can_not_be_wiped_is_not_used_again(tmp_path: Path) -> None:
    """What a trial left is gone before the next one comes, or the cluster is."""
    yard, lines = paper(), []
    provisioner = YardProvisioner(yard)
    call = provisioner.call

    async def listening(name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        lines.append(command)
        return (1, b"no") if "rm -rf" in command else await call(name, command, cap, timeout)

    provisioner.call = listening  # type: ignore[method-assign]  # one machine that cannot delete
    backend = await connected(provisioner, settings(tmp_path, warm=1))
    backend.purse = Purse()
    async with await backend.open(JOB) as chamber:
        assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
    assert any("rm -rf" in line and "trials" in line for line in lines)
    assert yard.clusters == {}
    await backend.close()


async def test_facts_are_those_from_before(tmp_path: Path) -> None:
    """What a chamber is was heard before the candidate came: a machine cannot change it afterwards."""
    backend = await connected(YardProvisioner(paper()), settings(tmp_path))
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(Bundle({}))
    assert outcome.facts == chamber.facts == {"cpu": "paper"}
    await backend.close()


@pytest.mark.parametrize("method", ["launch", "send", "call", "submit"])
async def test_what_a_failure_costs(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider charges from the launch on: the error carries it, and one before delivery says that it was before."""
    monkeypatch.setattr(skypilot_chamber, "TRY_PAUSE_S", 0.001)
    yard = paper()
    calls = 0

    def third(called: str) -> Fault | None:
        nonlocal calls
        calls += called == method
        late = 3 if method == "send" else 1
        return Fault.AFTER if called == method and calls >= late else None

    backend = await connected(YardProvisioner(yard, third), settings(tmp_path))
    with pytest.raises(Unavailable) as caught:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({}))
    assert caught.value.usd >= sum(yard.bill.values()) > 0
    assert isinstance(caught.value, NotDelivered) == (method == "send")
    await backend.close()


async def test_what_the_machine_says_it_could_not_do(tmp_path: Path) -> None:
    """Its engine's failure is raised as what it is, with the cost."""
    yard = paper(report_bytes(Report(Failed.of(Lost("gone")), {}, b"")))
    backend = await connected(YardProvisioner(yard), settings(tmp_path))
    with pytest.raises(Lost, match="gone") as caught:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({}))
    assert caught.value.usd > 0
    await backend.close()


async def test_a_machine_that_floods(tmp_path: Path) -> None:
    """More bytes than any report has are cut off and called what they are."""
    job = Job(command=("true",), limits=Limits(wall=5, output_bytes=1000, output_files=2))
    backend = await connected(YardProvisioner(paper(b"x" * 50_000_000)), settings(tmp_path))
    async with await backend.open(job) as chamber:
        assert (await chamber.run(Bundle({}))).ending is Ending.PROTOCOL
    await backend.close()


async def test_nobody_talks_to_it(tmp_path: Path) -> None:
    """A batch job that somebody wants to talk to is refused, and nothing is delivered."""

    async def talk(channel: Channel) -> None: ...

    backend = await connected(YardProvisioner(paper()), settings(tmp_path))
    async with await backend.open(JOB) as chamber:
        with pytest.raises(Refused, match="no relay"):
            await chamber.run(Bundle({}), talk=talk)
    await backend.close()


async def test_a_closed_backend_opens_nothing(tmp_path: Path) -> None:
    """After close, opening is refused; a chamber that was being made is gone."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path))
    opening = asyncio.create_task(backend.open(JOB))
    await asyncio.sleep(0.005)
    await backend.close()
    await asyncio.wait([opening])
    assert yard.clusters == {}
    assert yard.requests == {}
    with pytest.raises(Refused, match="closed"):
        await backend.open(JOB)
