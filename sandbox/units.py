"""Sizes and durations as people write them: "512MiB", "90s", "1h30m"."""

import re
from typing import Annotated

from pydantic import BeforeValidator

_SIZES = {"": 1, "b": 1, "k": 1024, "kib": 1024, "kb": 1000, "m": 1024**2, "mib": 1024**2, "mb": 1000**2}
_SIZES |= {"g": 1024**3, "gib": 1024**3, "gb": 1000**3, "t": 1024**4, "tib": 1024**4, "tb": 1000**4}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_size(value: object) -> object:
    """Bytes of "512MiB"; anything that is not text is passed on to the validator that follows."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([a-zA-Z]{0,3})", value.strip())
    if not match or match[2].lower() not in _SIZES:
        raise ValueError(f"{value!r} is not a size; write it like 512MiB or 2GB")
    return int(float(match[1]) * _SIZES[match[2].lower()])


def parse_duration(value: object) -> object:
    """Seconds of "90s" or "1h30m"; anything that is not text is passed on to the validator that follows."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
        return float(text)
    parts = re.findall(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)", text)
    if not parts or "".join(a + b for a, b in parts) != text:
        raise ValueError(f"{value!r} is not a duration; write it like 90s or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def format_size(count: float) -> str:
    """The shortest human form: 1536 → "1.5KiB"."""
    units = ["TiB", "GiB", "MiB", "KiB", "B"]
    while abs(count) >= 1024 and len(units) > 1:
        count /= 1024
        units.pop()
    return f"{count:.3g}{units[-1]}" if abs(count) < 1000 else f"{count:.0f}{units[-1]}"


Size = Annotated[int, BeforeValidator(parse_size)]
Duration = Annotated[float, BeforeValidator(parse_duration)]
