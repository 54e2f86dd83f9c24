"""A few tries with growing pauses, for what another try may change."""

from collections.abc import Callable

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

TRIES = 4
LONGEST_PAUSE_S = 8.0


class Again(Exception):
    """It failed, and might not the next time."""


def retried(act: Callable[[], None], tries: int = TRIES) -> None:
    """Raises the last failure."""
    for attempt in Retrying(
        retry=retry_if_exception_type(Again),
        stop=stop_after_attempt(tries),
        wait=wait_random_exponential(multiplier=0.5, max=LONGEST_PAUSE_S),
        reraise=True,
    ):
        with attempt:
            act()
