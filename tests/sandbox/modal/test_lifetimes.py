"""What Modal says later of a sandbox whose end we did not see, by the list that its service keeps."""

import time

import pytest
from grpclib import Status

from sandbox.backends.modal.backend import LISTED_S, ModalBackend
from sandbox.backends.modal.ender import IN_FLIGHT_S
from sandbox.backends.modal.marks import name_of
from sandbox.config import ModalConfig
from sandbox.errors import SandboxError
from sandbox.job import Job
from tests.modal_emulator import ModalEmulator
from tests.sandbox.modal.life import GPU_JOB, JOB, Connect

pytestmark = [pytest.mark.modal, pytest.mark.docker]


def minute_ago() -> float:
    return time.time() - IN_FLIGHT_S - 1


@pytest.mark.parametrize("job", [JOB, GPU_JOB], ids=["without a GPU", "with one"])
async def test_how_long_it_lived(backend: ModalBackend, modal_emulator: ModalEmulator, job: Job) -> None:
    """No less than Modal charges, rounded up to a second; nothing while it runs, and nothing of another's."""
    chamber = await backend.open(job)
    name = chamber.name
    assert await backend.lifetimes({name: minute_ago()}) == {}
    await chamber.kill()
    (bill,) = modal_emulator.sandboxes()
    told = await backend.lifetimes({name: minute_ago()})
    assert told.keys() == {name}
    assert bill["seconds"] <= told[name] < bill["seconds"] + 1


async def test_what_never_came_to_be(backend: ModalBackend) -> None:
    """Nothing is charged for it, once a create cannot take effect any more and while Modal cannot have forgotten it."""
    lately, late, old = (
        name_of(backend.owner),
        name_of(backend.owner),
        f"blastdoor-x-{int(time.time() - LISTED_S):08x}ab",
    )
    told = await backend.lifetimes({lately: time.time(), late: minute_ago(), old: minute_ago(), "x": minute_ago()})
    assert told == {late: 0.0}


async def test_another_owner_is_told_the_same(backend: ModalBackend, config: ModalConfig, connected: Connect) -> None:
    """The list is the app's: whoever goes on with a campaign there may ask. Another app is another list."""
    chamber = await backend.open(JOB)
    await chamber.kill()
    other = await connected(config)
    elsewhere = await connected(config.model_copy(update={"app": "another"}))
    assert other.registry == backend.registry != elsewhere.registry
    assert (await other.lifetimes({chamber.name: minute_ago()})).keys() == {chamber.name}


async def test_nobody_answers(backend: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """Then nothing is known: it is no word that nothing was there."""
    modal_emulator.fail("SandboxListV2", status=Status.INTERNAL, times=-1)
    with pytest.raises(SandboxError):
        await backend.lifetimes({"a": minute_ago()})
    modal_emulator.heal()


async def test_a_name_that_goes_with_what_is_not_confirmed(
    backend: ModalBackend, modal_emulator: ModalEmulator
) -> None:
    """An open that fails, and whose sandbox cannot be ended, says which one that was."""
    modal_emulator.fail("TaskExecStart", times=-1)
    modal_emulator.fail("SandboxTerminateV2", times=-1)
    with pytest.raises(SandboxError) as failed:
        await backend.open(JOB)
    modal_emulator.heal()
    (made,) = modal_emulator.sandboxes()
    assert (failed.value.unended, failed.value.chamber) == (True, made["name"])
