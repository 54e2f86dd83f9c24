"""How many of the known holes `audit` finds, and how many sound judges it blames.

Each judge of tests/leaky has one hole, and a twin without it. A hole that the adversary made for it does not find is
looked for by all; a twin faces all. Programs run as processes of this machine, not in containers: what is measured is
the adversaries and the rule by which they gain, and both are the same on an engine.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.figure import Figure
from orchestrator.examine.findings import Findings, Sign
from tests.leaky.auditing import PAIRS, audited


async def measure(names: list[str] | None = None) -> list[Figure]:
    """Of all, or of these."""
    pairs = [it for it in PAIRS if not names or it[0] in names]
    found = blamed = tried = held = 0
    for name, by, write in pairs:
        with tempfile.TemporaryDirectory(prefix="audit-") as place:
            leaky = write(Path(place, "leaky"), fixed=False)
            hole = not (await audited(leaky, [by])).good or not (await audited(leaky)).good
            findings = Findings()
            twin = await audited(write(Path(place, "twin"), fixed=True), findings=findings)
        found, blamed = found + hole, blamed + (not twin.good)
        tried, held = tried + twin.tried, held + twin.held
        for row in findings.rows:
            if row.sign is Sign.FAIL:
                print(f"{name}, twin: {row.text}", file=sys.stderr)
        print(
            f"{name}: {'found' if hole else 'MISSED'}; twin held {twin.held}/{twin.tried} {twin.why}", file=sys.stderr
        )
    many = len(pairs)
    return [
        Figure("audit: leaky judges, each with a twin", many, ""),
        Figure("audit: holes found", found / many, "", ">= 0.9"),
        Figure("audit: twins blamed", blamed / many, "", "<= 0.05"),
        Figure("audit: adversaries that a twin faces, on average", tried / many, ""),
        Figure("audit: of these, held", held / max(1, tried), ""),
    ]
