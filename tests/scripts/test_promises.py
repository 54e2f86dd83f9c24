"""What is promised has tests."""

from pathlib import Path

from promises import ROOT, promises
from sandbox.attacks.attack import registered
from tests.attacks.test_attacks import HAS_GPU, rows


def test_every_guarantee_has_the_tests_that_it_names() -> None:
    """Each test, file, folder, threat and row of the contract in the page's last column is there."""
    found = list(promises(ROOT))
    assert len(found) > 100
    assert {promise.what: promise.missing for promise in found if promise.missing} == {}


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    """A test that is gone, a threat that nobody names, a folder without a test, a guarantee without any."""
    (tmp_path / "tests" / "kept").mkdir(parents=True)
    (tmp_path / "tests" / "kept" / "test_a.py").write_text("def test_t01_b() -> None: ...\n")
    cells = [
        "`test_t01_b`, T01, `test_t01_…`, `kept/test_a.py`, `tests/kept/`",
        "`test_b`",
        "T02\u2013T03",
        "`tests/a/`",
        "-",
    ]
    lines = ["| guarantee | how | enforced by |", "|---|---|---|", *(f"| {it} | | {it} |" for it in cells), "", "| a |"]
    (tmp_path / "SECURITY.md").write_text("\n".join(lines))
    assert [it.missing for it in promises(tmp_path)] == [
        [], ["test_b"], ["T02", "T03"], ["tests/a/"], ["no test is named"],
    ]  # fmt: skip


def test_every_attack_is_tried() -> None:
    """Each row of the suite runs in `make test` on a runtime at least; those of a GPU where there is one."""
    tried = {row.values[1].title for row in rows() if not row.marks}
    assert {it.title for it in registered() if HAS_GPU or not it.attempt.__module__.endswith("gpu")} == tried
