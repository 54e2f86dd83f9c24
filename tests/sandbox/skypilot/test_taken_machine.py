"""A machine that a candidate has taken: its words are not ours, it keeps nothing, and it does not hurry us."""

import time
from dataclasses import replace

import pytest

from sandbox import Ending, Job, Limits, Lost, Refused, Unavailable
from sandbox.backends.skypilot import machine as skypilot_machine
from sandbox.backends.skypilot.machine import NOT_YET, Machine
from sandbox.backends.skypilot.places import Kind
from sandbox.backends.skypilot.provisioner import Ask, Wanted
from sandbox.box.report import Ended, Failed, Measured, Report
from sandbox.link import Deadlines
from tests.sandbox.skypilot.connecting import BUNDLE, JOB, Connect, trial
from tests.sandbox.skypilot.grounds import PaperMachine, report_bytes
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

pytestmark = pytest.mark.touching("skypilot")

SMALL = Job(command=("true",), limits=Limits(wall=5, output_bytes=1000, output_files=2))


def failed(error: str, reason: str) -> bytes:
    return report_bytes(Report(Failed(error=error, reason=reason), {}, b""))


REFUSED = failed("refused", "the image is refused: it is none of ours")


def forged(ending: Ending) -> bytes:
    measured = Measured(build_s=0.0, run_s=0.0, collect_s=0.0, log_bytes=0, bad_reports=0)
    page = Ended(ending=ending, exit_code=None, reason="killed by order", told=False, measured=measured)
    return report_bytes(Report(page, {}, b""))


@pytest.mark.parametrize(
    "words",
    [b"forged", b"x" * 50_000_000, forged(Ending.KILLED), forged(Ending.STOPPED)],
    ids=["no report", "a flood", "killed", "stopped"],
)
async def test_words_that_are_no_report_of_ours(words: bytes, owner: Connect, yard: Yard) -> None:
    """They are called what they are, and the next trial gets another machine. Nobody here gave an order to kill or to
    stop: these are free endings, so the candidate's own word would be a refund.
    """
    yard.make = lambda _: PaperMachine(words)
    backend = await owner(warm=1)
    first, outcome = await trial(backend, SMALL)
    assert (outcome.ending, outcome.told) == (Ending.PROTOCOL, False)
    assert yard.clusters == {}
    assert (await trial(backend, SMALL))[0] != first


class Turned(PaperMachine):
    """A candidate broke out of its first chamber: from then on the machine speaks for it."""

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        answer = await super().call(command, cap, timeout)
        return (0, REFUSED) if self._submitted and "-m sandbox.box" in command else answer


async def test_a_used_machine_can_not_refuse_for_us(owner: Connect, yard: Yard) -> None:
    """Refused means our own policy and ends a campaign. A machine that had a bundle is unavailable, and retired.

    It is asked about another job: of one that it was asked about before, its first answer counts.
    """
    yard.make = lambda _: Turned()
    backend = await owner(warm=1)
    name, _ = await trial(backend)
    assert list(yard.clusters) == [name]
    with pytest.raises(Unavailable, match="none of ours"):
        await backend.open(JOB.model_copy(update={"command": ("false",)}))
    assert yard.clusters == {}


async def test_a_used_machine_keeps_nothing_of_a_trial(owner: Connect, yard: Yard) -> None:
    """Nor does it change its facts: what it said of a job before it had a bundle counts for the next trial of that
    job. Bundle and outcome are gone before the next one comes: the disk fills, and who breaks out reads them.
    """
    machine = Turned()
    yard.make = lambda _: machine
    backend = await owner(warm=1)
    for _ in range(2):
        assert (await trial(backend))[1].facts == {"cpu": "paper"}
        assert "rm -rf" in machine.lines[-1]
        assert "/trials " in machine.lines[-1], "the folder of all trials, and after the last of them"
    assert sum("-m sandbox.box" in line for line in machine.lines) == 1


@pytest.mark.parametrize(
    ("words", "kind", "said"), [(REFUSED, Unavailable, "none of ours"), (failed("lost", "gone"), Lost, "gone")]
)
async def test_what_a_machine_could_not_do(
    words: bytes, kind: type[Exception], said: str, owner: Connect, yard: Yard
) -> None:
    """Raised as what it is, with the cost. A refusal after delivery is the machine's failure, not our policy's."""
    yard.make = lambda _: PaperMachine(words)
    with pytest.raises(kind, match=said) as caught:
        await trial(await owner())
    assert getattr(caught.value, "usd", 0) > 0


async def test_before_any_bundle_a_refusal_is_our_policys(owner: Connect, yard: Yard) -> None:
    class Strict(PaperMachine):
        async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
            return (0, REFUSED) if "-m sandbox.box" in command else await super().call(command, cap, timeout)

    yard.make = lambda _: Strict()
    with pytest.raises(Refused, match="none of ours"):
        await (await owner()).open(JOB)


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
    machine = Machine(provisioner, "bd-x", landed, Kind.NODE, Deadlines())
    with pytest.raises(Unavailable, match="in time"):
        await machine.collect("trial", JOB.limits, time.monotonic() + 0.5)
    assert 1 <= asked <= 6


class Away(PaperMachine):
    """It runs the trial to its end, and cannot be reached for sixty looks: two minutes."""

    looks = 60

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        if "exec tar" in command and self._submitted and self.looks:
            self.looks -= 1
            raise Unavailable("the machine cannot be reached (exit code 255)")
        return await super().call(command, cap, timeout)


@pytest.mark.parametrize(("patience_s", "survives"), [(180.0, True), (0.0, False)])
async def test_T86_a_machine_that_can_not_be_reached_for_a_while(
    owner: Connect, yard: Yard, monkeypatch: pytest.MonkeyPatch, patience_s: float, survives: bool
) -> None:
    """A network that is away for two minutes costs no trial: the machine has kept the outcome."""
    monkeypatch.setattr(skypilot_machine, "TRY_PAUSE_S", 0.0)
    yard.make = lambda _: Away()
    backend = await owner(deadlines=replace(Deadlines(), silence=patience_s))
    if survives:
        assert (await trial(backend))[1].outputs == {"answer": b"42"}
    else:
        with pytest.raises(Unavailable, match="could not be brought back"):
            await trial(backend)


async def test_a_job_that_wants_a_fresh_machine_gets_none_that_served_before(owner: Connect, yard: Yard) -> None:
    """The control job decides who is to blame: on a machine that a candidate took, it would say what pays."""
    backend = await owner(warm=1)
    standing, _ = await trial(backend)
    for _ in range(2):
        control, outcome = await trial(backend, JOB.model_copy(update={"fresh": True}))
        assert control != standing
        assert outcome.usage.usd > 0
        assert list(yard.clusters) == [standing], "it is ended with its job"
    assert (await trial(backend))[0] == standing


@pytest.mark.parametrize("step", ["submit", "call"])
async def test_what_skypilot_refuses_after_delivery_is_not_the_candidates_fault(
    owner: Connect, yard: Yard, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Refused by us would count as the candidate's own mistake: a bundle that cannot be run."""
    provisioner = YardProvisioner(yard)
    chamber = await (await owner(provisioner)).open(JOB)

    async def refuse(*_: object) -> None:
        raise Refused(f"{step}: not supported")

    monkeypatch.setattr(provisioner, step, refuse)
    with pytest.raises(Unavailable, match=r"refused after delivery.*not supported") as caught:
        await chamber.run(BUNDLE)
    assert caught.value.usd > 0
    assert yard.clusters == {}
