"""Packages of others, as pip leaves them: code and a folder that announces what is in it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

PROPOSER = """
from orchestrator.domain.proposal import Proposal

blastdoor_interface = 1


class Counting:
    serial = False
    branching = False

    def __init__(self, context):
        self.context = context

    def exhausted(self, number):
        return None if number <= 4 else "four are enough"

    async def propose(self, brief):
        point = {"value": brief.number}
        return [Proposal(operator="counting", description=str(point), params=point)]
"""
COUNTING = {"blastdoor.proposers": {"counting": "{module}:Counting"}}


class Packages:
    """Installs into a folder of its own for each package, which is put on the path."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._count = 0

    def install(
        self,
        code: str = PROPOSER,
        announced: Mapping[str, Mapping[str, str]] = COUNTING,
        *,
        package: str = "blastdoor-counting",
        version: str = "1.2",
    ) -> Path:
        """Where it lies. A module of its own for each: Python loads one only once."""
        self._count += 1
        place = self._folder / f"site{self._count}"
        module = f"plugin_{abs(hash(str(place))):x}"
        info = place / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (place / f"{module}.py").write_text(code)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        lines = []
        for group, names in announced.items():
            lines += [f"[{group}]", *(f"{name} = {where.format(module=module)}" for name, where in names.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        self._monkeypatch.syspath_prepend(str(place))
        return place

    def remove(self, place: Path) -> None:
        """From the path."""
        import sys

        self._monkeypatch.setattr(sys, "path", [it for it in sys.path if it != str(place)])
