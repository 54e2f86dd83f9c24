"""`blastdoor ledger`: list the events, prove the chain, keep its head, and clear out what nothing refers to."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from orchestrator.domain import figures
from orchestrator.ledger import Artifacts, ChainBroken, Collected, Forged, Ledger, read_head, write_head
from orchestrator.loop.proof import prove
from orchestrator.text import printable
from orchestrator.units import format_size
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    given_settings,
    holder_of,
    json_option,
    json_text,
    open_campaign,
    print_json,
    task_argument,
)
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.tail import told_of
from orchestrator.views.exits import Exit
from orchestrator.wiring.ledgers import campaign_lock, open_ledger
from orchestrator.wiring.reading import Reading, campaign_folder
from sandbox.scratch import scratch

_DIGEST = re.compile(r"[0-9a-f]{64}")
YOUNG_S = 3600.0


@click.group("ledger")
def command() -> None:
    """List, verify and clean up the record of a campaign."""


@command.command("list", cls=CampaignCommand)
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="N", help="Show only records after this one.")
@json_option
@task_argument
def list_events(task: Path, after: int, as_json: bool) -> None:
    """List every event, one line each; --json prints the records themselves, one per line."""
    with _opened(task) as ledger:
        screen = open_screen()
        for record in ledger.read(after=after, limit=max(0, ledger.head().seq - after)):
            if as_json:
                click.echo(json_text(vars(record), indent=None))
            elif told := told_of(record):
                screen.line(Text(told.text, told.style))


@command.command("verify", cls=CampaignCommand)
@click.option(
    "--head", "kept", type=click.Path(path_type=Path), help="File with a head kept earlier; it must be on the chain."
)
@json_option
@task_argument
def verify(task: Path, kept: Path | None, as_json: bool) -> int:
    """Prove that no record was changed, moved or removed, and that all rows are what they add up to.

    Only a head kept elsewhere shows that the end was not cut off. Exit code 1 when anything was changed.
    """
    with _opened(task) as ledger:
        head = read_head(kept) if kept else None
        try:
            proof = prove(ledger, head)
        except (ChainBroken, Forged) as broken:
            if as_json:
                seq, why = (broken.seq, broken.why) if isinstance(broken, ChainBroken) else (None, str(broken))
                print_json({"good": False, "record": seq, "why": why})
            else:
                click.echo(printable(str(broken)))
            return Exit.NOT_GOOD
    chain, rows = proof.chain, proof.rows
    if as_json:
        told = {"records": chain.records, "rows": rows, "hash": chain.head.hash, "kept_head": bool(head)}
        print_json({"good": True, **told})
    else:
        proven = (
            f", and record {head.seq} is the one that was kept" if head else "; without --head its end is not proven"
        )
        seen = f"{figures.plural(chain.records, 'record')} as they were written, {figures.plural(rows, 'row')} as they"
        click.echo(f"{seen} add up to{proven}")
    return Exit.OK


@command.command("head", cls=CampaignCommand)
@click.option("--out", type=click.Path(path_type=Path), help="File to write it to, to be signed or kept elsewhere.")
@json_option
@task_argument
def head_of(task: Path, out: Path | None, as_json: bool) -> None:
    """Print the head of the chain, which stands for every record so far."""
    with _opened(task) as ledger:
        head = ledger.head()
    if out:
        write_head(out, head)
    if as_json:
        print_json(vars(head))
    else:
        click.echo(f"{head.seq} {head.hash}" + (f" written to {out}" if out else ""))


@command.command("gc", cls=CampaignCommand)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
@task_argument
def collect(task: Path, dry_run: bool, as_json: bool) -> None:
    """Remove stored bytes that no event refers to. Refused while a process works on the campaign."""
    with open_campaign(task) as reading:
        if holder := holder_of(reading):
            raise click.UsageError(f"{holder} works on this campaign; stop it or wait")
        before = reading.artifacts.usage()
        with campaign_lock(reading.folder, given_settings()):
            removed = _collected(reading, dry_run)
    if as_json:
        print_json({"removed": removed.count, "bytes": removed.bytes, "of": before.count, "dry_run": dry_run})
    else:
        would = "would be removed" if dry_run else "removed"
        click.echo(
            f"{removed.count:,} of {figures.plural(before.count, 'artifact')} {would}, {format_size(removed.bytes)}"
        )


@contextmanager
def _opened(task: Path) -> Iterator[Ledger]:
    """The ledger alone, whatever its rows say."""
    if not task.is_dir():
        raise click.UsageError(f"{task} is not a folder; name the folder of a task")
    with open_ledger(campaign_folder(task), given_settings(), read_only=True) as ledger:
        yield ledger


def _collected(reading: Reading, dry_run: bool) -> Collected:
    kept = referenced(reading.ledger)
    if not dry_run:
        return reading.artifacts.gc(kept, YOUNG_S, time.time())
    # Rehearsed on hard links: what is removed there stays here, and the rule is the same one.
    with scratch("rehearsal", reading.folder) as folder:
        copy = folder / "artifacts"
        shutil.copytree(reading.folder / "artifacts", copy, copy_function=os.link)
        return Artifacts(copy).gc(kept, YOUNG_S, time.time())


def referenced(ledger: Ledger) -> set[str]:
    """Every digest in any event, in whatever field: one kept for nothing is cheap, one lost is not."""
    found: set[str] = set()
    for record in ledger.read():
        found.update(text for text in _texts(json.loads(record.body)) if _DIGEST.fullmatch(text))
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
