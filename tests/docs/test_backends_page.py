"""The page on backends says of each what its code says of itself; of places, two pages and one file say the same."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.choices import BACKENDS, OWN_ENGINE
from orchestrator.settings import Settings
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.sites import planned_site
from sandbox import Capabilities, Enforcer
from sandbox.backends.local import capabilities_of
from sandbox.backends.skypilot.places import PLACES
from sandbox.posture import FULL
from tests.clicking import every_command
from tests.docs.pages import ROOT, Table, code_of, table, tables

NAMES = list(BACKENDS.built_in)
PAGE = ROOT / "docs" / "backends.md"
ALL = ("run", "resume", "check", "gate", "replay", "guards", "shell")


def capabilities(backend: str) -> Capabilities:
    """As it says before it is opened; an engine has to be asked, and so its own code is."""
    if backend == OWN_ENGINE:
        return capabilities_of("docker/runc", "runc", FULL)
    return planned_site(Settings(), SiteChoice(backend, infra="aws")).backend.capabilities


@pytest.mark.parametrize("header", [("backend", "take it when"), ("backend", "boundary"), ("backend", "how")])
def test_every_backend(header: tuple[str, ...]) -> None:
    """Each table of the page has a row for each backend."""
    assert [code_of(cell) for cell in table(PAGE, *header).column("backend")] == [[name] for name in NAMES]


@pytest.mark.parametrize("backend", NAMES)
def test_what_a_backend_can(backend: str) -> None:
    """Relay, live log and stop are what the code says, and so are the limits that a wrapper or nobody holds."""
    found = table(PAGE, "backend", "boundary")
    row = dict(zip(found.header, found.rows[NAMES.index(backend)], strict=True))
    can = capabilities(backend)
    word = {True: "yes", False: "no"}
    assert [row[name] for name in ("relay", "live log", "stop")] == [
        word[it] for it in (can.relay, can.live_log, can.stop)
    ]
    guest = {name for name, holder in can.enforced.items() if holder is Enforcer.GUEST}
    assert set(code_of(row["limits that a wrapper in the chamber holds"])) == guest
    nobody = {name for name, holder in can.enforced.items() if holder is Enforcer.NOBODY}
    assert nobody <= set(code_of(row["limits that nobody holds"]))


def test_flags() -> None:
    """Every command that runs a candidate has every flag of the table, and each flag's setting exists."""
    found = table(PAGE, "flag", "setting")
    flags = [code_of(cell)[0] for cell in found.column("flag")]
    for name in ALL:
        assert set(flags) <= _flags(every_command().commands[name]), name
    assert {code_of(cell)[0] for cell in found.column("setting")} <= set(Settings.model_fields)


def _flags(command: Any) -> set[str]:
    return {flag for parameter in command.params if isinstance(parameter, click.Option) for flag in parameter.opts}


def table_with(page: Path, column: str) -> Table:
    (found,) = [item for item in tables(page) if column in item.header]
    return found


def places_of(cell: str) -> list[str]:
    return re.findall(r"`([a-z]+)`", cell)


def test_places_of_skypilot() -> None:
    """Its page and SECURITY.md have every place, under the same kind and with the same decision; its page, with each
    reason or caveat word for word.
    """
    rows = table_with(ROOT / "docs" / "skypilot.md", "place").rows
    decisions = table_with(ROOT / "SECURITY.md", "decision").rows
    said = [(name, kind, allowed == "refused", why) for names, kind, allowed, why in rows for name in places_of(names)]
    decided = [(name, kind, it.startswith("refused")) for kind, names, it in decisions for name in places_of(names)]
    expected = sorted((name, place.kind, bool(place.refused)) for name, place in PLACES.items())
    assert sorted(decided) == sorted(it[:3] for it in said) == expected
    for name, _, _, why in said:
        for sentence in (PLACES[name].refused, *PLACES[name].caveats):
            assert sentence in why, f"{name}: {sentence}"
