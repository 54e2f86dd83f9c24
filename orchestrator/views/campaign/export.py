"""`blastdoor export`: the campaign in files that others can read."""

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from orchestrator.domain import figures
from orchestrator.ledger import to_csv, to_jsonl
from orchestrator.views.campaign.artifact import write_artifact
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    json_option,
    metrics_of,
    offered_node,
    open_campaign,
    print_json,
    task_argument,
)
from orchestrator.views.campaign.table import write_nodes
from orchestrator.wiring.reading import Reading

STDOUT = Path("-")
_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command("export", cls=CampaignCommand)
@click.option("--jsonl", type=_FILE, help="File for all records, one per line, with their proof; - is stdout.")
@click.option("--csv", "nodes", type=_FILE, help="File for a table of the nodes with their metrics; - is stdout.")
@click.option("--records-csv", "records", type=_FILE, help="File for a table of all records; - is stdout.")
@click.option(
    "--artifact", type=(click.Path(path_type=Path), str), metavar="DIR NODE", help="Write a node to a new folder."
)
@click.option("--minimal", is_flag=True, help="With --artifact: write what minimising left of the node.")
@json_option
@task_argument
def command(
    task: Path,
    jsonl: Path | None,
    nodes: Path | None,
    records: Path | None,
    artifact: tuple[Path, str] | None,
    minimal: bool,
    as_json: bool,
) -> None:
    """Write a campaign to files: its ledger, a table of its nodes, or one node as a self-contained folder."""
    if not (jsonl or nodes or records or artifact):
        raise click.UsageError("nothing to export; give --jsonl, --csv, --records-csv or --artifact")
    if [jsonl, nodes, records].count(STDOUT) + as_json > 1:
        raise click.UsageError("only one thing can go to stdout; name files for the others")
    done: dict[str, int] = {}
    with open_campaign(task) as reading:
        wanted: list[tuple[Path | None, Callable[[TextIO], int]]] = [
            (jsonl, lambda out: to_jsonl(reading.ledger, out).seq),
            (nodes, lambda out: _nodes(reading, out)),
            (records, lambda out: to_csv(reading.ledger, out)),
        ]
        for path, write in wanted:
            if path:
                with writing(path) as out:
                    done[str(path)] = write(out)
        if artifact:
            target, name = artifact
            chosen = offered_node(reading.state, name, task, minimal=minimal)
            done[str(target)] = len(write_artifact(reading, chosen, target))
    if as_json:
        print_json(done)
    elif STDOUT not in (jsonl, nodes, records):
        for name, count in done.items():
            click.echo(f"{name}: {figures.plural(count, 'file' if artifact and name == str(artifact[0]) else 'row')}")


def _nodes(reading: Reading, out: TextIO) -> int:
    metrics = {run.number: metrics_of(reading, run) for run in reading.state.runs.values()}
    return write_nodes(reading.state, metrics, out)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A file that is there whole or not at all, or standard output."""
    if path == STDOUT:
        yield sys.stdout
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("x", encoding="utf-8", newline="") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        beside.replace(path)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be written ({error.strerror})") from None
    finally:
        beside.unlink(missing_ok=True)
