"""What must stay true of every candidate: each model of the space can be trained and answers with digits."""

import unittest

import train

PARAMS = {"scale": "unit", "depth": 3, "trees": 5, "neighbours": 1, "c": 1.0, "gamma": 0.1}
ROWS = [[16 * (place % 10 == label) for place in range(64)] + [label] for label in range(10)] * 2


class EveryModel(unittest.TestCase):
    def test_answers_with_digits(self) -> None:
        for model in ("tree", "forest", "neighbours", "logistic", "vectors"):
            with self.subTest(model):
                found = train.predict({**PARAMS, "model": model}, ROWS, [row[:-1] for row in ROWS])
                if len(found) != len(ROWS) or not set(found) <= set(range(10)):
                    self.fail(f"answers with {found}")


if __name__ == "__main__":
    unittest.main()
