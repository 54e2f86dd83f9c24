"""Every reason of the closed list is reached, and no message lacks its advice."""

import itertools

import pytest

from orchestrator.change import Caps, Effort, File, Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply, apply_text
from orchestrator.change.edits import Change, Form
from orchestrator.change.forms import parse
from tests.orchestrator.change.samples import POLICY, TREE, block, created, refusal, whole

HEADER = "--- a/src/solve.py\n+++ b/src/solve.py\n"
SMALL = Policy(("**",), caps=Caps(text_bytes=400, files=1, hunks=1, file_bytes=40, total_bytes=60, path_bytes=30))
WIDE = Policy(("**",), caps=Caps(file_bytes=40, total_bytes=60))
TEXTS: dict[Reason, tuple[str | bytes, Policy]] = {
    Reason.TEXT_TOO_LONG: ("x" * 401, SMALL),
    Reason.NOT_TEXT: (b"\xff", POLICY),
    Reason.NOTHING_FOUND: ("I can not do that.", POLICY),
    Reason.AMBIGUOUS: (created("src/a.py") + block("src/solve.py", "a\n", "b\n"), POLICY),
    Reason.MALFORMED: (HEADER + "@@ -1 +1 @@\n", POLICY),
    Reason.NO_PATH: ("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", POLICY),
    Reason.BINARY: ("GIT binary patch\n", POLICY),
    Reason.SYMLINK: (created("src/a.py").replace("100644", "120000"), POLICY),
    Reason.SUBMODULE: (created("src/a.py").replace("100644", "160000"), POLICY),
    Reason.MODE: (created("src/a.py").replace("100644", "100755"), POLICY),
    Reason.TOO_MANY_LINES: ("\n" * 150_001, POLICY),
    Reason.TOO_MANY_FILES: (whole("a") + whole("b"), SMALL),
    Reason.TOO_MANY_HUNKS: (HEADER + "@@ -1 +1 @@\n-a\n+b\n" * 2, SMALL),
    Reason.PATH_TOO_LONG: (created("x" * 31), SMALL),
    Reason.PATH_TWICE: (created("src/a.py") * 2, POLICY),
    Reason.NAME_UNSAFE: (created("../a"), POLICY),
    Reason.NAME_RESERVED: (created(".git/a"), POLICY),
    Reason.NOT_EDITABLE: (created("judge.py"), POLICY),
    Reason.FILE_MISSING: (block("src/absent.py", "a\n", "b\n"), POLICY),
    Reason.FILE_EXISTS: (created("src/solve.py"), POLICY),
    Reason.CONTEXT_MISSING: (block("src/solve.py", "absent\n", "b\n"), POLICY),
    Reason.CONTEXT_AMBIGUOUS: (block("src/solve.py", "\n", "b\n"), POLICY),
    Reason.OVERLAP: (block("src/solve.py", "    return x\n", "b\n") * 2, POLICY),
    Reason.DELETION_INCOMPLETE: ("--- a/src/solve.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def solve(x):\n", POLICY),
    Reason.FILE_AND_FOLDER: (created("src/deep/data.txt/x"), POLICY),
    Reason.CASE_COLLISION: (created("src/Solve.py"), POLICY),
    Reason.ATTRIBUTE_FILTER: (created(".gitattributes", "* filter=x"), Policy((".gitattributes",))),
    Reason.FILE_TOO_LARGE: (whole("a", "x" * 40 + "\n"), WIDE),
    Reason.TOO_MANY_BYTES: (whole("a", "x" * 35 + "\n") + whole("b", "x" * 35 + "\n"), WIDE),
    Reason.NO_EFFECT: (whole("README.md", "read me\n"), Policy(("**",))),
}


# No text leads to these: see below, and what becomes of points in the tests of the loop.
OTHERS = (Reason.TOO_COSTLY, Reason.NO_POINT)


@pytest.mark.parametrize("expected", [reason for reason in Reason if reason not in OTHERS])
def test_every_reason_is_reached(expected: Reason) -> None:
    """Each reason has a text that leads to it, and the message says what to do."""
    found = refusal(*TEXTS[expected])
    assert found.reason is expected
    code, _, rest = str(found).partition(": ")
    about, _, advice = rest.partition("; ")
    assert code == expected.value
    assert about == found.about
    assert about
    assert advice
    assert expected.advice


def test_too_costly() -> None:
    """Counts refuse what is known to cost much; behind them stands the processor's clock, which races here."""
    tree = Tree({"src/solve.py": File(b"a\nb\n" * 2000)})
    clock = itertools.count(step=100.0)
    with pytest.raises(Refusal) as caught:
        apply_text(tree, block("src/solve.py", "a\nb\nb\n", "c\n"), POLICY, effort=Effort(clock=lambda: next(clock)))
    assert caught.value.reason is Reason.TOO_COSTLY
    assert str(caught.value).endswith(f"; {Reason.TOO_COSTLY.advice}")


def test_caps_hold_exactly() -> None:
    """What stands exactly at a cap is taken."""
    text = whole("a", "x" * 39 + "\n") + whole("b", "x" * 19 + "\n")
    assert len(apply_text(TREE, text, WIDE)) == len(TREE) + 2


def test_apply_checks_what_parse_did_not() -> None:
    """A change that was parsed under wider caps, or made by hand, meets the policy's own when it is applied."""
    for change, expected in (
        (Change(Form.UNIFIED, ()), Reason.NOTHING_FOUND),
        (parse(created("a") + created("b")), Reason.TOO_MANY_FILES),
        (parse(HEADER + "@@ -1 +1 @@\n-a\n+b\n" * 2), Reason.TOO_MANY_HUNKS),
        (parse(created("a") + moved("a", "b")), Reason.PATH_TWICE),
    ):
        policy = SMALL if expected is not Reason.PATH_TWICE else Policy(("**",))
        with pytest.raises(Refusal) as caught:
            apply(TREE, change, policy)
        assert caught.value.reason is expected


def moved(source: str, path: str) -> str:
    return f"diff --git a/{source} b/{path}\nrename from {source}\nrename to {path}\n"


def test_policy_comes_before_content() -> None:
    """A change that may not touch a path is refused for that, whatever else is wrong with it."""
    text = block("src/solve.py", "absent\n", "b\n") + block("judge.py", "absent\n", "b\n")
    assert refusal(text).reason is Reason.NOT_EDITABLE
