"""What a campaign would do and may cost, before the first dollar."""

from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.verdict import Mode
from orchestrator.door import longest
from orchestrator.loop.width import Shape
from orchestrator.settings import Settings
from orchestrator.task import load_task, snapshot
from orchestrator.wiring.engine import local_ceiling, spare_of
from orchestrator.wiring.opening import How, shape_of
from orchestrator.wiring.options import Flags, Options, resolve
from orchestrator.wiring.parts import make_proposer
from orchestrator.wiring.reading import campaign_folder, read_campaign
from sandbox import DockerConfig


@dataclass(frozen=True)
class Plan:
    """`attempt_s` is what one attempt reserves; `measured_s` what one took on average so far, if any was run."""

    options: Options
    shape: Shape
    attempt_s: float
    attempt_usd: float
    attempts: int | None
    usd: float
    wall_s: float
    measured_s: float | None


def plan_campaign(folder: Path, how: How, flags: Flags, settings: Settings, config: DockerConfig) -> Plan:
    """Raises TaskError for a task that would not run. Starts nothing, writes nothing."""
    task = load_task(folder)
    snapshot(task, folder)
    options = resolve(flags, task, settings)
    form = shape_of(task, options, make_proposer(options["proposer"], task), local_ceiling(task.limits))
    # As an attempt reserves it: the trial and two judgings, the same for its replay, every guard, the held-out split.
    judging = (task.judge.limits, False)
    trial = [(task.target(Mode.SUBMIT).limits, bool(task.trial.build)), judging, judging]
    jobs = trial * (2 if task.certify.certify().replays else 1) + [(guard.limits, False) for guard in task.guards]
    if task.heldout:
        jobs += [(task.target(Mode.HELDOUT).limits, bool(task.trial.build)), judging]
    spare = spare_of(config)
    seconds = [longest(limits, builds=builds, spare_s=spare) for limits, builds in jobs]
    usd = sum(config.rates.per_second(limits) * time for (limits, _), time in zip(jobs, seconds, strict=True))
    attempts = options["attempts"]
    return Plan(
        options=options,
        shape=form,
        attempt_s=sum(seconds),
        attempt_usd=usd,
        attempts=attempts,
        usd=usd * (attempts or 0),
        wall_s=sum(seconds) * (attempts or 0) / form.width,
        measured_s=_measured(folder) if how is not How.START else None,
    )


def _measured(folder: Path) -> float | None:
    if not (campaign_folder(folder) / "ledger.sqlite3").exists():
        return None
    with read_campaign(folder) as reading:
        spent = [node.spent.milliseconds for node in reading.state.nodes.values() if node.verdict]
    return sum(spent) / len(spent) / 1000 if spent else None
