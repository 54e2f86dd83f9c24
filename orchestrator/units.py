"""Money, rates and durations as people write them: "$5", "30/min", "1h30m"; moments as ledgers do."""

import re
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

from sandbox.units import format_size, parse_duration, parse_size

__all__ = [
    "Money",
    "Rate",
    "format_duration",
    "format_size",
    "parse_duration",
    "parse_money",
    "parse_rate",
    "parse_size",
    "stamp",
    "utc_now",
]

_PER = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60}
_PER |= {"h": 3600, "hour": 3600, "d": 86400, "day": 86400}
_DURATIONS = (("d", 86400), ("h", 3600), ("m", 60))


utc_now = partial(datetime.now, UTC)


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def parse_money(value: object) -> object:
    """Dollars of "$5"; anything that is not text is passed on to the validator that follows."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\$?\s*([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,2})(\.[0-9]{1,6})?", value.strip())
    if not match:
        raise ValueError(f'"{value}" is not a sum of money; write it like "$5" or "$0.50"')
    return float(match[1].replace(",", "") + (match[2] or ""))


def parse_rate(value: object) -> object:
    """Times a second of "30/min". A bare number is refused: nobody can see what it is per."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]{1,3})?)\s*/\s*([a-z]+)", str(value).strip())
    if not match or match[2] not in _PER:
        said = f'"{value}"' if isinstance(value, str) else value
        raise ValueError(f'{said} is not a rate; write it like "30/min", "2/s" or "100/h"')
    return float(match[1]) / _PER[match[2]]


def format_duration(seconds: float) -> str:
    """The shortest human form: 5400 → "1h30m"."""
    text, left = "", seconds
    for unit, size in _DURATIONS:
        count, left = divmod(left, size)
        text += f"{count:.0f}{unit}" if count else ""
    return f"{text}{left:.6g}s" if left or not text else text


Money = Annotated[float, BeforeValidator(parse_money)]
# Written back as text, so that what is stored is read by the same rule as what people write.
_AS_TEXT = PlainSerializer(lambda rate: f"{rate!r}/s", return_type=str, when_used="json")
Rate = Annotated[float, BeforeValidator(parse_rate), _AS_TEXT]
