"""Audits of the collection, on a backend that pretends: the programs really run, each in a folder of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.examine.audit import AuditReport, audit
from orchestrator.examine.findings import Findings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.parts import make_parts
from tests.leaky import imported
from tests.leaky.calls import CALLS
from tests.leaky.outputs import OUTPUTS
from tests.orchestrator.views.judging.stage import Stage

Write = Callable[..., Path]
# Name, adversary that should find it, and what writes the task.
PAIRS: list[tuple[str, str, Write]] = [
    (imported.NAME, "says yes", imported.write),
    *((it.name, it.by, it.write) for it in [*CALLS, *OUTPUTS]),
]


async def audited(
    folder: Path,
    only: Sequence[str] = (),
    *,
    runs: int = 2,
    findings: Findings | None = None,
    stage: Stage | None = None,
    accept: Sequence[str] = (),
) -> AuditReport:
    task = load_task(folder)
    async with (stage or Stage()).site() as site:
        parts = await make_parts(task, snapshot(task, folder), site)
        return await audit(parts, findings or Findings(), runs=runs, only=only, accept=accept, width=4)
