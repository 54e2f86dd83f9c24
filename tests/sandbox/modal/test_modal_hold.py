"""What a sandbox died of, on the provider's evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sandbox.backends.modal import hold as modal_hold
from sandbox.backends.modal.hold import ModalHold
from sandbox.errors import Lost, SandboxError, TakenAway, Unavailable
from sandbox.live import Death


@dataclass
class Word:
    status: str


class Watched:
    def __init__(self, answers: Sequence[str | None]) -> None:
        self._answers = list(answers)

    async def ended(self) -> Word | None:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return None if answer is None else Word(answer)


class NoLink:
    closed = False

    def close(self) -> None:
        self.closed = True


def hold(answers: Sequence[str | None], counted: bool | SandboxError = False, end_fails: bool = False) -> ModalHold:
    async def out_of_memory() -> bool:
        if isinstance(counted, SandboxError):
            raise counted
        return counted

    async def end(name: str) -> None:
        if end_fails:
            raise Unavailable(f"{name} does not end")

    return ModalHold("it", Watched(answers), NoLink(), 1.0, 5.0, out_of_memory, end)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "counted", "death"),
    [
        ("KERNEL_OOM_KILL", False, Death.MEMORY),
        ("MEMORY_THRASHING_EVICTION", False, Death.MEMORY),
        (None, True, Death.MEMORY),
        (None, False, Death.ITS_OWN_DOING),
    ],
)
async def test_memory(status: str | None, counted: bool, death: Death) -> None:
    """Ended at its own limit, by the kernel or after thrashing there: the candidate's doing, and no refund (T80). While
    the sandbox outlives its command Modal has no word yet; its kernel counts who was ended for memory.
    """
    assert await hold([status], counted).cause_of_death(1) is death


async def test_a_sandbox_that_is_just_ending() -> None:
    """It takes no questions any more; a moment later Modal says why."""
    ending = hold([None, None, "KERNEL_OOM_KILL"], counted=Lost("no such task"))
    assert await ending.cause_of_death(5) is Death.MEMORY


async def test_a_machine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-dead worker is no evidence against the program."""
    monkeypatch.setattr(modal_hold, "LOOK_S", 0.01)
    with pytest.raises(Unavailable, match="does not answer"):
        await hold([None], counted=Unavailable("silence")).cause_of_death(0.05)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((word, Lost) for word in ("TERMINATED", "TIMEOUT", "FAILURE", "INTERNAL_FAILURE", "IDLE_TIMEOUT", "")),
        *((word, TakenAway) for word in sorted(modal_hold.TAKEN_AWAY)),
    ],
)
async def test_who_ended_it(status: str, kind: type[Lost]) -> None:
    """Nothing of ours ends by itself, and a candidate may know how to break a sandbox: a control job decides (T80).
    Only words that tell of Modal's own doing make an ending free without one.
    """
    with pytest.raises(Lost) as caught:
        await hold([status]).cause_of_death(1)
    assert type(caught.value) is kind
    assert status in str(caught.value)


async def test_streams_are_let_go_of_only_when_it_is_dead() -> None:
    """Until its end is confirmed somebody has to read what it says."""
    living, dead = hold([None], end_fails=True), hold([None])
    with pytest.raises(Unavailable):
        await living.destroy()
    assert not living.link.closed  # type: ignore[attr-defined]
    await dead.destroy()
    assert dead.link.closed  # type: ignore[attr-defined]
    assert await dead.processor_seconds() is None
