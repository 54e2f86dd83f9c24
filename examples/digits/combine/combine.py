"""Reads digits by what other models said of them: the combination. It may be changed in any way.

/inputs/pool/members.json lists the members, the one that was chosen first, first. Each has a folder with
predictions.csv, what it says of the rows that are asked for, and unseen.csv, what it says of training rows that it has
not learnt from.
"""

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

Answers = list[list[int]]


def column(path: Path, at: int = 0) -> list[int]:
    with path.open(newline="") as file:
        return [int(row[at]) for row in csv.reader(file)]


def voted(answers: Answers, weights: list[int]) -> list[int]:
    """The digit with the most votes; of several, the one that the first of their members says."""
    found = []
    for said in zip(*answers, strict=True):
        votes = Counter(dict.fromkeys(said, 0))
        for digit, weight in zip(said, weights, strict=True):
            votes[digit] += weight
        found.append(max(votes, key=lambda digit: votes[digit]))
    return found


def stacked(params: dict[str, Any], unseen: Answers, labels: list[int], answers: Answers) -> list[int]:
    """Learns from the training rows which digit it is when the members say what they say."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(C=params["c"], max_iter=500))
    model.fit(list(zip(*unseen, strict=True)), labels)
    return [int(label) for label in model.predict(list(zip(*answers, strict=True)))]


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    pool = inputs / "pool"
    members = [pool / name for name in json.loads((pool / "members.json").read_text())["members"]]
    answers = [column(member / "predictions.csv") for member in members]
    if params["rule"] == "stack":
        unseen = [column(member / "unseen.csv") for member in members]
        labels = stacked(params, unseen, column(inputs / "train/images.csv", -1), answers)
    else:
        weighs = params["rule"] == "weights"
        labels = voted(answers, [params[f"w{at}"] if weighs else 1 for at in range(1, len(answers) + 1)])
    text = "".join(f"{label}\n" for label in labels)
    Path(os.environ["BLASTDOOR_OUT"], "predictions.csv").write_text(text)


if __name__ == "__main__":
    main()
