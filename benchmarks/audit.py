"""How many of the known holes `audit` finds, and how many sound judges it blames.

Each judge of tests/leaky has one hole, and a twin without it. A hole that the adversary made for it does not find is
looked for by all; a twin faces all. Programs run as processes of this machine, not in containers: what is measured is
the adversaries and the rule by which they gain, and both are the same on an engine. A run that was broken off goes on
where it was, as long as the code is the same.
"""

import hashlib
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.figure import Figure
from orchestrator.examine.findings import Findings, Sign
from tests.leaky.auditing import PAIRS, Write, audited

_ROOT = Path(__file__).parents[1]
_KEPT = _ROOT / "build" / "audit-figures.jsonl"
_CODE = ("orchestrator/examine", "orchestrator/judge", "orchestrator/importing", "tests/leaky")


@dataclass(frozen=True)
class Pair:
    """What became of one judge: whether its hole was found, and what its twin was blamed for."""

    name: str
    code: str
    found: bool
    blamed: bool
    tried: int
    held: int


async def measure() -> list[Figure]:
    code = _code()
    known = {it.name: it for it in _kept() if it.code == code}
    pairs = []
    for name, by, write in PAIRS:
        pair = known.get(name) or await _measured(name, by, write, code)
        pairs.append(pair)
        twin = f"twin held {pair.held}/{pair.tried}{', BLAMED' * pair.blamed}"
        print(f"{name}: {'found' if pair.found else 'MISSED'}; {twin}", file=sys.stderr, flush=True)
    _KEPT.unlink(missing_ok=True)
    many, tried = len(pairs), sum(it.tried for it in pairs)
    return [
        Figure("audit: leaky judges, each with a twin", many, ""),
        Figure("audit: holes found", sum(it.found for it in pairs) / many, "", ">= 0.9"),
        Figure("audit: twins blamed", sum(it.blamed for it in pairs) / many, "", "<= 0.05"),
        Figure("audit: adversaries that a twin faces, on average", tried / many, ""),
        Figure("audit: of these, held", sum(it.held for it in pairs) / max(1, tried), ""),
    ]


async def _measured(name: str, by: str, write: Write, code: str) -> Pair:
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="audit-") as place:
        leaky = write(Path(place, "leaky"), fixed=False)
        found = bool((await audited(leaky, [by])).found) or bool((await audited(leaky)).found)
        twin = await audited(write(Path(place, "twin"), fixed=True), findings=findings)
    for row in findings.rows:
        if row.sign is Sign.FAIL:
            print(f"{name}, twin: {row.text}", file=sys.stderr, flush=True)
    pair = Pair(name, code, found, not twin.good, twin.tried, twin.held)
    _KEPT.parent.mkdir(exist_ok=True)
    with _KEPT.open("a") as kept:
        kept.write(json.dumps(asdict(pair)) + "\n")
    return pair


def _kept() -> list[Pair]:
    """A last line that was cut off is measured again."""
    lines = _KEPT.read_text().split("\n")[:-1] if _KEPT.exists() else []
    return [Pair(**json.loads(line)) for line in lines]


def _code() -> str:
    files = sorted(path for folder in _CODE for path in (_ROOT / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
