"""What a hostile reader found in the SkyPilot backend; each test states what must be true."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sandbox.box.report import Ended, Failed, Measured, Report
from sandbox.bundle import Bundle
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.job import Ending, Job, Limits
from tests.sandbox.skypilot.connecting import Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine, report_bytes
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

JOB = Job(command=("true",), limits=Limits(wall=10, grace=1))


def forged(ending: Ending) -> bytes:
    measured = Measured(build_s=0.0, run_s=0.0, collect_s=0.0, log_bytes=0, bad_reports=0)
    page = Ended(ending=ending, exit_code=None, reason="killed by order", told=False, measured=measured)
    return report_bytes(Report(page, {}, b""))


@pytest.mark.parametrize("ending", [Ending.KILLED, Ending.STOPPED])
async def test_t80_a_machine_can_not_say_that_we_ended_it(tmp_path: Path, ending: Ending) -> None:
    """Nobody here gave such an order. `killed` is a free ending, so the candidate's own word would be a refund."""
    backend = await connected(YardProvisioner(Yard(lambda _: PaperMachine(forged(ending)))), settings(tmp_path))
    try:
        async with await backend.open(JOB) as chamber:
            outcome = await chamber.run(Bundle({"a": b"b"}))
        assert outcome.ending is Ending.PROTOCOL
    finally:
        await backend.close()


class Turned(PaperMachine):
    """A candidate broke out of its first chamber: from then on the machine speaks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.lines: list[str] = []

    async def send(self, source: Path, target: str) -> None:
        self.sent.append(target)

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        self.lines.append(command)
        if self._submitted and "-m sandbox.box" in command:
            refused = Failed(error="refused", reason="the image is refused: it is none of ours")
            return 0, report_bytes(Report(refused, {}, b""))
        return await super().call(command, cap, timeout)


async def test_a_used_machine_can_not_refuse_for_us(tmp_path: Path) -> None:
    """Refused means our own policy and ends a campaign. A machine that had hostile bytes is at most unavailable."""
    backend = await connected(YardProvisioner(Yard(lambda _: Turned())), settings(tmp_path, warm=1))
    backend.purse = Purse()
    try:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({"a": b"b"}))
        try:
            async with await backend.open(JOB):
                pass
        except Refused as error:
            pytest.fail(f"the hostile machine's word ended the campaign: {error}")
        except SandboxError:
            pass
    finally:
        await backend.close()


async def test_t12_a_used_machine_keeps_nothing_of_a_trial(tmp_path: Path) -> None:
    """Bundle and outputs of a trial are gone before the next comes: the disk fills, and who breaks out reads them."""
    machine = Turned()
    backend = await connected(YardProvisioner(Yard(lambda _: machine)), settings(tmp_path, warm=1))
    backend.purse = Purse()
    try:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({"a": b"b"}))
        trials = [target.rpartition("/")[2] for target in machine.sent if "/trials/" in target]
        removed = [trial for trial in trials if any("rm -rf" in line and trial in line for line in machine.lines)]
        assert removed == trials
    finally:
        await backend.close()


class SlowDown(YardProvisioner):
    async def down(self, name: str) -> None:
        await asyncio.sleep(0.3)
        await super().down(name)


async def test_cancelled_while_one_makes_room(tmp_path: Path) -> None:
    """A cluster that is ended to make room is settled for what it cost, whoever stops waiting meanwhile."""
    yard = Yard(lambda _: PaperMachine())
    backend = await connected(SlowDown(yard), settings(tmp_path, warm=1))
    backend.purse = purse = Purse()
    try:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({"a": b"b"}))
        larger = Job(command=("true",), limits=Limits(wall=10, grace=1, cpus=4))
        opening = asyncio.create_task(backend.open(larger))
        await asyncio.sleep(0.1)
        opening.cancel()
        with pytest.raises((asyncio.CancelledError, Unavailable)):
            await opening
    finally:
        await backend.close()
    assert not yard.clusters
    assert purse.settled.keys() == purse.reserved.keys(), "ended, and never settled: it is booked at its worst case"


async def test_t75_no_quote_and_a_price_after_all(tmp_path: Path) -> None:
    """What is charged was reserved: a machine that turns out to cost something, where no price was known, is ended."""
    yard = Yard(lambda _: PaperMachine(), quoted=None, usd_per_hour=3600.0)
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = purse = Purse(usd=0.0)
    try:
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({"a": b"b"}))
            await asyncio.sleep(0.2)
    except SandboxError:
        pass
    finally:
        await backend.close()
    over = {name: sum(usd) for name, usd in purse.settled.items() if sum(usd) > purse.reserved[name]}
    assert not over, f"reserved nothing, booked {over}"


async def test_t57_what_a_machine_says_on_stderr_stays_away_from_our_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """SkyPilot's own connection, with a hostile ssh server behind it: nothing of it may reach a person unescaped."""
    command_runner: Any = pytest.importorskip("sky.utils.command_runner")
    from sandbox.backends.skypilot.sdk import SkyPilot

    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text('#!/bin/bash\nprintf "\\033]0;owned\\007 and a flood" >&2\neval "${@: -1}"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    key = tmp_path / "key"
    key.write_text("")

    class Handle:
        def get_command_runners(self) -> list[Any]:
            return [command_runner.SSHCommandRunner(("127.0.0.1", 9), "nobody", str(key))]

    provisioner = SkyPilot()
    provisioner._handles["c"] = Handle()
    code, data = await provisioner.call("c", "echo hi", 100, 20)
    assert (code, data) == (0, b"hi\n")
    said = capfd.readouterr()
    assert "\033" not in said.err + said.out
