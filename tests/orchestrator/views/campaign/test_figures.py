"""Numbers as people read them."""

import pytest

from orchestrator.domain import figures
from orchestrator.domain.metric import Metric

SPEEDUP = [Metric(name="speedup")]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"score": 2.0, "speedup": 2.0, "time": 1.0}, "speedup=2 time=1"),
        ({"score": 3.0, "speedup": 2.0}, "speedup=2 score=3"),
        ({"score": 3.0}, "score=3"),
    ],
)
def test_a_score_that_only_repeats(values: dict[str, float], text: str) -> None:
    """A score that nobody declared is shown where it says more than the first metric."""
    assert figures.metrics(values, SPEEDUP) == text


def test_a_declared_score_is_shown() -> None:
    """Whatever it equals."""
    both = [Metric(name="speedup"), Metric(name="score")]
    assert figures.metrics({"score": 2.0, "speedup": 2.0}, both) == "speedup=2 score=2"
