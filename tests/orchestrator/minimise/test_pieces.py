"""Any selection of the pieces of a change is a tree between the two, and the cuts go from hunks to tokens."""

import json
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import File, Tree
from orchestrator.minimise.pieces import Pieces
from orchestrator.task import Parameters

WORDS = st.lists(st.sampled_from(["a = 1\n", "b = a + 1\n", "\n", "# é\n", "c = a * b + 2\n", "end"]), max_size=12)


@given(WORDS, WORDS)
def test_all_and_nothing(old: list[str], new: list[str]) -> None:
    """All pieces together make the new tree, none of them the old one, and every selection can be told of."""
    before, after = Tree.of({"x.txt": "".join(old)}), Tree.of({"x.txt": "".join(new)})
    pieces = Pieces(before, after)
    assert pieces.tree(pieces.whole) == after
    assert pieces.tree(frozenset()) == before
    for level in pieces.levels:
        assert frozenset().union(*level) == pieces.whole
        assert sum(map(len, level)) == len(pieces.whole)
        for part in level:
            tree = pieces.tree(pieces.whole - part)
            assert tree is not None
            tree["x.txt"].data.decode()
            assert pieces.told(part).where.startswith("x.txt:")


def test_places_in_one_hunk() -> None:
    """Ten changed places that a diff shows as one hunk are ten parts, of which each can be left out alone."""
    old = "".join(f"x{at} = {at}\n" for at in range(10))
    new = "".join(f"x{at} = {at} + 0\n" for at in range(10))
    pieces = Pieces(Tree.of({"a.py": old}), Tree.of({"a.py": new}))
    assert [len(level) for level in pieces.levels] == [1, 10]
    for at, part in enumerate(pieces.levels[-1]):
        tree = pieces.tree(part)
        assert tree is not None
        assert tree["a.py"].data.decode() == old.replace(f"x{at} = {at}\n", f"x{at} = {at} + 0\n")


def test_statements_of_python() -> None:
    """A block that came as a whole is one part first; half of it would not parse, and is no candidate."""
    old = "def f(x):\n    return x\n"
    new = "def f(x):\n    for i in range(3):\n        x += i\n        x -= 1\n    return max(\n        x,\n    )\n"
    pieces = Pieces(Tree.of({"a.py": old}), Tree.of({"a.py": new}))
    blocks = [pieces.told(part).after.split(" … ")[0] for part in pieces.levels[1]]
    assert blocks == ["for i in range(3):", "return max("]
    statements = [pieces.told(part).after for part in pieces.levels[2]]
    assert "for i in range(3):" in statements
    assert "x -= 1" in statements
    head = next(part for part in pieces.levels[2] if pieces.told(part).after == "for i in range(3):")
    assert pieces.tree(head) is None


def test_tokens_of_a_line() -> None:
    """Two changes within one line are two parts in the end."""
    old, new = "y = f(a, 1) + g(b)\n", "y = f(a, 2) + h(b)\n"
    pieces = Pieces(Tree.of({"a.c": old}), Tree.of({"a.c": new}))
    told = [(pieces.told(part).before, pieces.told(part).after) for part in pieces.levels[-1]]
    assert told == [("1", "2"), ("g", "h")]


def test_whole_files() -> None:
    """What is new, gone, moved, no text, or may be executed now, comes or goes as one."""
    old = Tree({"gone": File(b"1\n"), "moved": File(b"2\n"), "bytes": File(b"\0a"), "mode": File(b"3\n")})
    new = Tree({"new": File(b"4\n"), "place": File(b"2\n"), "bytes": File(b"\0b"), "mode": File(b"3\n", True)})
    pieces = Pieces(old, new)
    assert [pieces.told(part).where for part in pieces.levels[-1]] == ["bytes", "gone", "mode", "moved, place", "new"]
    trees = [pieces.tree(frozenset(some)) for count in range(6) for some in combinations(range(5), count)]
    assert len({tree.digest for tree in trees if tree}) == 32
    moved = pieces.tree(frozenset({3}))
    assert moved is not None
    assert sorted(moved) == ["bytes", "gone", "mode", "place"]


def test_points() -> None:
    """Each key goes back by itself; with the choice that another one hangs on, that one goes, too."""
    space = {
        "kind": {"type": "choice", "values": ["a", "b"]},
        "depth": {"type": "int", "low": 1, "high": 9, "when": {"kind": ["b"]}},
        "rate": {"type": "int", "low": 1, "high": 9},
    }
    parameters = Parameters.model_validate({"file": "p.json", "space": space})
    old, new = {"kind": "a", "rate": 1}, {"kind": "b", "depth": 3, "rate": 2}
    pieces = Pieces(Tree.of({"p.json": json.dumps(old)}), Tree.of({"p.json": json.dumps(new)}), parameters)
    names = {pieces.told(part).where.split(": ")[1]: part for part in pieces.levels[-1]}
    assert sorted(names) == ["depth", "kind", "rate"]
    without_kind = pieces.tree(names["depth"] | names["rate"])
    assert without_kind is not None
    assert json.loads(without_kind["p.json"].data) == {"kind": "a", "rate": 2}
    assert pieces.tree(names["kind"]) is None  # nobody says how deep


def test_very_many() -> None:
    """A change of more places than can be tried one by one is cut less finely, and says so."""
    old = "".join(f"{at}\n" for at in range(3000))
    new = "".join(f"{at} x\n" for at in range(3000))
    pieces = Pieces(Tree.of({"a.txt": old}), Tree.of({"a.txt": new}))
    assert pieces.coarse
    assert max(map(len, pieces.levels)) <= pieces.most
