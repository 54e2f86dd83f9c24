"""What a token costs, as dated data. A model without a price is refused before the first call, never taken for free.

A dollar for a million tokens is a microdollar for one; prices are kept in thousandths of that, so that sums are exact.
"""

import datetime
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from orchestrator.domain.model_use import Tokens
from orchestrator.text import short


def _thousandths(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number: dollars for a million tokens")
    exact = Decimal(str(value)) * 1000
    if not exact.is_finite() or exact < 0 or exact != exact.to_integral_value():
        raise ValueError("must be dollars for a million tokens, 0 or more, to a tenth of a cent")
    return int(exact)


Rate = Annotated[int, BeforeValidator(_thousandths)]


class Rates(BaseModel, extra="forbid", frozen=True):
    """Thousandths of a microdollar for a token."""

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write_5m: Rate | None = None
    cache_write_1h: Rate | None = None

    def cost(self, tokens: Tokens, written_1h: int) -> int:
        """In microdollars, rounded up. `written_1h` of the tokens written to the cache stay there for an hour."""
        written_5m = tokens.cache_write - written_1h
        total = (
            tokens.input * self.input
            + tokens.output * self.output
            + tokens.cache_read * self.reading
            + written_5m * self.writing(hour=False)
            + written_1h * self.writing(hour=True)
        )
        return -(-total // 1000)

    @property
    def reading(self) -> int:
        """Where no price is given, a read is no cheaper than an input."""
        return self.input if self.cache_read is None else self.cache_read

    def writing(self, *, hour: bool) -> int:
        """Where no price is given, as everybody who sells it has it: a quarter more, or twice as much for an hour."""
        if hour:
            return self.input * 2 if self.cache_write_1h is None else self.cache_write_1h
        return -(-self.input * 5 // 4) if self.cache_write_5m is None else self.cache_write_5m


class LongRates(Rates):
    above: int = Field(ge=1)


class Price(Rates):
    """`long` holds for the whole request where its input, cached or not, has more than so many tokens."""

    names: tuple[str, ...] = ()
    thinking: Literal["adaptive", "budget", "none"] = "adaptive"
    long: LongRates | None = None

    def of(self, tokens: Tokens, written_1h: int) -> int:
        given = tokens.input + tokens.cache_read + tokens.cache_write
        rates: Rates = self.long if self.long is not None and given > self.long.above else self
        return rates.cost(tokens, written_1h)

    def worst(self, given: int, output: int, *, written: bool, hour: bool) -> int:
        """The most that a request can cost: whatever `given` tokens are billed as, and `output` more."""
        both: list[Rates] = [self, self.long] if self.long is not None and given > self.long.above else [self]
        return max(_dearest(rates, given, output, written=written, hour=hour) for rates in both)


def _dearest(rates: Rates, given: int, output: int, *, written: bool, hour: bool) -> int:
    rate = max(rates.input, rates.reading, rates.writing(hour=hour) if written else 0)
    return -(-(given * rate + output * rates.output) // 1000)


class UnknownModel(Exception):
    """One line for a person: the model has no price, and which near it have one."""


class BadPrices(Exception):
    """One line for a person: the file with prices cannot be used, and why."""


class _File(BaseModel, extra="forbid", frozen=True):
    date: datetime.date | None = None
    source: str = ""
    models: dict[str, Price] = {}
    modal: dict[str, Any] = {}  # of chambers, read where those are made


class Prices:
    def __init__(self, models: Mapping[str, Price], date: datetime.date | None) -> None:
        self.date = date
        self._models = dict(models)
        self._named = {name: price for first, price in models.items() for name in (*price.names, first)}

    @classmethod
    def load(cls, path: Path | None) -> "Prices":
        """The dated prices that come with us, with those of the user's file put over them. Raises BadPrices."""
        ours = _parsed((files("orchestrator.llm") / "prices.toml").read_text(), "prices.toml")
        if path is None:
            return cls(ours.models, ours.date)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise BadPrices(f"{path}: cannot be read: {short(str(error), 200)}") from None
        own = _parsed(text, str(path))
        taken = {name for first, price in own.models.items() for name in (*price.names, first)}
        kept = {name: _without(price, taken) for name, price in ours.models.items() if name not in taken}
        return cls(kept | own.models, own.date or ours.date)

    @property
    def names(self) -> list[str]:
        return sorted(self._models)

    def of(self, model: str) -> Price:
        """Raises UnknownModel."""
        if (price := self._named.get(model)) is None:
            near = get_close_matches(model, self.names, 3, cutoff=0.3) or self.names[-3:]
            raise UnknownModel(
                f"no price is known for the model {short(model, 80)!r}; use one like {', '.join(near)}, or give it a"
                " price in a file of your own (setting prices)"
            )
        return price


def _without(price: Price, taken: set[str]) -> Price:
    return price.model_copy(update={"names": tuple(name for name in price.names if name not in taken)})


def _parsed(text: str, where: str) -> _File:
    try:
        read: dict[str, Any] = tomllib.loads(text, parse_float=Decimal)
        return _File.model_validate(read)
    except tomllib.TOMLDecodeError as error:
        raise BadPrices(f"{where}: is no TOML: {short(str(error), 200)}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadPrices(f"{where}: {place}: {short(first['msg'], 200)}") from None
