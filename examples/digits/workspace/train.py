"""Learns to read digits and leaves predictions.csv: the candidate. It may be changed in any way.

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


def predict(params: dict[str, Any], train: list[list[int]], rows: list[list[int]]) -> list[int]:
    model = make_pipeline(SCALES[params["scale"]](), MODELS[params["model"]](params))
    model.fit([row[:-1] for row in train], [row[-1] for row in train])
    return [int(label) for label in model.predict(rows)]


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    train = read(inputs / "train/images.csv")
    if os.environ.get("BLASTDOOR_MODE") == "tune":
        train = train[:TUNE_ROWS]
    labels = predict(params, train, read(inputs / "rows/images.csv"))
    Path(os.environ["BLASTDOOR_OUT"], "predictions.csv").write_text("".join(f"{label}\n" for label in labels))


if __name__ == "__main__":
    main()
