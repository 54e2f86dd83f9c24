"""Any text at all: a new tree or a typed refusal, soon, and never more than the policy allows."""

import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.change import Caps, Policy, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import difference
from orchestrator.change.edits import Form
from orchestrator.change.names import check_name
from tests.orchestrator.change.samples import POLICY, SECRET, TREE, block, whole

# Lines of changes in each form, and what is none.
LINES = """diff --git a/src/solve.py b/src/solve.py|--- a/src/solve.py|+++ b/src/solve.py|--- /dev/null|+++ /dev/null
@@ -1,2 +1,2 @@|@@ -5 +5 @@| def solve(x):|-    return x|+    return 2|| |\\ No newline at end of file
new file mode 100644|deleted file mode 100644|old mode 100644|new mode 100755|rename from src/solve.py
rename to src/n.py|copy from src/hidden.py|copy to src/deep/x|index 12..34 100644|Binary files a and b differ
src/solve.py|judge.py|src/Solve.py|../x
```|```python|```src/deep/new|~~~|<<<<<<< SEARCH|=======|>>>>>>> REPLACE|    return x|-- |\r"""
PIECES = [f"{line}\n" for row in LINES.split("\n") for line in row.split("|")]
PIECES += ["@@", "prose about it", "\x1b[2J", "\u200b", '"a/\\303\\274"', "\ufeff"]
SOUP = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=25).map("".join)
CAPS = Caps(files=3, hunks=4, file_bytes=500, total_bytes=800)
TIGHT = Policy(POLICY.editable, POLICY.hidden, CAPS)


def outcome(text: str | bytes, form: Form) -> Tree | str:
    try:
        return apply_text(TREE, text, TIGHT, form)
    except Refusal as refusal:
        return str(refusal)


def check(text: str | bytes, form: Form) -> None:
    """What must be true of any text."""
    result = outcome(text, form)
    if isinstance(result, str):
        assert result.isprintable()
        assert SECRET not in result
        return
    touched = [path for path in result.keys() | TREE.keys() if result.get(path) != TREE.get(path)]
    assert 0 < len(touched) <= 2 * CAPS.files
    for path in touched:
        check_name(path)
        TIGHT.check(path)
        assert not (path in result and result[path].executable)
        assert len(result[path].data if path in result else b"") <= CAPS.file_bytes
    assert len({path.casefold() for path in result}) == len(result)
    assert apply_text(TREE, difference(TREE, result), Policy(("**",))) == result


@pytest.mark.parametrize("form", list(Form))
@given(text=SOUP)
def test_soup_of_pieces(form: Form, text: str) -> None:
    """Pieces of every form in any order."""
    check(text, form)


@pytest.mark.parametrize("form", list(Form))
@given(text=st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_arbitrary_text(form: Form, text: str | bytes) -> None:
    """Text that means nothing."""
    check(text, form)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=3 * settings().max_examples)
def test_scribbled_changes(seed: int) -> None:
    """Changes that were good before somebody scribbled on them."""
    rng = random.Random(seed)
    new = Tree({**TREE, **Tree.of({"src/solve.py": "def solve(x):\n    return 3\n", "src/deep/n": "x\n"})})
    good = [difference(TREE, new), block("src/solve.py", "    return x\n", "    return 3\n"), whole("src/solve.py")]
    text = list(rng.choice(good))
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text))
        text[at : at + rng.randrange(3)] = rng.choice(["", "\n", " ", "-", "+", "@", "/", ".", rng.choice(PIECES)])
    check("".join(text), rng.choice(list(Form)))


GROWING = {
    "blank lines": "\nx\n",
    "headers": "--- a/src/solve.py\n+++ b/src/solve.py\n",
    "git headers": "diff --git a/src/solve.py b/src/solve.py\n",
    "hunks": "--- a/src/solve.py\n+++ b/src/solve.py\n@@ -1 +1 @@\n-a\n+b\n",
    "open blocks": "src/solve.py\n<<<<<<< SEARCH\n",
    "fences": "```\n",
    "labelled fences": "src/a.py\n```\n",
    "backticks": "`",
    "at signs": "@@ -1,1 ",
    "spaces": " ",
    "quotes": 'diff --git "a/\\303 "b/\\303\n',
    "hashes": "#*:`",
    "slashes": "a/",
}


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", GROWING)
def test_time_is_linear(name: str, form: Form) -> None:
    """Four times the text takes nothing like sixteen times as long."""
    policy = Policy(("src/*.py",), caps=Caps(text_bytes=1 << 22, hunks=10**6, files=10**6))
    long, short = math.inf, math.inf
    for _ in range(3):  # the least of a few: a busy machine makes single ones longer
        long = min(long, spent(GROWING[name], 100_000, form, policy))
        short = min(short, spent(GROWING[name], 25_000, form, policy))
        if long < 10 * short + 0.1:
            return
    pytest.fail(f"{long:g} s and {short:g} s")


def spent(piece: str, size: int, form: Form, policy: Policy) -> float:
    text = piece * (size // len(piece))
    started = time.thread_time()
    with pytest.raises(Refusal):
        apply_text(TREE, text, policy, form)
    return time.thread_time() - started
