"""Is any of the gold within the candidate's reach? Files of the same content, and a canary that was put beside it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.examine.checkup import Checkup
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.loop.workbench import Parts
from orchestrator.text import short

_SMALLEST_GOLD = 16
_INPUT_BYTES = 1 << 30


def check_gold(parts: Parts, found: Checkup, findings: Findings) -> None:
    """What a candidate could find of the gold: files of the same content, and the canary."""
    copies = copies_of_gold(parts.jobs.snapshot.gold, _within_reach(parts))
    for name, place in copies:
        text = f"{short(name, 80)} is gold, and the same file lies within the candidate's reach: {short(place, 80)}"
        findings.add(Section.GOLD, Sign.FAIL, text, "take it out there: a program that reads it has the answers")
    if not parts.jobs.snapshot.gold:
        text = f"there is no gold: {parts.task.judge.folder}/gold does not exist and judge.gold names nothing"
        findings.add(Section.GOLD, Sign.NOTE, text, "right where the judge needs no answers; else name it")
    elif not copies:
        findings.add(Section.GOLD, Sign.OK, "no file of it lies in the workspace or among the inputs")
    if not parts.tier.terms.hides_gold:
        text = f"not searched for: in tier {parts.tier}, gold lies in the candidate's chamber"
        findings.add(Section.GOLD, Sign.WARN, text)
    elif found.seen.found:
        where = ", ".join(found.seen.found)
        findings.add(Section.GOLD, Sign.FAIL, f"a canary put beside it was found in the candidate's chamber: {where}")
    elif not found.seen.searched:
        text = "the candidate's chamber could not be searched for a canary"
        findings.add(Section.GOLD, Sign.WARN, text, "its image has no find and grep, or the search took too long")
    else:
        text = "a canary put beside it is not in the candidate's files, image, environment or command lines"
        findings.add(Section.GOLD, Sign.OK, text)


def _within_reach(parts: Parts) -> dict[str, str]:
    """Digest → place of everything that a candidate reads."""
    snapshot = parts.jobs.snapshot
    found = {hashlib.sha256(file.data).hexdigest(): f"workspace/{name}" for name, file in snapshot.tree.items()}
    every = (snapshot.inputs, snapshot.tune_inputs, snapshot.heldout_inputs)
    for name, path in (item for inputs in every for item in inputs.items()):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found |= {digest: f"/inputs/{name}" for file in files if (digest := _digest_of(file))}
    return found


def _digest_of(path: Path) -> str | None:
    if not path.is_file() or path.stat().st_size > _INPUT_BYTES:
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def copies_of_gold(gold: Tree, within_reach: Mapping[str, str]) -> list[tuple[str, str]]:
    """Gold files whose very bytes are within reach; tiny ones are alike by chance."""
    found = []
    for name, file in gold.items():
        place = within_reach.get(hashlib.sha256(file.data).hexdigest())
        if place and len(file.data) >= _SMALLEST_GOLD:
            found.append((name, place))
    return found
