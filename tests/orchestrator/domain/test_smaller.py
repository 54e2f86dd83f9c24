"""Of two candidates that are as good, the smaller change wins: by lines and by bytes."""

import pytest

from orchestrator.domain.records import Node, Role


def node(size: int | None, size_bytes: int | None) -> Node:
    return Node(id="1.1", parent="1", role=Role.SEARCH, number=1, size=size, size_bytes=size_bytes)


@pytest.mark.parametrize(
    ("mine", "its", "smaller"),
    [
        ((1, 20), (3, 60), True),
        ((3, 60), (1, 20), False),
        ((3, 60), (3, 60), False),
        ((3, 59), (3, 60), True),
        ((1, 200_000), (3, 60), False),
        ((3, 60), (1, 200_000), False),
        ((2, None), (3, 60), True),
        ((3, None), (2, 60), False),
        ((2, 20), (3, None), True),
        ((None, None), (3, 60), False),
    ],
)
def test_smaller(mine: tuple[int | None, int | None], its: tuple[int | None, int | None], smaller: bool) -> None:
    """Less of one measure and no more of the other; a ledger that knows lines only is compared by lines."""
    assert node(*mine).is_smaller_change_than(node(*its)) is smaller
