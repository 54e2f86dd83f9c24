"""Places in the tree, and who pays for an ending."""

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.node import child_of, order_of, parent_of, parse_node, path_to, run_of


@pytest.mark.parametrize("text", ["1", "1.3.2", "5.1.23", "12.30"])
def test_a_node_that_a_person_wrote(text: str) -> None:
    """Numbers from 1 on with dots between them."""
    assert parse_node(text) == text


@pytest.mark.parametrize(
    "text", ["", "0", "1.", ".1", "1..2", "1.0", "01", "a", "1.3 ", "-1", "1.3\n", "\u0661", "1/2"]
)
def test_what_is_no_node(text: str) -> None:
    """Everything else is refused with a line that shows how to write one."""
    with pytest.raises(ValueError, match=r"write it like 1\.3\.2"):
        parse_node(text)


def test_family() -> None:
    """Parent, child, run and path agree with the dots."""
    assert (parent_of("1.3.2"), parent_of("1")) == ("1.3", None)
    assert child_of("1.3", 2) == "1.3.2"
    assert run_of("12.1") == 12
    assert path_to("1.3.2") == ["1", "1.3", "1.3.2"]


def test_order_is_by_number() -> None:
    """1.2 stands before 1.10."""
    assert sorted(["1.10", "1.2", "1", "2"], key=order_of) == ["1", "1.2", "1.10", "2"]


@pytest.mark.parametrize("ending", list(Ending))
def test_who_pays_for_an_ending(ending: Ending) -> None:
    """Stalls, infrastructure, interruptions, cancellations and holds cost no attempt; everything else does, and is
    never run again. What a person cancelled or a verifier holds is not retried by itself. A tampered or missing result
    is missing data: only a scored ending has a score.
    """
    free = {Ending.STALLED, Ending.INFRASTRUCTURE, Ending.INTERRUPTED, Ending.CANCELLED, Ending.HELD}
    assert ending.charged is (ending not in free)
    assert ending.retryable is (ending in free - {Ending.CANCELLED, Ending.HELD})
    assert ending.scoreable is (ending is Ending.SCORED)
