"""What the SkyPilot backend refuses, charges, keeps and gives up, on a yard of our own."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.views.cli import cli
from sandbox import Channel, Ending, Job, Limits, NotDelivered, Refused, Unavailable
from sandbox.backends.skypilot import backend as skypilot_backend
from sandbox.backends.skypilot import chamber as skypilot_chamber
from sandbox.backends.skypilot.machine import BOX_S
from sandbox.backends.skypilot.names import mark_of, name_for
from sandbox.backends.skypilot.places import PLACES, WARM_CAVEAT, admitted, cloud_of
from sandbox.backends.skypilot.provisioner import Provisioner
from sandbox.tenancy import Mark, Tenancy
from tests.clicking import runner
from tests.sandbox.skypilot.connecting import BUNDLE, JOB, Connect, Purse, settings, trial
from tests.sandbox.skypilot.yard import Fault, Yard, YardProvisioner


async def test_places(tmp_path: Path) -> None:
    """One is allowed, or refused with its reason before anything is imported or made, as is one that nobody decided
    upon. SkyPilot's other name for Kubernetes is known.
    """
    for place, known in PLACES.items():
        if known.refused:
            with pytest.raises(Refused, match="no chamber is rented at"):
                admitted(f"{place}/somewhere")
        else:
            assert admitted(f"{place}/somewhere") is known
    with pytest.raises(Refused, match="not known here"):
        admitted("moon/base")
    assert cloud_of("k8s/context") == "kubernetes"
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
async def test_jobs_that_are_refused(job: Job, why: str, owner: Connect, yard: Yard) -> None:
    """Nothing is asked of the provider for a job that cannot run there."""
    backend = await owner()
    with pytest.raises(Refused, match=why):
        await backend.open(job)
    assert yard.launched == []


async def test_nobody_talks_to_it(owner: Connect) -> None:
    """A batch job that somebody wants to talk to is refused, and nothing is delivered."""

    async def talk(channel: Channel) -> None: ...

    async with await (await owner()).open(JOB) as chamber:
        with pytest.raises(Refused, match="no relay"):
            await chamber.run(BUNDLE, talk=talk)


async def test_ends_that_are_set(owner: Connect, yard: Yard) -> None:
    """A machine ends itself after the longest that the job may take and the autodown, and absolutely."""
    await (await (await owner(autodown=300)).open(JOB)).kill()
    name, wanted = yard.launched[0]
    assert wanted.idle_s == 5 + 5 + BOX_S + 300
    mark = mark_of(name)
    assert mark
    assert abs(mark.ends - wanted.ends) < 5


async def test_no_purse_nothing_stands(owner: Connect, yard: Yard) -> None:
    """Without somebody who pays for it no cluster is kept, and with one that has no money neither."""
    backend = await owner(warm=2)
    assert WARM_CAVEAT in backend.capabilities.caveats
    assert "reused" in backend.capabilities.boundary
    for purse in (None, Purse(0.01)):
        backend.purse = purse
        assert (await trial(backend))[1].usage.usd > 0
        assert yard.clusters == {}


async def test_one_cluster_for_many_trials(owner: Connect, yard: Yard) -> None:
    """They cost nothing themselves; the purse is asked before the cluster is there and told once when it is gone."""
    backend = await owner(warm=1)
    backend.purse = purse = Purse()
    for _ in range(3):
        assert (await trial(backend))[1].usage.usd == 0.0
    (name,) = yard.clusters
    assert (list(purse.reserved), purse.settled) == ([name], {})
    await backend.stand_down()
    assert yard.clusters == {}
    await backend.close()
    assert len(purse.settled[name]) == 1


async def test_at_once_no_more_than_asked_for(owner: Connect, yard: Yard) -> None:
    """Four trials on two standing clusters: each waits for a free one, and no third is made."""
    backend = await owner(warm=2)
    ran = await asyncio.gather(*(trial(backend) for _ in range(4)))
    assert [outcome.ending for _, outcome in ran] == [Ending.COMPLETED] * 4
    assert len(yard.launched) == 2
    await backend.close()
    assert yard.clusters == {}


async def test_a_machine_that_can_not_be_wiped_is_not_used_again(owner: Connect, yard: Yard) -> None:
    """What a trial left is gone before the next one comes, or the cluster is."""
    provisioner = YardProvisioner(yard)
    call = provisioner.call

    async def no_wipe(name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        return (1, b"no") if "rm -rf" in command else await call(name, command, cap, timeout)

    provisioner.call = no_wipe  # type: ignore[method-assign]  # one machine that cannot delete
    assert (await trial(await owner(provisioner, warm=1)))[1].ending is Ending.COMPLETED
    assert yard.clusters == {}


@pytest.mark.parametrize("method", ["launch", "send", "call", "submit"])
async def test_what_a_failure_costs(method: str, owner: Connect, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider charges from the launch on: the error carries it, and one before delivery says that it was before."""
    monkeypatch.setattr(skypilot_chamber, "TRY_PAUSE_S", 0.001)
    calls = 0

    def third(called: str) -> Fault | None:
        nonlocal calls
        calls += called == method
        late = 3 if method == "send" else 1
        return Fault.AFTER if called == method and calls >= late else None

    backend = await owner(YardProvisioner(yard, third))
    with pytest.raises(Unavailable) as caught:
        await trial(backend)
    assert caught.value.usd >= sum(yard.bill.values()) > 0
    assert isinstance(caught.value, NotDelivered) == (method == "send")


async def test_a_closed_backend_opens_nothing(owner: Connect, yard: Yard) -> None:
    """After close, opening is refused; a chamber that was being made is gone."""
    backend = await owner()
    opening = asyncio.create_task(backend.open(JOB))
    await asyncio.sleep(0.005)
    await backend.close()
    await asyncio.wait([opening])
    assert (yard.clusters, yard.requests) == ({}, {})
    with pytest.raises(Refused, match="closed"):
        await backend.open(JOB)


@pytest.mark.parametrize(
    ("ended", "left", "code", "said"),
    [
        (["bd-left"], [], 0, "removed bd-left\n1 removed\n"),
        ([], ["bd-stuck"], 3, "0 removed, 1 could not be removed\n"),
    ],
)
def test_reap_demands_no_place(
    ended: list[str], left: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SkyPilot lists the clusters of all places together. What the sweep ended is told, what could not be ended is
    named, and its own place among the living is given up again.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    swept: list[Tenancy] = []

    async def reap(provisioner: Provisioner, tenancy: Tenancy) -> tuple[list[str], list[str]]:
        swept.append(tenancy)
        return ended, left

    monkeypatch.setattr(skypilot_backend, "installed", object)
    monkeypatch.setattr(skypilot_backend, "reap", reap)
    ran = runner().invoke(cli, ["reap", "--backend", "skypilot"])
    assert (ran.exit_code, ran.stdout) == (code, said)
    assert ran.stderr.startswith("could not remove bd-stuck: " if left else "")
    assert not swept[0].path.exists()
