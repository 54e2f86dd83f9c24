"""Who pays for an ending."""

import pytest

from orchestrator.domain.ending import Ending

FREE = {Ending.STALLED, Ending.INFRASTRUCTURE, Ending.INTERRUPTED, Ending.CANCELLED, Ending.HELD}


@pytest.mark.parametrize("ending", list(Ending))
def test_only_what_is_not_the_candidates_doing_is_free(ending: Ending) -> None:
    """Stalls, infrastructure, interruptions, cancellations and holds cost no attempt; everything else does."""
    assert ending.charged is (ending not in FREE)


@pytest.mark.parametrize("ending", list(Ending))
def test_what_is_charged_is_never_run_again(ending: Ending) -> None:
    """Nothing is both charged and retried; what a person cancelled or a verifier holds is not retried by itself."""
    assert ending.retryable is (ending in FREE - {Ending.CANCELLED, Ending.HELD})


def test_only_a_scored_ending_has_a_score() -> None:
    """A tampered or missing result is missing data."""
    assert [ending for ending in Ending if ending.scoreable] == [Ending.SCORED]
