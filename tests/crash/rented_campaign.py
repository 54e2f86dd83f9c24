"""A campaign on rented chambers to be killed. The provider is a folder, and so it outlives its tenants."""

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.loop import campaign, settling
from orchestrator.wiring.beginning import How
from sandbox.backends.fake.rent import Rent, Step
from sandbox.tenancy import Mark, Tenancy
from tests.crash.fate import Fate
from tests.crash.nursery import is_begun
from tests.orchestrator.loop.rented import USD, RentedBackend, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import scripted, write_task

ATTEMPTS = 2
_FLAGS = {"width": 1, "attempts": ATTEMPTS, "usd": 100.0}


class Provider:
    """Its register, in files: when each began, whose it is, and when it ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        return str(self._folder)

    def begin(self, name: str, owner: str) -> None:
        self._write(name, {"owner": owner, "since": time.time()})

    def end(self, name: str) -> None:
        record = self._read(name)
        if "until" not in record:
            self._write(name, {**record, "until": time.time()})

    def running(self) -> Mapping[str, str]:
        records = {path.name: self._read(path.name) for path in self._folder.iterdir() if not path.suffix}
        return {name: record["owner"] for name, record in records.items() if "until" not in record}

    def lived(self, name: str) -> float | None:
        if not (self._folder / name).exists():
            return 0.0
        record = self._read(name)
        return float(record["until"] - record["since"]) if "until" in record else None

    def usd(self) -> float:
        records = [self._read(path.name) for path in self._folder.iterdir() if not path.suffix]
        return float(sum(record["until"] - record["since"] for record in records)) * USD

    def _read(self, name: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self._folder / name).read_text())
        return record

    def _write(self, name: str, record: dict[str, Any]) -> None:
        """Whole or not at all: a provider does not forget because its tenant died."""
        draft = self._folder / f"{name}.draft"
        draft.write_text(json.dumps(record))
        draft.replace(self._folder / name)


def make(folder: Path) -> Path:
    return write_task(folder)


def provider_of(folder: Path) -> Provider:
    return Provider(folder / "provider")


def live(folder: str, at: int | None = None, named: str = "", count: str = "") -> None:
    """Work on the campaign until it is finished, or until fate strikes; `count` names a file for the points met."""
    campaign.POLL_S = 0.01
    settling.HOPE_S = 0.0
    fate = Fate(at, named)
    fate.rule()
    asyncio.run(_work(Path(folder), fate))
    fate.end()
    if count:
        Path(count).write_text(json.dumps(fate.points))


def reap(folder: str) -> None:
    """What `blastdoor reap` does."""
    asyncio.run(_backend(Path(folder), Script(), Tenancy(Path(folder) / "owners"), Fate(None)).rented.reap())


def _backend(folder: Path, script: Script, tenancy: Tenancy, fate: Fate) -> RentedBackend:
    def fault(step: Step, _: str) -> None:
        fate.meet(f"provider {step}")

    rent = Rent(USD, register=provider_of(folder), opening_s=0.002, fault=fault)
    backend = RentedBackend(script, rent)
    backend.rented.owner = tenancy.owner
    backend.rented.is_over = lambda owner: tenancy.is_over(Mark(owner, tenancy.place, 0))
    return backend


async def _work(folder: Path, fate: Fate) -> None:
    script, tenancy = Script(), Tenancy(folder / "owners")
    backend = _backend(folder, script, tenancy, fate)
    await backend.reap()  # as every backend does when it connects
    site = rented_site(script, backend.rented.rent, backend=backend)
    how = How.RESUME if is_begun(folder) else How.START
    flags: dict[str, Any] = {} if how is How.RESUME else _FLAGS
    points = [{"value": 5}, {"value": 3}]
    async with scripted(folder, script, *points, how=how, site=site, **flags) as session:
        await backend.rented.stand()
        await session.run()
    tenancy.release()
