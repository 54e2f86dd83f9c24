"""What the provider says that it bills, and whether that can be believed."""

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.model_use import Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm.screening import Asked

_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
# Said of a request that is billed at the prices that we know.
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "service_tier": (None, "standard"),
    "speed": (None, "standard"),
    "inference_geo": (None, "", "global", "not_available"),
}


# A count is believed up to so many times what the request can hold, or up to what no context is larger than.
_TIMES, _CONTEXT = 100, 2_000_000
# Some say no input, or a stand-in, until the end: a first count is believed from so much of our own bound on.
_PART = 1 / 32


class Usage:
    """Counts are cumulative; only input may still turn out to have come from the cache. `doubt` says why they are not
    believed: then no less than the worst case is booked.

    `outside` is one line for a person where they show that no worst case of ours holds at this provider.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._counts: dict[str, int] = {}
        self._hour: int | None = None
        self._most = max(_TIMES * asked.worst.tokens, _CONTEXT)
        self.doubt = ""
        self.outside = ""

    def heard(self, said: Any) -> None:
        if not isinstance(said, dict):
            return
        moved = self._moved_to_the_cache(said)
        for name, own in _COUNTS.items():
            if (count := said.get(name)) is not None:
                self._count(own, count, may_fall=moved and own == "input")
        self._heard_writes(said.get("cache_creation"))
        for name, plain in _PLAIN.items():
            if said.get(name) not in plain:
                self._doubt(f"{name} is {said[name]!r}, which has a price of its own")
        served = said.get("server_tool_use")
        if isinstance(served, dict) and any(served.values()):
            self._doubt("tools ran at the provider")
        if isinstance(said.get("iterations"), list) and len(said["iterations"]) > 1:
            self._doubt("it was billed in several iterations")
        self._check_bounds()

    @property
    def output(self) -> int:
        return self._counts.get("output", 0)

    @property
    def known(self) -> bool:
        return not self.doubt and {"input", "output"} <= self._counts.keys()

    @property
    def given(self) -> int:
        """The most tokens of input that may be billed: what the provider said at first, where that can be all of it."""
        told = self.tokens.total - self.output
        believed = not self.doubt and "input" in self._counts and told >= self._asked.given * _PART
        return min(told, self._asked.given) if believed else self._asked.given

    @property
    def tokens(self) -> Tokens:
        return Tokens(**self._counts)

    @property
    def spent(self) -> Spent:
        tokens = self.tokens
        hour = self._hour if self._hour is not None else tokens.cache_write if self._asked.hour else 0
        cost = self._asked.price.of(tokens, min(hour, tokens.cache_write))
        return Spent(microdollars=cost, tokens=tokens.total)

    def _moved_to_the_cache(self, said: Mapping[str, Any]) -> bool:
        """Some say all input at first, and in the end what of it came from the cache: the sum stands."""
        parts = [name for name, own in _COUNTS.items() if own != "output"]
        now = [self._counts.get(_COUNTS[name], 0) if said.get(name) is None else said[name] for name in parts]
        before = sum(self._counts.get(_COUNTS[name], 0) for name in parts)
        return all(isinstance(count, int) and 0 <= count <= self._most for count in now) and sum(now) >= before

    def _count(self, name: str, count: Any, *, may_fall: bool = False) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= self._most:
            self._beyond("the provider's usage cannot be true", f"{name} is no count of tokens that a request can have")
        elif count < self._counts.get(name, 0) and not may_fall:
            self._doubt(f"{name} went down from {self._counts[name]} to {count}")
        else:
            self._counts[name] = count

    def _heard_writes(self, said: Any) -> None:
        hour = said.get("ephemeral_1h_input_tokens") if isinstance(said, dict) else None
        if isinstance(hour, int) and not isinstance(hour, bool) and hour >= 0:
            self._hour = max(hour, self._hour or 0)

    def _check_bounds(self) -> None:
        asked, tokens, spent = self._asked, self.tokens, self.spent
        too_much = "the provider counts more than a request can hold"
        if (given := tokens.total - tokens.output) > asked.given:
            self._beyond(too_much, f"{given} tokens of input, which are more than were sent")
        if tokens.cache_write and self._dearer_than_assumed():
            self._beyond(
                too_much, f"{tokens.cache_write} tokens written to the cache at a price that nothing asked for"
            )
        if tokens.output > asked.max_tokens:
            # A stream may begin with more than the very least that can be asked for: this alone ends no campaign.
            self._doubt(f"{tokens.output} tokens of output are more than the {asked.max_tokens} asked for")
        if spent.microdollars > asked.worst.microdollars or spent.tokens > asked.worst.tokens:
            self._beyond(too_much, f"{tokens.total} tokens of input and output")

    def _dearer_than_assumed(self) -> bool:
        worst, given = self._asked.price.worst, self._asked.given
        written = worst(given, 0, written=True, hour=bool(self._hour))
        return written > worst(given, 0, written=self._asked.written, hour=self._asked.hour)

    def _beyond(self, what: str, why: str) -> None:
        self._doubt(why)
        self.outside = self.outside or f"{what}: {why}; check api_url and prices"

    def _doubt(self, why: str) -> None:
        self.doubt = self.doubt or why
