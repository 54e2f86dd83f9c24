"""A cluster's name says whose it is, where that one lives, and when it ends: after a lost reply it is all there is.

`bd-OWNER-PLACE-ENDS-SERIAL`, 40 letters, digits and dashes. SkyPilot keeps the whole name in its own records, where
everything is looked up; where a cloud takes fewer letters, it shortens the name there with a digest of the whole.
"""

import re
import secrets

from sandbox.tenancy import Mark

PREFIX = "bd-"
_NAME = re.compile(r"bd-([0-9a-f]{12})-([0-9a-f]{8})-([0-9a-f]{8,10})-[0-9a-f]{6}")


def name_for(mark: Mark) -> str:
    """A new name, never the same twice."""
    return f"{PREFIX}{mark.owner}-{mark.place}-{mark.ends:08x}-{secrets.token_hex(3)}"


def mark_of(name: str) -> Mark | None:
    """Whose it is; None for a cluster that is none of ours."""
    found = _NAME.fullmatch(name)
    return Mark(found[1], found[2], int(found[3], 16)) if found else None
