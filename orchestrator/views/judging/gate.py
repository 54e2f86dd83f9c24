"""`blastdoor gate`: one untrusted change in, a decision and an exit code out, for a stage of a build."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from orchestrator.change.policy import DEFAULT_CAPS
from orchestrator.domain.audit import AuditRecord
from orchestrator.domain.verdict import Aim
from orchestrator.examine.gate import (
    CannotJudge,
    Decision,
    Gated,
    changed_paths,
    failures_are_no_verdict,
    judge_change,
    refused,
)
from orchestrator.examine.gate_steps import StepState
from orchestrator.examine.witness import Witness, witness
from orchestrator.git import GitError
from orchestrator.ledger import Head
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Snapshot, Task, TaskError, load_task
from orchestrator.task.audits import write_whole
from orchestrator.task.snapshot import snapshot
from orchestrator.text import printable, shown
from orchestrator.units import format_size, stamp, utc_now
from orchestrator.views.campaign.opening import json_option, json_text, print_json, task_argument
from orchestrator.views.campaign.screen import Screen, open_screen
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, say, site_options
from orchestrator.views.judging.audit_record import audit_of, refuse_other_terms, signed_part
from orchestrator.views.judging.evidence import evidence, evidence_text, seal
from orchestrator.views.judging.junit import junit
from orchestrator.views.judging.markdown import markdown
from orchestrator.views.judging.report import Report
from orchestrator.views.judging.sarif import sarif
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.resuming import CannotOpen, site_of_campaign
from orchestrator.wiring.site import Site
from orchestrator.wiring.sites import open_site
from sandbox.scratch import scratch

EXITS = {Decision.ACCEPTED: Exit.OK, Decision.REJECTED: Exit.NOT_GOOD, Decision.UNJUDGED: Exit.BAD_INPUT}
_MARKS = {
    StepState.PASSED: ("✓", "ok", "green"),
    StepState.FAILED: ("✗", "XX", "bold red"),
    StepState.SKIPPED: ("-", "--", "dim"),
    StepState.BROKEN: ("!", "!!", "yellow"),
}
_STYLES = {Decision.ACCEPTED: "bold green", Decision.REJECTED: "bold red", Decision.UNJUDGED: "bold yellow"}
# Of a change that is too long, the digest names it up to here.
LONGEST = 1 << 30
_file = click.Path(path_type=Path, dir_okay=False)
FORMS: dict[str, Callable[[Report], str]] = {
    "junit": junit,
    "markdown": markdown,
    "sarif": lambda report: json_text(sarif(report)) + "\n",
    "evidence": evidence_text,
}


@dataclass(frozen=True)
class Change:
    """The first bytes of a change, and the digest of all of it: one that is too long is refused, but still named."""

    text: bytes
    sha256: str
    size: int


@dataclass
class _Seen:
    """What is known so far; the reports are made of it, however far it got."""

    task: Task | None = None
    taken: Snapshot | None = None
    witness: Witness | None = None
    head: Head | None = None
    audit: tuple[AuditRecord, str] | None = None
    started_at: str = field(default_factory=lambda: stamp(utc_now()))


@click.command("gate")
@click.option("--diff", "source", required=True, metavar="FILE", help="File with the change to judge; - is stdin.")
@click.option("--must-improve", is_flag=True, help="Reject a change that is merely no worse than the baseline.")
@click.option("--junit", type=_file, help="Write a JUnit report.")
@click.option("--markdown", type=_file, help="Write a summary in Markdown.")
@click.option("--sarif", type=_file, help="Write a SARIF 2.1.0 report.")
@click.option("--evidence", type=_file, help="Write the evidence that a reviewer signs, as JSON.")
@click.option("--audit", "audit_file", type=_file, help="Put the audit.json of `audit` into the evidence.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the ledger in this new folder.")
@site_options()
@json_option
@task_argument
@click.pass_obj
def command(
    settings: Settings,
    /,
    task: Path,
    source: str,
    must_improve: bool,
    audit_file: Path | None,
    keep: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Judge one untrusted change to TASK: a diff, blocks or whole files.

    The change is accepted when it edits only what the task allows, runs, is a valid solution, passes every guard and is
    no worse than the baseline, also in a second run, and on the held-out split if the task has one. With --must-improve
    it is accepted only if a campaign would keep it.

    Exit code 0 when it is accepted, 1 when it is rejected, 2 when it could not be judged, for whatever reason.
    """
    if keep and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise click.UsageError(f"{keep} exists and is not an empty folder; name a new one")
    change = read_change(source)
    place, files = flags_of(given), {name: given[name] for name in FORMS}

    def open_chosen() -> AbstractAsyncContextManager[Site]:
        chosen = site_of_campaign(task, How.START, place, settings)
        return open_site(settings, chosen, (lambda _: None) if as_json else say)

    audited = audit_of(audit_file, snapshot(load_task(task), task)) if audit_file else None
    work = gate(task, change, settings, open_chosen, place=place, must_improve=must_improve, keep=keep, audit=audited)
    report = run_in_loop(work)
    for name, make in FORMS.items():
        if path := files[name]:
            write_whole(path, make(report))
    if as_json:
        print_json(evidence(report))
    else:
        _show(open_screen(), report, files["evidence"])
    return EXITS[report.gated.decision]


async def gate(
    task: Path,
    change: Change,
    settings: Settings,
    open_site: Callable[[], AbstractAsyncContextManager[Site]],
    *,
    place: Flags | None = None,
    must_improve: bool = False,
    keep: Path | None = None,
    audit: tuple[AuditRecord, str] | None = None,
) -> Report:
    """The whole stage. A change that may not even be applied is rejected without an engine. `audit` is what became of
    adversaries before this judge, with the digest of the file that says so.
    """
    seen = _Seen(audit=audit)
    try:
        gated = await _gated(task, change, settings, open_site, place or Flags(), must_improve, keep, seen)
    except (CannotJudge, TaskError, CannotOpen, GitError) as error:
        gated = Gated(Decision.UNJUDGED, str(error), ())
    return _report(task, change, gated, seen, must_improve)


def _report(folder: Path, change: Change, gated: Gated, seen: _Seen, must_improve: bool) -> Report:
    task = seen.task
    return Report(
        task=task.name if task else folder.resolve().name,
        gated=gated,
        change_sha256=change.sha256,
        change_bytes=change.size,
        must_improve=must_improve,
        version=version("blastdoor"),
        started_at=seen.started_at,
        ended_at=stamp(utc_now()),
        changed=changed_paths(change.text, task.policy()) if task else (),
        folder=_workspace(task, folder) if task else "",
        digests=seen.taken.digests if seen.taken else {},
        metrics=tuple(spec.name for spec in task.metrics) if task else (),
        tier=task.judge.mode if task else None,
        witness=seen.witness,
        head=seen.head,
        audit=signed_part(*seen.audit) if seen.audit else None,
    )


async def _gated(
    folder: Path,
    change: Change,
    settings: Settings,
    open_site: Callable[[], AbstractAsyncContextManager[Site]],
    place: Flags,
    must_improve: bool,
    keep: Path | None,
    seen: _Seen,
) -> Gated:
    seen.task = load_task(folder)
    seen.taken = snapshot(seen.task, folder)
    if rejection := refused(seen.taken.tree, change.text, seen.task.policy()):
        return rejection
    # One change beside the baseline, and no tuning: the diff is judged as it is.
    # Nobody is there to be asked.
    flags = place.but(proposer="inject", width=1, attempts=1, tunes=0, ask=False, review=False)
    aim = Aim.BETTER if must_improve else Aim.NOT_WORSE
    # Kept in a file, whatever the user's setting: what the gate leaves behind stands by itself.
    settings = settings.model_copy(update={"ledger": None})
    with failures_are_no_verdict(), kept_folder(keep) as kept:
        async with (
            open_site() as site,
            open_campaign(folder, site, flags=flags, settings=settings, folder=kept, aim=aim) as opened,
        ):
            try:
                if seen.audit:
                    refuse_other_terms(seen.audit[0], opened.bench)
                # Before the change is let in, so that nothing it does can touch the inventory.
                seen.witness = await witness(opened.bench)
                text = change.text.decode()
                return await judge_change(opened.campaign, opened.bench, text)
            finally:
                seen.head = opened.bench.book.ledger.head()


@contextmanager
def kept_folder(keep: Path | None) -> Iterator[Path]:
    if keep:
        yield keep
        return
    with scratch("gate") as folder:
        yield folder


def read_change(source: str) -> Change:
    """However long it is, no more is held than a change may have. Some sources have no end."""
    cap = DEFAULT_CAPS.text_bytes
    seal, kept, size = hashlib.sha256(), b"", 0
    try:
        with sys.stdin.buffer if source == "-" else Path(source).open("rb") as stream:
            while piece := stream.read(1 << 20):
                seal.update(piece)
                kept += piece[: cap + 1 - len(kept)]
                size += len(piece)
                if size > LONGEST:
                    raise click.UsageError(
                        f"{shown(source)} has more than {format_size(LONGEST)}; no change is that long"
                    )
    except OSError as error:
        raise click.UsageError(f"{shown(source)} cannot be read ({error.strerror})") from None
    return Change(kept, seal.hexdigest(), size)


def _workspace(task: Task, folder: Path) -> str:
    """The workspace as seen from here, where a build stage stands at the root of its repository."""
    place = task.workspace
    path = folder / (place if isinstance(place, str) else Path(place.repository, place.folder))
    whole = Path(os.path.normpath(path.absolute()))
    here = Path.cwd()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.name


def _show(screen: Screen, report: Report, evidence_file: Path | None) -> None:
    width = max((len(step.name) for step in report.gated.steps), default=0)
    for step in report.gated.steps:
        sign, plain, style = _MARKS[step.state]
        time = f"{step.seconds:6.2f} s" if step.seconds else " " * 8
        mark = sign if screen.unicode else plain
        screen.line(
            Text.assemble((f"{mark} ", style), f"{printable(step.name):<{width}}  {time}  {printable(step.why)}")
        )
    for caveat in report.witness.caveats if report.witness else ():
        screen.line(Text(f"note: {printable(caveat)}", "yellow"))
    if report.audit:
        screen.line(Text(f"audit: the judge {report.audit['score']}", "" if report.audit["good"] else "yellow"))
    screen.line(Text(printable(report.line), _STYLES[report.gated.decision]))
    if evidence_file:
        screen.line(f"evidence: {evidence_file} (sha256 {seal(evidence_text(report))})")
