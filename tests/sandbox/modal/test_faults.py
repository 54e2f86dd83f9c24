"""Whatever Modal does wrong, at whichever call: it takes a bounded time, is one of our errors, and leaves nothing.

Many lives go on at the same time, each in an app of its own with a fault of its own.
"""

import asyncio

import pytest
from grpclib import Status

from sandbox import Ending, Job, ModalConfig
from sandbox.backends.modal import ender as modal_ender
from sandbox.backends.modal import engine as modal_engine
from sandbox.backends.modal.backend import ModalBackend
from sandbox.conformance.check import Ear
from sandbox.errors import SandboxError, Unavailable
from sandbox.link import Deadlines
from tests.modal_emulator import ModalEmulator, When
from tests.modal_emulator.bare import Bare, until
from tests.sandbox.modal.life import (
    ALWAYS,
    BUNDLE,
    GPU_JOB,
    JOB,
    LIMITS,
    OF_NO_APP,
    WITH_A_GPU,
    WITHOUT_A_GPU,
    Connect,
    Life,
    at_once,
    dismiss,
    leave_an_orphan,
    live,
    lose_the_reply,
    reap_as_another,
)

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]

AFTER_A_LOST_REPLY = (
    "SandboxGetCommandRouterAccess",
    "SandboxGetFromName",
    "SandboxGetFromNameV2",
    "SandboxGetTaskIdV2",
)
WHENS: tuple[When, ...] = ("before", "after")
FAULTS = [(when, kind) for when in WHENS for kind in ("error", "hang", "cut")]
BOUND_S = 200.0  # the longest chain of our own deadlines, on a machine that does much else


@pytest.fixture
def hasty(config: ModalConfig, monkeypatch: pytest.MonkeyPatch) -> ModalConfig:
    """Our own deadlines, shorter: what hangs is given up sooner."""
    for name, seconds in (("CONNECT_S", 12.0), ("CALL_S", 6.0), ("END_TRY_S", 6.0)):
        monkeypatch.setattr(modal_engine, name, seconds)
    return config.model_copy(update={"deadlines": Deadlines(provision=20.0, upload=10.0, collect=10.0)})


@pytest.mark.parametrize("job", [JOB, GPU_JOB], ids=["usual", "gpu"])
async def test_every_rpc_is_among_these(
    config: ModalConfig, bare: Bare, modal_emulator: ModalEmulator, job: Job
) -> None:
    """The lists that the other tests go through hold every call that our backend makes in such a life."""
    await leave_an_orphan(config, bare, job)
    lose_the_reply(modal_emulator, config.app, job)
    life = await live(config, job)
    assert life.outcome, life.failure
    assert (life.outcome.ending, life.outcome.outputs) == (Ending.COMPLETED, {"x": b"hello"})
    expected = {*OF_NO_APP, *ALWAYS, *(WITH_A_GPU if job.limits.gpu else WITHOUT_A_GPU)}
    assert set(modal_emulator.calls()) == expected
    await dismiss(life.warden)


async def test_two_that_end_it_at_once(bare: Bare, modal_emulator: ModalEmulator) -> None:
    """The owner's own kill and a later try of the same end do not take each other for a failure."""
    sandbox = modal_engine.Sandbox(await bare.create())
    await asyncio.gather(sandbox.end(), sandbox.end())
    await sandbox.end()
    assert modal_emulator.running() == []
    assert modal_emulator.calls().count("SandboxTerminateV2") == 1


@pytest.mark.parametrize("second", [Status.RESOURCE_EXHAUSTED, Status.PERMISSION_DENIED, Status.INVALID_ARGUMENT])
async def test_a_lost_reply_and_then_a_refusal(
    backend: ModalBackend, config: ModalConfig, modal_emulator: ModalEmulator, second: Status
) -> None:
    """A refused retry says nothing of the first try, whose reply was lost: it is looked for, ended and paid (T73)."""
    lost = modal_emulator.hang("SandboxCreateV2", "after")
    opening = asyncio.create_task(backend.open(JOB))
    assert await asyncio.to_thread(modal_emulator.reached, lost)
    modal_emulator.fail("SandboxCreateV2", "before", second, -1)
    modal_emulator.release(lost)  # made, and the connection ends before the answer
    with pytest.raises(SandboxError) as found:
        await opening
    assert modal_emulator.running() == []
    (bill,) = modal_emulator.sandboxes()
    assert found.value.usd >= config.rates.per_second(JOB.limits) * bill["seconds"]
    assert not found.value.unended


async def test_a_refusal_overtakes_the_create_that_it_follows(
    backend: ModalBackend, modal_emulator: ModalEmulator
) -> None:
    """What lands after the refusal, and after its caller has been told, is still on the list, and is ended (T73)."""
    late = modal_emulator.hold("SandboxCreateV2")
    opening = asyncio.create_task(backend.open(JOB))
    assert await asyncio.to_thread(modal_emulator.reached, late)
    modal_emulator.fail("SandboxCreateV2", "before", Status.PERMISSION_DENIED, -1)
    modal_emulator.cut("control")  # whoever waits for the first answer tries again
    modal_emulator.listen()
    with pytest.raises(SandboxError):
        await opening
    modal_emulator.release(late)
    await until(lambda: _made_and_ended(modal_emulator))


async def _made_and_ended(emulator: ModalEmulator) -> bool:
    return [bill["ended_at"] is None for bill in await asyncio.to_thread(emulator.sandboxes)] == [False]


async def test_a_create_that_outlasts_its_deadline(
    config: ModalConfig, connected: Connect, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In flight counts from when a create was given up, not from when it was begun (T72). (300 s and 60 s, scaled.)"""
    monkeypatch.setattr(modal_ender, "IN_FLIGHT_S", 4.5)
    backend = await connected(config.model_copy(update={"deadlines": Deadlines(provision=5.0)}))
    held = modal_emulator.hold("SandboxCreateV2", "before")
    with pytest.raises(Unavailable, match="create: Modal did not answer") as found:
        await backend.open(JOB)
    assert found.value.unended, "nobody ever answered, and it counts as ended for certain"
    assert found.value.usd > 0
    modal_emulator.release(held)
    await until(lambda: _made_and_ended(modal_emulator))


@pytest.mark.parametrize("silent", [True, False])
async def test_a_worker_that_goes_silent(
    backend: ModalBackend, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    """A program that says nothing until its time is over timed out, unless its machine does not answer either."""
    monkeypatch.setattr("sandbox.backends.modal.backend.QUESTION_S", 5.0)
    limits = LIMITS.model_copy(update={"wall": 4.0})
    ear = Ear()
    async with await backend.open(Job(command=("sh", "-c", "echo on; exec sleep 60"), limits=limits)) as chamber:
        running = asyncio.create_task(chamber.run(BUNDLE, listener=ear))
        await ear.hears()
        if silent:
            modal_emulator.silence()
            with pytest.raises(Unavailable, match="its machine does not answer"):
                await running
        else:
            assert (await running).ending is Ending.TIMED_OUT
    assert modal_emulator.running() == []


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("when", "kind"), FAULTS)
async def test_nothing_is_left(
    hasty: ModalConfig, bare: Bare, modal_emulator: ModalEmulator, when: When, kind: str, every: bool
) -> None:
    """A trial comes through or fails as ours; what it says it cost covers what Modal would charge; and after a reap,
    nothing runs. Each call meets one fault, in `make thorough` all. Tokens and greetings are of no app, so that every
    caller meets the fault: one after the other.
    """

    def some_of(rpcs: tuple[str, ...]) -> tuple[str, ...]:
        return rpcs if every else rpcs[FAULTS.index((when, kind)) :: len(FAULTS)]

    rpcs = some_of((*ALWAYS, *WITHOUT_A_GPU, *WITH_A_GPU))
    wrongs = await at_once(_wrong(modal_emulator, hasty, bare, rpc, when, kind, own_app=True) for rpc in rpcs)
    for rpc in some_of(OF_NO_APP):
        wrongs.append(await _wrong(modal_emulator, hasty, bare, rpc, when, kind, own_app=False))
    assert [wrong for wrong in wrongs if wrong] == []
    assert modal_emulator.containers() == []


async def _wrong(
    emulator: ModalEmulator, config: ModalConfig, bare: Bare, rpc: str, when: When, kind: str, own_app: bool
) -> str:
    """What is wrong with a life in which this call fails; nothing, if all is well."""
    job = GPU_JOB if rpc in WITH_A_GPU else JOB
    config = config.model_copy(update={"app": f"{rpc}-{when}-{kind}"})
    if "TagsGet" in rpc:
        await leave_an_orphan(config, bare, job)
    if rpc in AFTER_A_LOST_REPLY:
        lose_the_reply(emulator, config.app, job)
    fault = inject(emulator, rpc, when, kind, config.app if own_app else "")
    try:
        async with asyncio.timeout(BOUND_S):
            life = await live(config, job)
    except TimeoutError:
        return f"{rpc}: not bounded"
    if not emulator.reached(fault, 0):
        return f"{rpc}: the fault did not strike ({life.failure})"
    emulator.remove(fault)
    await dismiss(life.warden)
    await reap_as_another(config)
    return _left(emulator, config, job, life)


def inject(emulator: ModalEmulator, rpc: str, when: When, kind: str, app: str) -> int:
    """Before the effect it goes wrong every time, as with a provider that is away; a reply is lost once."""
    times = -1 if when == "before" else 1
    match kind:
        case "error":
            return emulator.fail(rpc, when, times=times, app=app)
        case "hang":
            return emulator.hang(rpc, when, times=times, app=app)
    return emulator.cut_at(rpc, when, times=times, app=app)


def _left(emulator: ModalEmulator, config: ModalConfig, job: Job, life: Life) -> str:
    if life.outcome and (life.outcome.ending, life.outcome.outputs) != (Ending.COMPLETED, {"x": b"hello"}):
        return f"{config.app}: the provider's failure is blamed on the program: {life.outcome}"
    bills = [bill for bill in emulator.sandboxes() if bill["app"] == config.app]
    if running := [bill for bill in bills if bill["ended_at"] is None]:
        return f"{config.app}: left running {running}"
    charged = config.rates.per_second(job.limits) * sum(bill["seconds"] for bill in bills if bill["name"] != "orphan")
    if not life.unended and charged > life.usd * 1.01:
        return f"{config.app}: ${charged} are charged, ${life.usd} are booked: {life.failure}"
    return ""
