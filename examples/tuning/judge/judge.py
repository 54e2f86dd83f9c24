"""Compares predictions with the labels: the judge. What a candidate reported while it ran is nothing to it."""

import csv
from pathlib import Path

from blastdoor_judge import BadOutput, judging, load_csv, publish, trace

CLASSES = ("0", "1", "2")


def labels() -> list[str]:
    with Path("gold", "labels.csv").open(newline="") as file:
        return [row[0] for row in csv.reader(file)]


def predictions(count: int) -> list[str]:
    """One class a line, exactly as many as there are points."""
    rows = load_csv("predictions.csv", max_bytes=10_000, max_rows=count + 1, max_columns=1)
    if len(rows) != count:
        raise BadOutput(f"predictions.csv has {len(rows)} lines, not {count}")
    for line, row in enumerate(rows, 1):
        if row[0] not in CLASSES:
            raise BadOutput(f"line {line} of predictions.csv is not a class from 0 to 2")
    return [row[0] for row in rows]


with judging():
    right = labels()
    pairs = list(zip(right, predictions(len(right)), strict=True))
    found = {}
    for name in CLASSES:
        hits = [given == name for wanted, given in pairs if wanted == name]
        found[name] = sum(hits) / len(hits)
        trace(name, found[name], summary=f"{sum(hits)} of {len(hits)} found")
    publish(sum(wanted == given for wanted, given in pairs) / len(pairs), tasks=found)
