"""The table of bounds on the page about held-out data is what the code says."""

import pytest

from orchestrator.domain.ladder import bound
from tests.docs.pages import ROOT, table

ROWS = table(ROOT / "docs" / "heldout.md", "n", "step", "100 queries", "1000 queries").rows


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_bounds(row: list[str]) -> None:
    """Each is what the bound gives for a hundred and a thousand queries, to three digits."""
    items, step = int(row[0]), float(row[1])
    assert [f"{bound(items, step, queries):.3f}" for queries in (100, 1000)] == row[2:]
