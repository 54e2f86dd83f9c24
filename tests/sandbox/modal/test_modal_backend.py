"""The backend through Modal's own package, with an emulator at the other end."""

import asyncio
import time
from pathlib import Path

import pytest
from grpclib import Status

from sandbox.backends.modal import engine as modal_engine
from sandbox.backends.modal.backend import ModalBackend
from sandbox.backends.modal.marks import mark_of
from sandbox.bundle import Bundle
from sandbox.config import ModalConfig
from sandbox.conformance.check import Ear
from sandbox.errors import Denied, Lost, Refused, SandboxError, TakenAway, Unavailable
from sandbox.inputs import InputStore
from sandbox.job import Ending, Job, Limits
from sandbox.link import Deadlines
from tests.modal_emulator import ModalEmulator, When
from tests.modal_emulator.bare import Bare, until
from tests.sandbox.modal.life import Connect

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]

LIMITS = Limits(wall=30, memory="128MiB", cpus=0.5, pids=64, open_files=256)


def job(script: str = ":", **wishes: object) -> Job:
    return Job(**{"command": ("sh", "-c", script), "limits": LIMITS, **wishes})


async def ran(backend: ModalBackend, script: str, **wishes: object) -> tuple[Ending, bytes]:
    async with await backend.open(job(script, **wishes)) as chamber:
        outcome = await chamber.run(Bundle({}))
    return outcome.ending, outcome.log_tail


async def none_running(emulator: ModalEmulator) -> bool:
    return not await asyncio.to_thread(emulator.running)


async def test_what_modal_is_asked_for(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """No network, hard limits, a lifetime that fits, our tags and a name of its own: all with the create itself. What
    we book is what an invoice would say, up to the moments between the two clocks.
    """
    begun = time.monotonic()
    async with await backend.open(job("sleep 1")) as chamber:
        outcome = await chamber.run(Bundle({}))
    passed = time.monotonic() - begun
    (bill,) = modal_emulator.sandboxes()
    assert (bill["network_blocked"], bill["cpu"], bill["memory_mib"]) == (True, [0.5, 0.5], [128, 128])
    assert 30 < bill["timeout"] <= 24 * 3600
    assert bill["name"].startswith(f"blastdoor-{backend.owner}-")
    assert bill["tags"]["blastdoor-owner"] == backend.owner
    assert int(bill["tags"]["blastdoor-ends"]) >= bill["created_at"] + bill["timeout"] - 5
    assert "SandboxTagsSet" not in modal_emulator.calls()
    assert bill["seconds"] - 0.5 <= outcome.usage.held_s <= passed
    assert outcome.usage.usd == pytest.approx(outcome.usage.held_s * ModalConfig().rates.per_second(LIMITS))


async def test_its_mark_ends_after_the_sandbox(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """A reaper on another machine ends what is past its mark: a slow image must not make that early (T77)."""
    modal_emulator.slow("ImageGetOrCreate", 4.0)
    async with await backend.open(job()):
        (sandbox,) = modal_emulator.sandboxes()
    mark = mark_of(sandbox["tags"])
    assert mark
    assert mark.ends >= sandbox["created_at"] + sandbox["timeout"] + 600


async def test_what_the_candidate_is(backend: ModalBackend) -> None:
    """The emulator runs everything as root on a writable root; a candidate is nobody, cannot become root, and is
    told nothing of Modal."""
    look = "id -u; id -G; grep -E 'Cap(Eff|Bnd|Prm)|NoNewPrivs' /proc/self/status; ulimit -n; env; touch /usr/x /etc/x"
    ending, log = await ran(backend, look)
    lines = log.decode().split("\n")
    uid = int(lines[0])
    assert ending is Ending.FAILED
    assert uid >= 1_500_000
    assert lines[1] == str(uid)
    assert log.count(b"\t0000000000000000") == 3
    assert b"NoNewPrivs:\t1" in log
    assert "256" in lines
    assert b"MODAL" not in log
    assert log.count(b"Permission denied") == 2


async def test_forks_are_limited(backend: ModalBackend) -> None:
    """Modal limits no processes; the sandbox's own kernel does, for the candidate's user."""
    script = "i=0; while [ $i -lt 100 ]; do sleep 20 & i=$((i+1)); done; wait"
    _, log = await ran(backend, script, limits=LIMITS.model_copy(update={"wall": 20, "pids": 32}))
    assert b"fork" in log.lower()


async def test_an_image_that_lacks_tools(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """It is refused in one line that names what is missing, and nothing is left of it."""
    base = modal_engine.registry_image("python:3.11-slim-bookworm")
    built = await backend.engine.build(modal_engine.with_added(base, (), (), ["rm /usr/bin/setpriv"]), 60)
    with pytest.raises(Refused, match=r"lacks.*setpriv.*; on Modal an image needs sh, head"):
        await ran(backend, ":", image=modal_engine.image_id(built))
    assert modal_emulator.running() == []


async def test_inputs_lie_in_their_place(
    backend: ModalBackend, config: ModalConfig, modal_emulator: ModalEmulator, tmp_path: Path
) -> None:
    """They are sent once, by content, and a candidate can read but not change them. One that was never added, and an
    image that Modal has not, are refused before anything is rented.
    """
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "x.bin").write_bytes(bytes(range(256)) * 1000)
    item = InputStore(config.inputs_folder).add("numbers", tmp_path / "data")
    with pytest.raises(Refused, match="not in the store"):
        await backend.open(job(inputs=({"name": "x", "digest": "0" * 64},)))
    with pytest.raises(Refused, match="Modal has no image im-unknown; bake it again"):
        await backend.open(job(image="im-unknown"))
    assert modal_emulator.sandboxes() == []
    script = "cksum </inputs/numbers/deep/x.bin; echo >>/inputs/numbers/deep/x.bin || echo kept"
    _, log = await ran(backend, script, inputs=(item,))
    assert b"256000" in log
    assert b"kept" in log


async def test_gpus_go_the_other_way(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """With a GPU the package takes other calls; the chamber is the same."""
    limits = LIMITS.model_copy(update={"gpu": Limits(gpu="A10:2").gpu})
    assert (await ran(backend, "echo well", limits=limits)) == (Ending.COMPLETED, b"well\n")
    (bill,) = modal_emulator.sandboxes()
    assert (bill["gpu"], bill["gpus"], bill["is_v2"]) == ("A10", 2, False)


@pytest.mark.parametrize(("when", "times"), [("after", 1), ("before", 5)])
async def test_a_lost_answer(backend: ModalBackend, modal_emulator: ModalEmulator, when: When, times: int) -> None:
    """Create took effect and its answer was lost: the name makes the retry safe, and there is one sandbox (T73). So is
    it where Modal failed before, more often than its package tries.
    """
    modal_emulator.fail("SandboxCreateV2", when, Status.INTERNAL, times)
    assert (await ran(backend, "echo well"))[1] == b"well\n"
    assert len(modal_emulator.sandboxes()) == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancelled_while_it_is_made(backend: ModalBackend, modal_emulator: ModalEmulator, when: str) -> None:
    """Whoever stops waiting for a sandbox leaves none: not before it is made, not after (T72)."""
    fault = modal_emulator.hold("SandboxCreateV2", "before" if when == "before" else "after")
    opening = asyncio.create_task(backend.open(job()))
    assert await asyncio.to_thread(modal_emulator.reached, fault)
    opening.cancel()
    await asyncio.sleep(0.1)
    modal_emulator.release(fault)
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert modal_emulator.running() == []
    assert len(modal_emulator.sandboxes()) == 1


async def test_cancelled_while_its_image_comes(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """Nothing is rented yet: whoever gives up is let go at once, and no sandbox is made for nobody."""
    fault = modal_emulator.hold("ImageGetOrCreate")
    opening = asyncio.create_task(backend.open(job()))
    assert await asyncio.to_thread(modal_emulator.reached, fault)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(opening, 60)
    modal_emulator.release(fault)
    assert (await ran(backend, "echo well"))[1] == b"well\n"
    assert len(modal_emulator.sandboxes()) == 1


async def test_what_could_not_be_reaped_is_known(
    modal_emulator: ModalEmulator, config: ModalConfig, connected: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes next knows what a dead owner left that Modal does not let go, and says where it can be ended."""
    monkeypatch.setattr(modal_engine, "END_PAUSES_S", ())
    dead = await connected(config)
    async with await dead.open(job()):
        modal_emulator.fail("SandboxTerminateV2", status=Status.INTERNAL, times=-1)
        dead.tenancy.release()
        living = await connected(config)
        assert [name.startswith(f"blastdoor-{dead.owner}-") for name in living.unreaped] == [True]
        modal_emulator.heal()
        await living.reap()
        assert living.unreaped == ()
    elsewhere = await connected(config.model_copy(update={"app": f"{config.app}-2"}))
    assert living.place == dead.place != elsewhere.place


@pytest.mark.parametrize("failures", [5, -1], ids=["fails at first", "never works"])
async def test_terminate_fails(
    backend: ModalBackend, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """The outcome waits for a confirmed end; one that cannot be had at first is had later (T74). Else the trial is over
    and its bill open; the sandbox is ended as soon as Modal lets us. The package itself tries four times a call.
    """
    monkeypatch.setattr(modal_engine, "END_PAUSES_S", (0.05, 0.05))
    monkeypatch.setattr(modal_engine, "END_TRY_S", 1.0)
    modal_emulator.fail("SandboxTerminateV2", status=Status.INTERNAL, times=failures)
    async with await backend.open(job("echo well")) as chamber:
        assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
        assert chamber.bill.final == (failures > 0)
    assert len(modal_emulator.running()) == (failures < 0)
    modal_emulator.heal()
    await until(lambda: none_running(modal_emulator))


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [(Status.RESOURCE_EXHAUSTED, Unavailable, "quota"), (Status.UNAUTHENTICATED, Denied, "modal token new")],
)
async def test_a_create_that_is_refused(
    backend: ModalBackend, modal_emulator: ModalEmulator, status: Status, kind: type[SandboxError], said: str
) -> None:
    """Nothing was made and nothing is charged. A quota may be tried later; for a token a person has to act."""
    await ran(backend, ":")
    modal_emulator.fail("SandboxCreateV2", status=status, times=-1)
    with pytest.raises(kind, match=said) as caught:
        await backend.open(job())
    assert (caught.value.usd, caught.value.unended) == (0.0, False)


async def test_a_provider_that_is_away(
    backend: ModalBackend, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known within our own time, long before the package gives up, and costs nothing."""
    monkeypatch.setattr(modal_engine, "CALL_S", 1.0)
    monkeypatch.setattr(modal_engine, "FRESH_S", 0.0)
    await ran(backend, ":")
    modal_emulator.cut()
    with pytest.raises(Unavailable, match=r"connect: Modal d(oes|id) not answer") as caught:
        await backend.open(job())
    assert (caught.value.usd, caught.value.unended) == (0.0, False)
    modal_emulator.heal()
    assert (await ran(backend, "echo again"))[1] == b"again\n"


async def test_a_worker_that_is_half_dead(
    modal_emulator: ModalEmulator, config: ModalConfig, connected: Connect
) -> None:
    """Commands start and say nothing: the chamber is given up in time, ended, and its seconds are told."""
    backend = await connected(config.model_copy(update={"deadlines": Deadlines(provision=10.0)}))
    await ran(backend, ":")
    modal_emulator.silence()
    with pytest.raises(Unavailable, match="start the chamber: Modal did not answer") as caught:
        await backend.open(job())
    assert caught.value.usd > 0
    assert not caught.value.unended
    assert modal_emulator.running() == []
    modal_emulator.heal()


async def test_ended_by_somebody_else(backend: ModalBackend, bare: Bare) -> None:
    """A sandbox that somebody else terminates is lost, not failed."""
    ear = Ear()
    async with await backend.open(job("echo on; sleep 60")) as chamber:
        running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
        await ear.hears()
        found = await backend.engine.find(chamber.name)
        assert found
        await found.end()
        with pytest.raises(Lost) as caught:
            await running
        assert not isinstance(caught.value, TakenAway)


async def test_closed(backend: ModalBackend, modal_emulator: ModalEmulator, config: ModalConfig) -> None:
    """Closing ends what is open; then nothing can be opened, and no warden stays behind."""
    await backend.open(job())
    await backend.close()
    assert modal_emulator.running() == []
    with pytest.raises(Refused, match="closed"):
        await backend.open(job())
    assert list(config.owners_folder.glob("????????????")) == []
