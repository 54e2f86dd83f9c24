"""Compares predictions with the labels: the judge. With --dev, with those of the tuning rows."""

import csv
import sys
from pathlib import Path

from blastdoor_judge import BadOutput, judging, load_csv, publish, trace

DIGITS = [str(digit) for digit in range(10)]


def labels() -> list[str]:
    name = "dev_labels.csv" if "--dev" in sys.argv[1:] else "labels.csv"
    with Path("gold", name).open(newline="") as file:
        return [row[0] for row in csv.reader(file)]


def predictions(count: int) -> list[str]:
    """One digit a line, exactly as many as there are rows."""
    rows = load_csv("predictions.csv", max_bytes=100_000, max_rows=count + 1, max_columns=1)
    if len(rows) != count:
        raise BadOutput(f"predictions.csv has {len(rows)} lines, not {count}")
    for line, row in enumerate(rows, 1):
        if row[0] not in DIGITS:
            raise BadOutput(f"line {line} of predictions.csv is not a digit")
    return [row[0] for row in rows]


with judging():
    right = labels()
    pairs = list(zip(right, predictions(len(right)), strict=True))
    recall = {}
    for digit in DIGITS:
        hits = [given == digit for wanted, given in pairs if wanted == digit]
        recall[digit] = sum(hits) / len(hits)
        trace(digit, recall[digit], summary=f"{sum(hits)} of {len(hits)} found")
    accuracy = sum(wanted == given for wanted, given in pairs) / len(pairs)
    publish(accuracy, metrics={"score": accuracy, "worst_digit": min(recall.values())}, tasks=recall)
