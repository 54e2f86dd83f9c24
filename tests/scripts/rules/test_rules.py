"""Rules are asked for each file, and again where it changed."""

from pathlib import Path

import pytest

from rules.__main__ import main, names


def test_each_rule_is_asked() -> None:
    assert names() == ["backends", "environments", "judge_modes", "programs"]


def test_only_what_is_in_order_is_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found is found again; what was mended is not; a line that is added to a file in order is found."""
    file = tmp_path / "sandbox" / "x.py"
    file.parent.mkdir()
    wrong, right = "import subprocess\nsubprocess.run(['tar'])\n", "import subprocess\n"
    for source, code in ((wrong, 1), (wrong, 1), (right, 0), (right, 0), (right + wrong, 1)):
        file.write_text(source)
        assert main(tmp_path, tmp_path / "cache") == code
        assert ("sandbox/x.py:" in capsys.readouterr().out) == bool(code)


def test_a_broken_memory_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("{")
    assert main(tmp_path, tmp_path / "cache") == 0
    assert main(tmp_path, tmp_path / "cache") == 0
