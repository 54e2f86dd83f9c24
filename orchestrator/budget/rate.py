"""How often the main loop may go round: a bucket of slots that fills at a steady rate.

A new campaign starts with a full bucket. A resumed one starts with an empty one: what the last process took is not
known, and an orchestrator that crashes and comes back again and again must not start a burst each time.
"""

import math


class RateLimit:
    """At most `burst` slots at once and `per_second` in the long run. The time is any clock's, in seconds.

    Slots are handed out in the order of asking: one that is taken too early is booked, and the next comes later.
    """

    def __init__(self, per_second: float, burst: int = 1, *, resumed: bool = False) -> None:
        if not 0 < per_second < math.inf:
            raise ValueError(f"{per_second} is not a rate; it is more than zero and finite")
        if burst < 1:
            raise ValueError(f"a burst of {burst} lets nothing through; it is 1 or more")
        self.per_second = per_second
        self.burst = burst
        self._slots = 0.0 if resumed else float(burst)
        self._seen: float | None = None

    def wait(self, now: float) -> float:
        """Seconds until the next slot; 0 when there is one. Takes nothing."""
        self._fill(now)
        return max(0.0, (1 - self._slots) / self.per_second)

    def take(self, now: float) -> float:
        """Book the next slot; the seconds to wait until it may be used."""
        wait = self.wait(now)
        self._slots -= 1
        return wait

    def _fill(self, now: float) -> None:
        """A clock that went back adds nothing, and counts on from where it is now: waiting for it to catch up with
        itself could take for ever.
        """
        passed = 0.0 if self._seen is None else max(0.0, now - self._seen)
        self._slots = min(float(self.burst), self._slots + passed * self.per_second)
        self._seen = now
