"""Changes lines of the core, drawn at random, one at a time, and counts how many of the changes a test finds.

usage: mutate.py [--lines 30] [--seed 1] [--workers 2]      it changes this checkout, and puts each line back

A line with a comparison has it turned round; one that only calls something has the call left out. The fast tests of
the line's own folder run first, then the longer ones of that folder, then all fast ones, until one fails. That one is
run again without the change: where it fails then, too, it has found nothing, and the count ends.
"""

import argparse
import ast
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = (
    "orchestrator/budget",
    "orchestrator/change",
    "orchestrator/domain",
    "orchestrator/judge",
    "orchestrator/ledger",
    "orchestrator/loop",
    "orchestrator/views/judging",
    "orchestrator/watch",
    "sandbox/backends/docker",
    "sandbox/backends/runc",
    "sandbox/clock",
    "sandbox/wire",
)
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
FAST = "not (docker or modal or slurm or postgres or crash or attack or e2e or slow or fuzz or alone or long)"
LONGER = "not (docker or modal or slurm or crash or attack or slow or fuzz)"


@dataclass(frozen=True)
class Mutant:
    path: Path  # below the root
    line: int
    end: int
    was: str
    becomes: str


def mutants(root: Path) -> list[Mutant]:
    """All that could be drawn, in the order of the files."""
    found = []
    for path in sorted(path for folder in CORE for path in (root / folder).rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                turned = ast.Compare(node.left, [TURNED[type(node.ops[0])]()], node.comparators)
                becomes = f"({ast.unparse(turned)})"
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
                becomes = "pass"
            else:
                continue
            was = ast.get_source_segment(text, node) or ""
            found.append(Mutant(path.relative_to(root), node.lineno, node.end_lineno or 0, was, becomes))
    return found


def apply(mutant: Mutant) -> str:
    """Write the changed file; what it was."""
    text = (ROOT / mutant.path).read_text()
    lines = text.splitlines(keepends=True)
    piece = "".join(lines[mutant.line - 1 : mutant.end])
    lines[mutant.line - 1 : mutant.end] = [piece.replace(mutant.was, mutant.becomes, 1)]
    (ROOT / mutant.path).write_text("".join(lines))
    return text


def found_by(mutant: Mutant, workers: str) -> str:
    """The first tests that fail; nothing where none does."""
    own = Path("tests") / mutant.path.parent
    while not (ROOT / own).is_dir():
        own = own.parent
    for marks, places in ((FAST, [str(own)]), (LONGER, [str(own)]), (FAST, ["--unit", "tests"])):
        words = ["-x", "-q", "--no-header", "--numprocesses", workers, "--dist", "worksteal", "-p", "no:cacheprovider"]
        done = _pytest(*words, "-m", marks, *places)
        if done.returncode not in (0, 5):
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if not failed:
                raise SystemExit(f"pytest ended with {done.returncode} and named no test:\n{done.stdout[-2000:]}")
            return failed[0].partition(" ")[2].partition(" - ")[0]
    return ""


def _pytest(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True)


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--lines", type=int, default=30)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--workers", default="2")
    given = asked.parse_args()
    drawn = random.Random(given.seed).sample(mutants(ROOT), given.lines)  # noqa: S311  chance, and the same each time
    found = 0
    for number, mutant in enumerate(drawn, start=1):
        began, text = time.monotonic(), apply(mutant)
        try:
            by = found_by(mutant, given.workers)
        finally:
            (ROOT / mutant.path).write_text(text)
        if by and _pytest("-q", by).returncode:
            raise SystemExit(f"{by} fails without the change of {mutant.path}:{mutant.line}, too: mend it first")
        found += bool(by)
        print(f"{number:3} {mutant.path}:{mutant.line} {mutant.was.splitlines()[0]} -> {mutant.becomes}")
        print(f"    {by or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{found} of {len(drawn)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
