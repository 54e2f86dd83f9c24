"""The part of a long history that a model looks at."""

import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.proposers.samplers.engine import Known
from orchestrator.proposers.samplers.view import View


def view(values: list[tuple[float, ...] | None], limit: int = 30, best: int = 5, last: int = 8) -> View:
    made = View(limit, best, last, lambda known: known.merits)
    for place, merits in enumerate(values):
        made.add(Known(place, {}, merits, number=place))
    return made


@given(st.lists(st.one_of(st.none(), st.tuples(st.floats(-10, 10))), min_size=31, max_size=120))
def test_a_long_history(values: list[tuple[float, ...] | None]) -> None:
    """As many as the limit, in their order, the last and the best among them; of equals the first."""
    places = [it.place for it in view(values).chosen()]
    assert len(places) == 30
    assert places == sorted(set(places))
    assert set(places) >= set(range(len(values) - 8, len(values)))
    scored = sorted((-merits[0], place) for place, merits in enumerate(values) if merits is not None)
    assert set(places) >= {place for _, place in scored[:5]}


def test_the_sample_hardly_changes() -> None:
    """One more attempt replaces a few in view, so that a model does not jump; and all ages are in it."""
    rng = random.Random(1)
    values: list[tuple[float, ...] | None] = [(rng.random(),) for _ in range(1000)]
    before = {it.place for it in view(values[:999]).chosen()}
    after = {it.place for it in view(values).chosen()}
    assert len(before - after) <= 3
    assert min(after) < 200
    assert any(400 < place < 800 for place in after)


def test_the_front_stays() -> None:
    """With several objectives, what nothing dominates is in view, however long ago it was."""
    rng = random.Random(2)
    values: list[tuple[float, ...] | None] = [(rng.random(), rng.random()) for _ in range(300)]
    values[3], values[7] = (2.0, 0.0), (0.0, 2.0)
    assert {it.place for it in view(values).chosen()} >= {3, 7}
