"""From what an agent left to a change: whatever it did, applying the offer gives its editable files and no other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.agents import offers
from orchestrator.agents.litter import CACHES, LEFTOVERS, unwalked
from orchestrator.agents.messages import Work
from orchestrator.agents.offers import LeftOut, NoOffer, NothingDone, offer_of
from orchestrator.change import File, Policy, Tree
from orchestrator.change.applying import apply_text
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
        ({"solve.py": b"x\n" * 600_000, "other.py": b"x"}, "solve.py would have 1.14MiB, at most 1MiB"),
        ({f"lib/{name}.py": b"x\n" * 500_000 for name in "abcde"}, "4.77MiB, at most 4MiB"),
    ],
)
def test_too_large_to_be_compared(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], said: str) -> None:
    """What is larger than a change may be is refused with its size, and nobody compares it line by line."""

    def never(*_: object) -> str:
        raise AssertionError("compared")

    monkeypatch.setattr(offers, "compare", never)
    with pytest.raises(NoOffer, match=said) as refused:
        offer_of(TREE, Work(files, ()), POLICY)
    assert refused.value.left_out == LeftOut(tuple(name for name in files if name == "other.py"))


LITTER = {
    ".aider.chat.history.md": b"said\n",
    ".aider.tags.cache.v4/cache.db": b"\x00\x01",
    "__pycache__/solve.cpython-311.pyc": b"\x00",
    "lib/__pycache__/a.cpython-311.pyc": b"\x00",
    "lib/a.pyc": b"\x00",
    ".pytest_cache/v/cache/lastfailed": b"{}",
    ".mypy_cache/3.11/x.json": b"{}",
    ".ruff_cache/x": b"x",
    "node_modules/.cache/x": b"x",
    ".claude/settings.local.json": b"{}",
    ".solve.py.swp": b"\x00",
    "solve.py~": b"old",
    "lib/#a.py#": b"x",
    "solve.py.orig": b"x",
    ".DS_Store": b"\x00",
}
ALL = Policy(("**",))


@pytest.mark.parametrize("name", LITTER)
def test_what_tools_leave_behind(name: str) -> None:
    """It is no part of the change, of its size or of its diff, though ** reaches it; the agent is told its name."""
    alone = offer_of(TREE, Work({"solve.py": b"print(2)\n"}, ()), ALL)
    offer = offer_of(TREE, Work({"solve.py": b"print(2)\n", name: LITTER[name]}, ()), ALL)
    assert (offer.text, offer.lines, offer.changed) == (alone.text, alone.lines, alone.changed)
    assert offer.left_out == LeftOut((), (name,))
    assert offer.left_out.told("you") == f"left out: {name}, which tools leave behind"
    with pytest.raises(NothingDone, match="is what tools leave behind"):
        offer_of(TREE, Work({name: LITTER[name]}, ()), ALL)


def test_much_of_it_refuses_nothing() -> None:
    """More of it than a change may have files or bytes does not keep the change from being taken."""
    many = {f"__pycache__/{number}.pyc": b"\x00" * 100_000 for number in range(100)}
    offer = offer_of(TREE, Work({"solve.py": b"print(2)\n", **many}, ()), ALL)
    assert (offer.changed, len(offer.left_out)) == (("solve.py",), 100)


@pytest.mark.parametrize(
    ("name", "editable"),
    [
        (".aider.conf.yml", ".aider.conf.yml"),
        (".aider.conf.yml", ".aider*"),
        (".claude/commands/a.md", ".claude/**"),
        ("lib/__pycache__/a.txt", "**/__pycache__/*"),
        ("lib/patch.orig", "lib/*.orig"),
    ],
)
def test_named_by_the_task(name: str, editable: str) -> None:
    """A path or a glob that has the name itself in it makes it part of a change, and only that one."""
    policy = Policy(("**", editable))
    offer = offer_of(TREE, Work({name: b"x\n", "a.swp": b"x\n"}, ()), policy)
    assert (offer.changed, offer.left_out) == ((name,), LeftOut((), ("a.swp",)))
    with pytest.raises(NothingDone):
        offer_of(TREE, Work({name: b"x\n"}, ()), Policy(("**", "*", "lib/**", ".*", "lib/*", ".claude-code/**")))


def test_there_before() -> None:
    """A file of the workspace may be changed and deleted as usual, whatever its name is."""
    tree = Tree.of({".aider.conf.yml": "a\n", "lib/patch.orig": "b\n"})
    offer = offer_of(tree, Work({".aider.conf.yml": b"c\n"}, ("lib/patch.orig",)), ALL)
    assert (offer.changed, len(offer.left_out)) == ((".aider.conf.yml", "lib/patch.orig"), 0)


def test_what_is_not_looked_into() -> None:
    """An agent's chamber leaves out the caches, but for those that the task names."""
    assert unwalked(ALL) == list(CACHES)
    assert set(CACHES) - set(unwalked(Policy(("**/__pycache__/*", "node_modules/mine/x.js")))) == {
        "__pycache__",
        "node_modules",
    }


def test_the_page_has_the_list() -> None:
    """docs/agents.md shows every name."""
    page = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
    assert not [name for name in (*CACHES, *LEFTOVERS) if f"`{name}`" not in page]


def test_T93_outside_a_region() -> None:
    """What an agent did outside the region of a file is refused with all of it, and the line says where it was."""
    tree = Tree.of({"a.py": "x = 1\n# X-START\ny = 1\n# X-END\n"})
    policy = Policy(editable=("a.py:X",))
    offer = offer_of(tree, Work({"a.py": b"x = 1\n# X-START\ny = 2\n# X-END\n"}, ()), policy)
    assert "+y = 2" in offer.text
    for left in (Work({"a.py": b"x = 2\n# X-START\ny = 2\n# X-END\n"}, ()), Work({}, ("a.py",))):
        with pytest.raises(NoOffer, match=r"not editable: a\.py: .*; of this file you may edit: a\.py:X"):
            offer_of(tree, left, policy)
