"""`logs --lines` of stored logs that are too long to be read whole."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.ledger import Artifacts
from orchestrator.text import printable_lines
from orchestrator.views.campaign.logs import _last


def read(artifacts: Artifacts, digest: str, lines: int) -> list[str]:
    reading: Any = SimpleNamespace(artifacts=artifacts)
    return _last(reading, digest, lines)


def test_the_last_lines_are_those_of_the_whole(tmp_path: Path) -> None:
    artifacts, dice = Artifacts(tmp_path), random.Random(1)
    for ends in (b"", b"\n"):
        text = b"\n".join(b"a" * dice.randrange(100) for _ in range(9000)) + ends
        digest, whole = artifacts.put(text), list(printable_lines(text))
        for lines in (0, 1, 20, 3000, len(whole), len(whole) + 5):
            assert read(artifacts, digest, lines) == whole[max(0, len(whole) - lines) :]
    assert read(artifacts, artifacts.put(b""), 5) == []


@pytest.mark.parametrize("end", [b"\nlast\n", b"last"])
def test_of_a_gigabyte_little_is_read(tmp_path: Path, end: bytes) -> None:
    """Its bytes are not compared with the digest, as on the page."""
    artifacts, digest = Artifacts(tmp_path, longest=1 << 20), "ab" * 32
    path = tmp_path / digest[:2] / digest[2:]
    path.parent.mkdir()
    with path.open("wb") as file:
        file.seek(1 << 30)
        file.write(end)
    found = read(artifacts, digest, 1)
    assert len(found) == 1
    assert found[0].endswith("last")
    assert len(found[0]) < 1 << 25
