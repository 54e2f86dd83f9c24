"""The boundary matrix stands on two pages and in one file, and says the same in all three."""

import re
from pathlib import Path

from sandbox.backends.skypilot.places import PLACES
from tests.docs.pages import ROOT, Table, tables

PAGE, SECURITY = ROOT / "docs" / "skypilot.md", ROOT / "SECURITY.md"


def table_with(page: Path, column: str) -> Table:
    (found,) = [item for item in tables(page) if column in item.header]
    return found


def places_of(cell: str) -> list[str]:
    return re.findall(r"`([a-z]+)`", cell)


def test_the_page_has_every_place() -> None:
    """With what a machine is there, whether it is allowed, and each reason or caveat word for word."""
    rows = table_with(PAGE, "place").rows
    assert sorted(name for row in rows for name in places_of(row[0])) == sorted(PLACES)
    for names, kind, allowed, why in rows:
        for name in places_of(names):
            place = PLACES[name]
            assert kind == place.kind, name
            assert (allowed == "refused") == bool(place.refused), name
            for sentence in (place.refused, *place.caveats):
                assert sentence in why, f"{name}: {sentence}"


def test_the_security_page_has_every_place() -> None:
    """Under the same kind and with the same decision."""
    rows = table_with(SECURITY, "decision").rows
    assert sorted(name for row in rows for name in places_of(row[1])) == sorted(PLACES)
    for kind, names, decision in rows:
        for name in places_of(names):
            assert kind == PLACES[name].kind, name
            assert decision.startswith("refused") == bool(PLACES[name].refused), name
