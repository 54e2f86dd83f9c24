"""Learns to read digits and leaves predictions.csv and unseen.csv: the candidate. It may be changed in any way.

/inputs/train has 64 pixels and a label in each line, /inputs/rows the pixels that are asked for. In tune mode the rows
are others, and a part of the training data is enough: that is what makes it cheap.
"""

import csv
import json
import os
from pathlib import Path
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

TUNE_ROWS = 200

SCALES = {"none": FunctionTransformer, "unit": MinMaxScaler, "standard": StandardScaler}
MODELS = {
    "tree": lambda p: DecisionTreeClassifier(max_depth=p["depth"], random_state=0),
    "forest": lambda p: RandomForestClassifier(p["trees"], max_depth=p["depth"], random_state=0),
    "neighbours": lambda p: KNeighborsClassifier(p["neighbours"], weights="distance"),
    "logistic": lambda p: LogisticRegression(C=p["c"], max_iter=200),
    "vectors": lambda p: SVC(C=p["c"], gamma=p["gamma"]),
}


def read(path: Path) -> list[list[int]]:
    with path.open(newline="") as file:
        return [[int(cell) for cell in row] for row in csv.reader(file)]


def lines(labels: list[int]) -> str:
    return "".join(f"{label}\n" for label in labels)


def predict(params: dict[str, Any], train: list[list[int]], rows: list[list[int]]) -> list[int]:
    model = make_pipeline(SCALES[params["scale"]](), MODELS[params["model"]](params))
    model.fit([row[:-1] for row in train], [row[-1] for row in train])
    return [int(label) for label in model.predict(rows)]


def unseen(params: dict[str, Any], train: list[list[int]], folds: int = 3) -> list[int]:
    """What it answers for each training row when it has not learnt from that row: a combination can learn from this
    how far to trust it.
    """
    found: dict[int, int] = {}
    for fold in range(folds):
        asked = range(fold, len(train), folds)
        learnt = [row for at, row in enumerate(train) if at % folds != fold]
        found |= dict(zip(asked, predict(params, learnt, [train[at][:-1] for at in asked]), strict=True))
    return [found[at] for at in range(len(train))]


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    train = read(inputs / "train/images.csv")
    out = Path(os.environ["BLASTDOOR_OUT"])
    if os.environ.get("BLASTDOOR_MODE") == "tune":
        train = train[:TUNE_ROWS]
    else:
        # Of use for combinations alone, which are made of real trials: it would only make tuning slower.
        (out / "unseen.csv").write_text(lines(unseen(params, train)))
    (out / "predictions.csv").write_text(lines(predict(params, train, read(inputs / "rows/images.csv"))))


if __name__ == "__main__":
    main()
