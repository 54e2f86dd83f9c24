"""Writes the measured tables of SECURITY.md from the suite's own JSON.

usage: security_tables.py ATTACKS.json MUTATIONS.json
       where `blastdoor attack --json` made the first and `blastdoor attack --mutate --json` the second
"""

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "SECURITY.md"


def attack_table(results: list[dict[str, Any]]) -> str:
    runtimes = sorted({item["runtime"] for item in results})
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for item in results:
        cell = f"blocked ({item['ending']})" if item["ran"] and item["blocked"] else "**NOT BLOCKED**"
        rows.setdefault((item["id"], item["attack"]), {})[item["runtime"]] = cell
    lines = [f"| id | attack | {' | '.join(runtimes)} |", f"|---|---|{'---|' * len(runtimes)}"]
    for (row, title), cells in rows.items():
        shown = " | ".join(cells.get(runtime, "not run").replace("|", "\\|") for runtime in runtimes)
        lines.append(f"| {row} | {title.replace('|', chr(92) + '|')} | {shown} |")
    return "\n".join(lines)


def difference_list(results: list[dict[str, Any]]) -> str:
    notes = dict.fromkeys((item["id"], item["runtime"], item["differs"]) for item in results if item["differs"])
    return "\n".join(f"- **{row}** on {runtime}: {note}" for row, runtime, note in notes)


def mutation_table(verdicts: list[dict[str, Any]]) -> str:
    runtimes = sorted({item["runtime"] for item in verdicts})
    flags: dict[str, dict[str, str]] = {}
    for item in verdicts:
        hidden = f"not visible: {item['unseen']}" if item["unseen"] else "**nothing**"
        cell = ", ".join(item["red"]) or hidden
        flags.setdefault(item["flag"], {})[item["runtime"]] = cell
    lines = [f"| flag off | {' | '.join(runtimes)} |", f"|---|{'---|' * len(runtimes)}"]
    lines += [f"| {flag} | {' | '.join(cells[runtime] for runtime in runtimes)} |" for flag, cells in flags.items()]
    return "\n".join(lines)


def replace(text: str, name: str, content: str) -> str:
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    if not after:
        sys.exit(f"SECURITY.md has no place for {name}")
    return f"{before}{start}\n{content}\n{end}{after}"


def main() -> None:
    attacks, mutations = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    text = PAGE.read_text()
    text = replace(text, "attacks", attack_table(attacks))
    text = replace(text, "differences", difference_list(attacks))
    text = replace(text, "mutations", mutation_table(mutations))
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
