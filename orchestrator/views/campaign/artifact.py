"""A winner as a folder that stands by itself: the candidate, what it changed, what it scored on what, and what it left.

It appears whole or not at all. Its head ties it to the ledger that it came from.
"""

import hashlib
from pathlib import Path
from typing import Any

import click

from orchestrator.change import File, Tree
from orchestrator.change.canonical import difference
from orchestrator.domain.headline import headline
from orchestrator.domain.node import path_to, run_of
from orchestrator.domain.records import Node, PoolMember
from orchestrator.domain.verdict import Mode
from orchestrator.ledger import write_head
from orchestrator.views.campaign.diff import tree_of
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.campaign.placing import NotPlaced, place
from orchestrator.wiring.reading import Reading
from sandbox.scratch import scratch

FORMAT = "blastdoor artifact"
VERSION = 1


def write_artifact(reading: Reading, node: Node, target: Path) -> list[str]:
    """The files that it has. Raises click's UsageError for a folder that is there, or a node without a verdict."""
    if target.exists() or target.is_symlink():
        raise click.UsageError(f"{target} exists; name a new folder")
    if node.verdict is None or node.commit is None:
        raise click.UsageError(f"{node.id} has no verdict, so there is nothing to hand over")
    files = _files(reading, node)
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch("artifact", target.parent) as outer:
        beside = outer / "made"
        beside.mkdir()
        try:
            place(beside, Tree(), files)
        except NotPlaced as error:
            raise click.UsageError(str(error)) from None
        write_head(beside / "head.json", reading.head)
        beside.rename(target)
    return [*files, "head.json"]


def _files(reading: Reading, node: Node) -> Tree:
    state = reading.state
    root = state.nodes[state.runs[str(run_of(node.id))].root]
    candidate = tree_of(reading, node)
    trial = state.trials.get(node.submitted or "")
    stored = trial if trial and not trial.let_go else None
    outputs = reading.artifacts.get_files(stored.outputs) if stored and stored.outputs else {}
    found = {f"candidate/{path}": file for path, file in candidate.items()}
    found |= {f"outputs/{name}": File(data) for name, data in outputs.items()}
    traces = reading.artifacts.get_files(stored.traces) if stored and stored.traces else {}
    found |= {f"judge/{name}": File(data) for name, data in traces.items()}
    for member in state.runs[str(run_of(node.id))].pool:
        found |= _member(reading, member)
    diff = difference(tree_of(reading, root), candidate)
    found["change.diff"] = File(diff.encode("utf-8", "surrogateescape"))
    found["params.json"] = _json(node.params)
    found["verdict.json"] = _json(node.verdict.model_dump(mode="json") if node.verdict else None)
    found["fingerprint.json"] = _json(trial.fingerprint if trial else {})
    found["artifact.json"] = _json(_manifest(reading, node, found))
    return Tree(found)


def _member(reading: Reading, member: PoolMember) -> dict[str, File]:
    """What a combination needs to be made again: a member, and what it left on the development data."""
    place = f"members/{member.node}"
    tree = tree_of(reading, reading.state.nodes[member.node])
    left = reading.artifacts.get_files(member.outputs[Mode.SUBMIT])
    found = {f"{place}/candidate/{path}": file for path, file in tree.items()}
    return found | {f"{place}/outputs/{name}": File(data) for name, data in left.items()}


def _manifest(reading: Reading, node: Node, files: dict[str, File]) -> dict[str, Any]:
    state = reading.state
    return {
        "format": FORMAT,
        "version": VERSION,
        "task": state.campaign.name,
        "campaign": state.campaign.id,
        "blastdoor": state.campaign.version,
        "node": node.id,
        "commit": node.commit,
        "kept": node.kept,
        "outputs_let_go": bool(node.submitted and state.trials[node.submitted].let_go),
        "metrics": dict(found.metrics) if (found := headline(state, node)) else {},
        "repeats": found.runs if found else 0,
        "members": [member.node for member in state.runs[str(run_of(node.id))].pool],
        "path": {name: state.nodes[name].description for name in path_to(node.id)},
        "sha256": {name: hashlib.sha256(file.data).hexdigest() for name, file in sorted(files.items())},
    }


def _json(value: Any) -> File:
    return File((json_text(value) + "\n").encode())
