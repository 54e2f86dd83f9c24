"""Search/replace blocks, whole files, and telling the forms apart."""

import pytest

from orchestrator.change import Policy, Reason, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.edits import Form
from orchestrator.change.forms import parse
from tests.orchestrator.change.samples import block, created, edited, reason, whole

ALL = Policy(("**",))
ONE = Policy(("src/f.py",))
FILE = "a\nb\nc\n"
TREE = Tree.of({"src/f.py": FILE})
BODY = "<<<<<<< SEARCH\nb\n=======\nB\n>>>>>>> REPLACE\n"

PATHS = [
    *("src/f.py\n", "`src/f.py`\n", "**src/f.py**\n", "### `src/f.py`\n", "File: src/f.py\n", "src/f.py:\n"),
    *("**`src/f.py`:**\n", "src/f.py\n\n", "src/f.py\n```python\n", "```python src/f.py\n", "```python:src/f.py\n"),
    *('```py path="src/f.py"\n', "```src/f.py\n", "```python\nsrc/f.py\n", "Some words.\n\nsrc/f.py\n"),
]


@pytest.mark.parametrize("label", PATHS)
@pytest.mark.parametrize("form", [Form.AUTO, Form.BLOCKS])
def test_path_above_a_block(label: str, form: Form) -> None:
    """The path stands above the block, with or without decoration and fence."""
    end = "```\nDone.\n" if "```" in label else "\nDone.\n"
    assert edited(label + BODY + end, "src/f.py", FILE, form) == "a\nB\nc\n"


@pytest.mark.parametrize("label", [label for label in PATHS if "python\nsrc" not in label])
@pytest.mark.parametrize("form", [Form.AUTO, Form.WHOLE])
def test_path_above_a_whole_file(label: str, form: Form) -> None:
    """The path stands above the fence or behind it."""
    text = label + ("" if "```" in label else "```\n") + "new\n```\nDone. Run it:\n```sh\npython x\n```\n"
    assert edited(text, "src/f.py", FILE, form) == "new\n"


@pytest.mark.parametrize("label", ["", "Here is the code:\n", "```python\n", "...\n", "Look at src/f.py and others\n"])
def test_no_path(label: str) -> None:
    """A block that names no file is refused, unless there is only one that it could mean."""
    end = "```\n" if "```" in label else ""
    assert reason(label + BODY + end, ALL, tree=TREE) is Reason.NO_PATH
    assert apply_text(TREE, label + BODY + end, ONE)["src/f.py"].data == b"a\nB\nc\n"
    file = (label or "```\n") + ("" if end or not label else "```\n") + "new\n```\n"
    assert reason(file, ALL, Form.WHOLE, tree=TREE) is Reason.NO_PATH
    assert reason(file, ALL, tree=TREE) is Reason.NOTHING_FOUND
    assert apply_text(TREE, file, ONE)["src/f.py"].data == b"new\n"


def test_the_one_file_without_a_fence() -> None:
    """Where one file is editable and whole files are asked for, the text is the file; else nobody guesses."""
    assert apply_text(TREE, "x = 1\n", ONE, Form.WHOLE)["src/f.py"].data == b"x = 1\n"
    assert reason("x = 1\n", ONE, tree=TREE) is Reason.NOTHING_FOUND
    assert reason("x = 1\n", ALL, Form.WHOLE, tree=TREE) is Reason.NO_PATH


def test_several_blocks() -> None:
    """A second block below is about the same file; all are compared with the file as it was."""
    text = block("src/f.py", "a\n", "b\n") + BODY
    assert edited(text, "src/f.py", FILE) == "b\nB\nc\n"
    assert reason(block("src/f.py", "a\n", "z\n") + "Then:\n" + BODY, ALL, tree=TREE) is Reason.NO_PATH
    side_by_side = block("src/f.py", "a\n", "x\n") + block("src/f.py", "b\n", "y\nb\n")
    assert edited(side_by_side, "src/f.py", FILE) == "x\ny\nb\nc\n"


def test_block_details() -> None:
    """Trailing blanks are forgiven where one place remains; kept lines stay the file's own."""
    assert edited(block("f.py", "a\nb\n", "a\nB\n"), "f.py", "a  \nb\t\n") == "a  \nB\n"
    assert edited(block("f.py", "b\n", ""), "f.py", FILE) == "a\nc\n"
    assert edited(block("f.py", "c\n", "d\n"), "f.py", "a\nc") == "a\nd"
    assert edited(block("f.py", "b\n", "x\n").replace("\n", "\r\n"), "f.py", FILE) == "a\nx\nc\n"
    assert apply_text(Tree(), block("f.py", "", "new\n"), ALL) == Tree.of({"f.py": "new\n"})
    assert reason(block("f.py", "", "new\n"), ALL, tree=Tree.of({"f.py": FILE})) is Reason.CONTEXT_AMBIGUOUS
    assert reason(block("f.py", " b\n", "new\n"), ALL, tree=Tree.of({"f.py": FILE})) is Reason.CONTEXT_MISSING


BROKEN = {
    "f.py\n<<<<<<< SEARCH\na\n=======\nb\n": Reason.MALFORMED,
    "f.py\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n": Reason.MALFORMED,
    "f.py\n<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n=======\nb\n>>>>>>> REPLACE\n": Reason.MALFORMED,
    "f.py\n<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE\n": Reason.AMBIGUOUS,
    "f.py\n=======\n": Reason.MALFORMED,
    "f.py\n>>>>>>> REPLACE\n": Reason.MALFORMED,
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken_blocks(text: str) -> None:
    """A block with a marker too few or too many is refused."""
    assert reason(text, ALL, Form.BLOCKS) is BROKEN[text]


FENCES = {
    "f.py\n```\na\n": Reason.MALFORMED,
    "f.md\n```\na\n```python\nb\n```\nc\n```\n": Reason.AMBIGUOUS,
    "f.md\n```\na\n```\nb\n```\nc\n```\n": Reason.AMBIGUOUS,
    "f.py\n```g.py\na\n```\n": Reason.AMBIGUOUS,
    "f.py\n```\na\n```\nf.py\n```\nb\n```\n": Reason.PATH_TWICE,
}


@pytest.mark.parametrize("text", FENCES)
@pytest.mark.parametrize("form", [Form.AUTO, Form.WHOLE])
def test_fences_that_mislead(text: str, form: Form) -> None:
    """Where a file may end too early, or be two files, it is refused."""
    assert reason(text, ALL, form) is FENCES[text]


def test_two_blocks_for_one_file() -> None:
    """Two blocks without a path cannot both be the one file."""
    assert reason("```\na\n```\nor\n```\nb\n```\n", ONE, Form.WHOLE, TREE) is Reason.AMBIGUOUS


def test_longer_fence_holds_shorter_ones() -> None:
    """A file with fences of its own goes into a longer one, or one of the other kind."""
    inner = "text\n```python\nx\n```\n"
    for mark in ("````", "~~~"):
        assert apply_text(Tree(), f"f.md\n{mark}\n{inner}{mark}\n", ALL) == Tree.of({"f.md": inner})


def test_overwriting_keeps_the_mode() -> None:
    """A whole file has no mode of its own: the old one stays."""
    moded = apply_text(
        TREE, "diff --git a/src/f.py b/src/f.py\nnew mode 100755\n", Policy(("**",), mode_may_change=True)
    )
    assert apply_text(moded, whole("src/f.py"), ALL)["src/f.py"].executable


FORMS = {
    created("f.py"): Form.UNIFIED,
    "@@ -1 +1 @@\n-a\n+b\n": Form.UNIFIED,
    f"f.py\n```diff\n{created('f.py')}```\n": Form.UNIFIED,
    block("f.py", "a\n", "b\n"): Form.BLOCKS,
    f"f.py\n```python\n{BODY}```\n": Form.BLOCKS,
    block("f.md", "a\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\nx.py\n```\ncode\n```\n"): Form.BLOCKS,
    whole("f.py"): Form.WHOLE,
    created("f.py") + block("f.py", "a\n", "b\n"): None,
    created("f.py") + whole("f.py"): None,
    block("f.py", "a\n", "b\n") + whole("f.py"): None,
    whole("README.md", f"An example:\n{created('f.py')}"): None,
}


@pytest.mark.parametrize("text", FORMS)
def test_detection(text: str) -> None:
    """The form is found where there is one only; a text that could be two is refused."""
    expected = FORMS[text]
    if expected is None:
        assert reason(text, ALL) is Reason.AMBIGUOUS
    elif text.startswith("@@"):
        assert reason(text, ALL) is Reason.MALFORMED
    else:
        assert parse(text).form is expected


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("text", ["", "\n \n", b"", "\ufeff"])
def test_empty(text: str | bytes, form: Form) -> None:
    """An empty text is no change in any form."""
    assert reason(text, ONE, form) is Reason.NOTHING_FOUND


@pytest.mark.parametrize("text", [b"\xff\xfe", "\ud800", "a\0b", b"a\0b"])
def test_not_text(text: str | bytes) -> None:
    """What is not UTF-8, or holds a NUL, is refused."""
    assert reason(text) is Reason.NOT_TEXT
