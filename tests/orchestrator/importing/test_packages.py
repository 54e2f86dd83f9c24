"""What a folder says of the packages that its program needs."""

from pathlib import Path

import pytest

from orchestrator.importing.packages import versions_of
from orchestrator.importing.source import Source


def versions(folder: Path, text: str) -> dict[str, str]:
    (folder / "requirements.txt").write_text(text)
    return versions_of(Source.of(folder))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("numpy", {"numpy": ""}),
        ("numpy >= 1.26 , < 3 , # why", {"numpy": ">=1.26,<3"}),
        ("Scikit_Learn==1.5.2", {"scikit-learn": "==1.5.2"}),
        ("torch~=2.1,!=2.1.1", {"torch": "~=2.1,!=2.1.1"}),
        ("odd==1!2.0+cpu", {"odd": "==1!2.0+cpu"}),
        ("numpy>=1,,<3", {}),
        ("numpy=1", {}),
        ("numpy>=1 2", {}),
        ("numpy>=1; python_version < '3.9'", {}),
        ("numpy @ https://example.org/numpy.whl", {}),
        ("-r other.txt", {}),
        ("# numpy", {}),
        ("numpy>=1" + ",<3" * 200, {}),
    ],
)
def test_requirements(tmp_path: Path, line: str, found: dict[str, str]) -> None:
    """Names and versions are taken over; a line of another kind is not."""
    assert versions(tmp_path, line + "\n") == found


def test_no_line_takes_without_end(tmp_path: Path) -> None:
    """A line that can be cut into clauses in many ways is read in one pass: it would take 2 ** 240 steps otherwise."""
    assert versions(tmp_path, "a==1" + "!1" * 240 + ";\nnumpy==2\n") == {"numpy": "==2"}
