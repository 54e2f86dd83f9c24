"""Campaigns that an earlier version wrote: this one reads, proves and resumes them.

`written_by_0.1.0` was made by that version. Its events are as they were; the chain, which sealed no rows then, and the
rows were written anew. Three of its campaigns were killed in the middle, with held-out data and a change of the fleet,
with noisy scores, and with a person who is asked; one is finished.
"""

import json
import tarfile
from pathlib import Path

import pytest

from tests.clicking import every_command, runner
from tests.crash.nursery import child
from tests.crash.scripted_campaign import checked, verdicts
from tests.crash.test_scripted_campaign import TARGET, calm, seen

pytestmark = pytest.mark.crash

WRITTEN = Path(__file__).parent / "written_by_0.1.0"
READING = [
    ("status", "--json"),
    ("tree",),
    ("chart",),
    ("show", "best"),
    ("diff", "best"),
    ("report",),
    ("logs",),
    ("stalls",),
    ("ledger", "list", "--json"),
    ("ledger", "verify"),
]


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(WRITTEN / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "task"


@pytest.mark.parametrize("kind", ["held", "noisy", "asked"])
def test_begun_before_and_finished_now(tmp_path: Path, kind: str) -> None:
    """It comes to the end that a whole one of today comes to, charged once, with chain, rows and books whole."""
    expected, _ = calm(tmp_path, kind)
    folder = unpacked(kind, tmp_path)
    assert child(TARGET, folder=str(folder), kind=kind) == 0
    assert seen(kind, checked(folder, kind)) == expected


def test_finished_before(tmp_path: Path) -> None:
    """What it found is what is found today, in other words perhaps, and every command that reads shows it."""
    calm(tmp_path, "deep")
    folder = unpacked("finished", tmp_path)
    assert verdicts(checked(folder, "deep")) == verdicts(checked(tmp_path / "calm", "deep"))
    for words in READING:
        read = runner().invoke(every_command(), [*words, str(folder)])
        assert read.exit_code == 0, (words, read.output, read.exception)
        assert read.stdout.strip(), words
    standing = json.loads(runner().invoke(every_command(), ["status", "--json", str(folder)]).stdout)
    assert standing["campaign"]["run"] == 1
