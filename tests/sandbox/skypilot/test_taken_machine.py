"""A machine that a candidate has taken: its words are not ours, it keeps nothing, and it does not hurry us."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import Bundle, Ending, Job, Limits, Refused, Unavailable
from sandbox.backends.skypilot import machine as skypilot_machine
from sandbox.backends.skypilot.machine import NOT_YET, Machine
from sandbox.backends.skypilot.places import Kind
from sandbox.backends.skypilot.provisioner import Ask, Landed, Wanted
from sandbox.box.report import Ended, Failed, Measured, Report
from sandbox.link import Deadlines
from tests.sandbox.skypilot.connecting import Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine, report_bytes
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

pytestmark = pytest.mark.touching("skypilot")

JOB = Job(command=("true",), limits=Limits(wall=10, grace=1))
REFUSED = report_bytes(Report(Failed(error="refused", reason="the image is refused: it is none of ours"), {}, b""))


def forged(ending: Ending) -> bytes:
    measured = Measured(build_s=0.0, run_s=0.0, collect_s=0.0, log_bytes=0, bad_reports=0)
    page = Ended(ending=ending, exit_code=None, reason="killed by order", told=False, measured=measured)
    return report_bytes(Report(page, {}, b""))


@pytest.mark.parametrize("ending", [Ending.KILLED, Ending.STOPPED])
async def test_a_machine_can_not_say_that_we_ended_it(tmp_path: Path, ending: Ending) -> None:
    """Nobody here gave such an order. `killed` is a free ending, so the candidate's own word would be a refund."""
    backend = await connected(YardProvisioner(Yard(lambda _: PaperMachine(forged(ending)))), settings(tmp_path))
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(Bundle({"a": b"b"}))
    assert outcome.ending is Ending.PROTOCOL
    await backend.close()


class Turned(PaperMachine):
    """A candidate broke out of its first chamber: from then on the machine speaks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        self.lines.append(command)
        if self._submitted and "-m sandbox.box" in command:
            return 0, REFUSED
        return await super().call(command, cap, timeout)


async def test_a_used_machine_can_not_refuse_for_us(tmp_path: Path) -> None:
    """Refused means our own policy and ends a campaign. A machine that had a bundle is unavailable, and retired.

    It is asked about another job: of one that it was asked about before, its first answer counts.
    """
    yard = Yard(lambda _: Turned())
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = Purse()
    async with await backend.open(JOB) as chamber:
        await chamber.run(Bundle({"a": b"b"}))
    assert list(yard.clusters) == [chamber.name]
    with pytest.raises(Unavailable, match="none of ours"):
        await backend.open(JOB.model_copy(update={"command": ("false",)}))
    assert yard.clusters == {}
    await backend.close()


async def test_a_used_machine_can_not_change_its_facts(tmp_path: Path) -> None:
    """What it said of a job before it had a bundle is what counts for the next trial of that job; it is not asked."""
    machine = Turned()
    backend = await connected(YardProvisioner(Yard(lambda _: machine)), settings(tmp_path, warm=1))
    backend.purse = Purse()
    for _ in range(2):
        async with await backend.open(JOB) as chamber:
            assert chamber.facts == {"cpu": "paper"}
            await chamber.run(Bundle({"a": b"b"}))
    assert sum("-m sandbox.box" in line for line in machine.lines) == 1
    await backend.close()


async def test_a_trial_can_not_refuse_for_us(tmp_path: Path) -> None:
    """The same word in the report of a trial is a failure of the machine; before any bundle it is our policy's."""
    backend = await connected(YardProvisioner(Yard(lambda _: PaperMachine(REFUSED))), settings(tmp_path))
    with pytest.raises(Unavailable, match="none of ours"):
        async with await backend.open(JOB) as chamber:
            await chamber.run(Bundle({"a": b"b"}))
    await backend.close()

    class Strict(PaperMachine):
        async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
            return (0, REFUSED) if "-m sandbox.box" in command else await super().call(command, cap, timeout)

    fresh = await connected(YardProvisioner(Yard(lambda _: Strict())), settings(tmp_path))
    with pytest.raises(Refused, match="none of ours"):
        await fresh.open(JOB)
    await fresh.close()


async def test_a_used_machine_keeps_nothing_of_a_trial(tmp_path: Path) -> None:
    """Bundle and outcome are gone before the next trial comes: the disk fills, and who breaks out reads them."""
    machine = Turned()
    backend = await connected(YardProvisioner(Yard(lambda _: machine)), settings(tmp_path, warm=1))
    backend.purse = Purse()
    async with await backend.open(JOB) as chamber:
        await chamber.run(Bundle({"a": b"b"}))
    assert "rm -rf" in machine.lines[-1]
    assert "/trials " in machine.lines[-1], "the folder of all trials, and after the last of them"
    await backend.close()


async def test_a_machine_that_does_not_wait_does_not_hurry_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to wait for an outcome, it says at once that there is none: it is asked again after a pause."""
    asked = 0

    class Hasty(PaperMachine):
        async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
            nonlocal asked
            asked += "exec tar" in command
            return NOT_YET, b""

    monkeypatch.setattr(skypilot_machine, "TRY_PAUSE_S", 0.1)
    provisioner = YardProvisioner(Yard(lambda _: Hasty()))
    landed = await provisioner.launch("bd-x", "slurm/yard", Wanted(Ask(1, 1), 60, 0, None), 10)
    assert isinstance(landed, Landed)
    machine = Machine(provisioner, "bd-x", landed, Kind.NODE, Deadlines())
    with pytest.raises(Unavailable, match="in time"):
        await machine.collect("trial", JOB.limits, time.monotonic() + 0.5)
    assert 1 <= asked <= 6


class Away(PaperMachine):
    """It runs the trial to its end, and cannot be reached for so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        if "exec tar" in command and self._submitted and self._looks:
            self._looks -= 1
            raise Unavailable("the machine cannot be reached (exit code 255)")
        return await super().call(command, cap, timeout)


@pytest.mark.parametrize(("patience_s", "survives"), [(180.0, True), (0.0, False)])
async def test_T86_a_machine_that_can_not_be_reached_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: float, survives: bool
) -> None:
    """A network that is away for two minutes (sixty looks) costs no trial: the machine has kept the outcome."""
    monkeypatch.setattr(skypilot_machine, "TRY_PAUSE_S", 0.0)
    config = settings(tmp_path)
    config = config.model_copy(update={"deadlines": replace(config.deadlines, silence=patience_s)})
    backend = await connected(YardProvisioner(Yard(lambda _: Away(60))), config)
    try:
        async with await backend.open(JOB) as chamber:
            if survives:
                assert (await chamber.run(Bundle({}))).outputs == {"answer": b"42"}
            else:
                with pytest.raises(Unavailable, match="could not be brought back"):
                    await chamber.run(Bundle({}))
    finally:
        await backend.close()


async def test_a_job_that_wants_a_fresh_machine_gets_none_that_served_before(tmp_path: Path) -> None:
    """The control job decides who is to blame: on a machine that a candidate took, it would say what pays."""
    yard = Yard(lambda _: PaperMachine())
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = Purse()
    async with await backend.open(JOB) as chamber:
        await chamber.run(Bundle({"a": b"b"}))
    standing = chamber.name
    for _ in range(2):
        async with await backend.open(JOB.model_copy(update={"fresh": True})) as control:
            assert control.name in set(yard.clusters) - {standing}
            assert (await control.run(Bundle({}))).usage.usd > 0
        assert list(yard.clusters) == [standing], "it is ended with its job"
    async with await backend.open(JOB) as chamber:
        assert chamber.name == standing
    await backend.close()


@pytest.mark.parametrize("step", ["submit", "call"])
async def test_what_skypilot_refuses_after_delivery_is_not_the_candidates_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Refused by us would count as the candidate's own mistake: a bundle that cannot be run."""
    yard = Yard(lambda _: PaperMachine())
    provisioner = YardProvisioner(yard)
    backend = await connected(provisioner, settings(tmp_path))

    async def refuse(*_: object) -> None:
        raise Refused(f"{step}: not supported")

    chamber = await backend.open(JOB)
    monkeypatch.setattr(provisioner, step, refuse)
    with pytest.raises(Unavailable, match=r"refused after delivery.*not supported") as caught:
        await chamber.run(Bundle({"a": b"b"}))
    assert caught.value.usd > 0
    assert yard.clusters == {}
    await backend.close()


async def test_an_end_that_skypilot_refuses_is_not_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial's outcome stands; the machine is charged until its own end, and tried again."""
    yard = Yard(lambda _: PaperMachine())
    provisioner = YardProvisioner(yard)
    backend = await connected(provisioner, settings(tmp_path))

    async def refuse(name: str) -> None:
        raise Refused("down: not supported")

    async with await backend.open(JOB) as chamber:
        with monkeypatch.context() as patched:
            patched.setattr(provisioner, "down", refuse)
            outcome = await chamber.run(Bundle({"a": b"b"}))
    assert outcome.ending is Ending.COMPLETED
    assert outcome.usage.usd > 600
    await backend.close()
    assert yard.clusters == {}
