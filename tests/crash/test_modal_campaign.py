"""A campaign on Modal whose orchestrator is killed while a call of create, run or terminate is under way.

After a resume nothing is running, nothing is charged twice, the ledger says what was lost, and what is booked covers
what the provider's record comes to and is never more than was reserved: T72, T73, T74.
"""

import os
import time
from pathlib import Path
from typing import Literal

import pytest

from sandbox.price import MODAL
from tests.crash.bills import checked, lost
from tests.crash.docker_campaign import make
from tests.crash.modal_campaign import ATTEMPTS, main
from tests.modal_emulator import ModalEmulator
from tests.started import WITH_MODAL, Started

pytestmark = [
    pytest.mark.modal,
    pytest.mark.docker,
    pytest.mark.crash,
    pytest.mark.timeout(600),
    pytest.mark.touching("modal", "recovery"),
]

REACHED_S = 180.0
PROGRAM = f"{main.__module__}:{main.__name__}"
When = Literal["before", "after"]
# Of each step the two sides of its effect; with one that stands ready, where there are two to be ended.
POINTS: list[tuple[str, When, int]] = [
    ("SandboxCreateV2", "before", 0),
    ("SandboxCreateV2", "after", 0),
    ("TaskExecStart", "after", 0),
    ("TaskExecStdinWrite", "before", 0),
    ("TaskExecStdioRead", "after", 0),
    ("SandboxTerminateV2", "before", 0),
    ("SandboxTerminateV2", "after", 1),
]


class Orchestrator:
    """One session of the campaign, in a process; its owners are kept in the test's own folder."""

    def __init__(self, folder: Path, standing: int) -> None:
        environment = {**os.environ, "XDG_STATE_HOME": str(folder.parent / "state")}
        self.process = Started(folder, str(standing), program=PROGRAM, warm=WITH_MODAL, env=environment, stderr=2)

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() == -9, "it ended before it could be killed"


def billed(emulator: ModalEmulator) -> float:
    """Dollars by the provider's own record, at the public prices of what each sandbox was allowed to use."""
    usd = 0.0
    for it in emulator.sandboxes():
        usd += it["seconds"] * (it["cpu"][1] * MODAL.cpu + it["memory_mib"][1] / 1024 * MODAL.memory_gib)
    return usd


def nothing_runs(emulator: ModalEmulator) -> bool:
    """Now or soon: a warden may be at work."""
    until = time.monotonic() + 120
    while emulator.running() and time.monotonic() < until:
        time.sleep(0.2)
    return not emulator.running()


@pytest.mark.parametrize(("rpc", "when", "standing"), POINTS)
def test_killed_at(tmp_path: Path, modal_emulator: ModalEmulator, rpc: str, when: When, standing: int) -> None:
    """Whatever was under way at Modal is ended, run again, charged once and paid for."""
    folder = make(tmp_path / "task")
    held = modal_emulator.hold(rpc, when)
    first = Orchestrator(folder, standing)
    try:
        assert modal_emulator.reached(held, REACHED_S), f"{rpc} was never called"
    finally:
        first.kill()
    modal_emulator.release(held)
    again = Orchestrator(folder, standing)
    assert again.process.wait(REACHED_S) == 0
    assert nothing_runs(modal_emulator)
    decided = checked(folder, billed(modal_emulator), ATTEMPTS)
    assert decided["champion"] == "1.2", "2 is better than 1"
    assert lost(folder) > 0
