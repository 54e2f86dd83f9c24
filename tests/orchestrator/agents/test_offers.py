"""From what an agent left to a change: whatever it did, applying the offer gives its editable files and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.agents import offers
from orchestrator.agents.messages import Work
from orchestrator.agents.offers import NoOffer, NothingDone, offer_of
from orchestrator.change import File, Tree, apply_text
from tests.orchestrator.agents.local import TREE, task

POLICY = task().policy()
NAMES = st.sampled_from([*TREE, "lib/b.py", "lib/deep/c.py", "new.txt", ".gitattributes", "lib/conftest.py"])
LINES = st.lists(st.sampled_from(["", "a", "b", "```", "--- a/solve.py", "diff --git a/x b/x", "<<<<<<< SEARCH", "é"]))
TEXTS = st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), LINES, st.sampled_from(["", "\n", "\r\n"]))


@given(st.dictionaries(NAMES, TEXTS, max_size=4), st.lists(NAMES, max_size=3))
def test_offer_gives_the_files_back(files: dict[str, bytes], deleted: list[str]) -> None:
    """The diff applied to the parent is the agent's work on what it may change, byte by byte."""
    try:
        offer = offer_of(TREE, Work(files, tuple(deleted)), POLICY)
    except NothingDone:
        mine = {path for path in (*files, *deleted) if path == "solve.py" or path in ("lib/a.py", "lib/b.py")}
        assert all(path in TREE and files.get(path) == TREE[path].data for path in mine if path in files)
        assert not [path for path in mine if path not in files and path in TREE]
        return
    after = apply_text(TREE, offer.text, POLICY)
    for path in ("solve.py", "lib/a.py", "lib/b.py"):
        gone = path in deleted and path not in files
        wanted = None if gone else files.get(path, TREE[path].data if path in TREE else None)
        assert (after[path].data if path in after else None) == wanted
    for path in ("other.py", "secret.txt", "README"):
        assert after[path] == TREE[path]


def test_modes_stay() -> None:
    """A file that can be executed stays so, and a new one is plain."""
    tree = Tree({"solve.py": File(b"a\n", executable=True)})
    offer = offer_of(tree, Work({"solve.py": b"b\n", "lib/n.py": b"n\n"}, ()), POLICY)
    after = apply_text(tree, offer.text, POLICY)
    assert [after[path].executable for path in ("solve.py", "lib/n.py")] == [True, False]


def test_nothing_done_names_what_was() -> None:
    """Who changed only what it may not is told which."""
    with pytest.raises(NothingDone, match=r"it changed a\.txt, b\.txt, c\.txt and 2 more"):
        offer_of(TREE, Work({f"{name}.txt": b"" for name in "abcde"}, ()), POLICY)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"solve.py": b"x\n" * 600_000, "other.py": b"x"}, "solve.py would have 1200000 bytes"),
        ({f"lib/{name}.py": b"x\n" * 500_000 for name in "abcde"}, "5000000 bytes, at most 4194304"),
    ],
)
def test_too_large_to_be_compared(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], said: str) -> None:
    """What is larger than a change may be is refused with its size, and nobody compares it line by line."""

    def never(*_: object) -> str:
        raise AssertionError("compared")

    monkeypatch.setattr(offers, "difference", never)
    with pytest.raises(NoOffer, match=said) as refused:
        offer_of(TREE, Work(files, ()), POLICY)
    assert refused.value.left_out == tuple(name for name in files if name == "other.py")
