"""The proposer as a whole: what it may touch, that it repeats nothing, and that it finds what there is to find."""

import ast
import re
from dataclasses import replace

import pytest

from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Exhausted
from orchestrator.proposers.operators import Operators, editable_texts
from orchestrator.proposers.operators.table import ON_CODE, ON_LINES
from tests.docs.pages import ROOT, code_of, table
from tests.orchestrator.proposers.operators.past import Remembered, search
from tests.orchestrator.proposers.operators.samples import JSON, SOLVER

POLICY = Policy(editable=("**/*.py", "*.json"), hidden=("secret.py",))


async def test_proposals() -> None:
    """As many small diffs as are asked for, no two alike, each named and told; without editable text, one line."""
    past = Remembered(Tree.of({"solve.py": SOLVER, "data.bin": b"\0"}))
    drafts = await Operators(POLICY).propose(past.brief(1, count=40))
    trees = {apply_text(past.trees["1"], draft.text or "", POLICY).digest for draft in drafts}
    assert len(trees | {past.trees["1"].digest}) == len(drafts) + 1 == 41
    for draft in drafts:
        assert len(draft.operator) <= 64
        assert draft.description.endswith("of solve.py")
        assert (draft.text or "").startswith("diff --git a/solve.py b/solve.py\n")
        assert len((draft.text or "").splitlines()) < 60
    with pytest.raises(Exhausted, match="no editable file is text"):
        await Operators(Policy(editable=("*",))).propose(Remembered(Tree.of({"a.bin": b"\0"})).brief(1))


async def test_the_same_past_gives_the_same_proposals() -> None:
    """Whether the proposer was there all the time or is new; another seed, number or turn gives another."""
    root = Tree.of({"solve.py": SOLVER})
    past = await search(Operators(POLICY), POLICY, root, lambda tree: int(tree.digest[:4], 16), 25, 3)
    old = Operators(POLICY)
    for number in range(1, 8):
        old_one = await old.propose(past.brief(number, count=3))
        assert old_one == await Operators(POLICY).propose(past.brief(number, count=3))
    first = await old.propose(past.brief(1))
    for other in (past.brief(2), past.brief(1, seed=2), past.brief(1, again=1)):
        assert await old.propose(other) != first


async def test_nothing_is_proposed_twice() -> None:
    """A file with three ways to change it: each comes once, then it is said that there is no more."""
    root = Tree.of({"a.py": "def f(x, y):\n    return x and y\n"})
    past = Remembered(root)
    proposer = Operators(POLICY)
    texts = []
    for number in range(1, 4):
        [proposal] = await proposer.propose(past.brief(number, parent="1"))
        tree = apply_text(root, proposal.text or "", POLICY)
        texts.append(tree["a.py"].data.decode().split("return ")[1])
        past.add("1", proposal, tree, 0.0)
    assert sorted(texts) == ["x\n", "x or y\n", "y\n"]
    with pytest.raises(Exhausted, match="nothing new on 1"):
        await proposer.propose(past.brief(4, parent="1"))


async def test_a_search_that_learns_leaves_dead_places() -> None:
    """Where no change ever had an effect, hardly any more come, whichever operator looks there; a search that does not
    learn goes on with operators that have nowhere else to go.
    """
    dead = "".join(
        f"def g{at}(x):\n    y = x + {at}\n    y += 1\n    return y if y > {at} else 0\n\n\n" for at in range(3)
    )
    root = Tree.of({"a.py": f"def f(x):\n    return x * 3.5 + 7.25\n\n\n{dead}"})
    share = {}
    for learning in (Learning.OFF, Learning.GRADIENT):
        past, proposer, meta = Remembered(root, 0.0), Operators(POLICY), Meta(Learnt(learning))
        for number in range(1, 41):
            chooser = meta.chooser(past.ended, 1, number, 0)
            [made] = await proposer.propose(replace(past.brief(number, parent="1"), chooser=chooser))
            score = -1.0 if " in f()" in made.description else 0.0
            past.add("1", made, apply_text(root, made.text or "", POLICY), score)
        share[learning] = sum(" in f()" in it.description for it in past.ended[10:]) / 30
    assert share[Learning.GRADIENT] > 0.8 > share[Learning.OFF]


def paths(tree: Tree, policy: Policy, left_out: str | None = None) -> list[str]:
    return [target.path for target in editable_texts(tree, policy, left_out)]


def test_which_files() -> None:
    """Editable, not hidden, text; small ones first; the parameters only where there is nothing else. What may be
    changed in a file that lost its region is not known.
    """
    tree = Tree.of(
        {
            "src/long.py": SOLVER * 3,
            "solve.py": SOLVER,
            "secret.py": "x = 1\n",
            "conftest.py": "x = 1\n",
            "empty.py": "",
            "notes.txt": "1\n",
            "params.json": JSON,
            "latin.py": b"x = '\xe9'\n",
            "nul.py": b"x = 1\0",
        }
    )
    assert paths(tree, POLICY) == ["params.json", "solve.py", "src/long.py"]
    assert paths(tree, POLICY, "params.json") == ["solve.py", "src/long.py"]
    assert paths(tree, Policy(editable=("params.json",)), "params.json") == ["params.json"]
    assert paths(tree, Policy(editable=("notes.md",))) == []
    region = Policy(editable=("a.txt:X",))
    assert paths(Tree.of({"a.txt": "1 2 3\n"}), region) == []
    assert paths(Tree.of({"a.txt": "X-START\n1 2 3\nX-END\n"}), region) == ["a.txt"]


def value(tree: Tree, name: str) -> float:
    return float(ast.literal_eval(re.findall(rf"^{name} = (.*)$", tree["a.py"].data.decode(), re.MULTILINE)[-1]))


@pytest.mark.parametrize("seed", [0, 1])
async def test_a_constant_is_found(seed: int) -> None:
    """The score depends on one number among others; it is found to one part in a hundred."""
    root = Tree.of({"a.py": "RATE = 1.0\nDEAD = 5.0\n\n\ndef f(x):\n    return x * RATE\n"})

    def score(tree: Tree) -> float | None:
        try:
            return -abs(value(tree, "RATE") - 7.3)
        except (ValueError, IndexError, SyntaxError):
            return None

    past = await search(Operators(POLICY), POLICY, root, score, 120, seed)
    assert value(past.tree(past.best), "RATE") == pytest.approx(7.3, rel=0.01)


@pytest.mark.parametrize("seed", [0, 1])
async def test_a_comparison_is_found(seed: int) -> None:
    """No number helps here: the edge has to be let in."""
    root = Tree.of({"a.py": "def f(x, y):\n    if x < y:\n        return 0.5\n    return x - y\n"})

    def score(tree: Tree) -> float:
        return float(b"x <= y" in tree["a.py"].data)

    past = await search(Operators(POLICY), POLICY, root, score, 100, seed)
    assert past.scores[past.best] == 1.0


def test_every_operator_is_documented() -> None:
    """In the order of the code, under the name that a node shows."""
    found = table(ROOT / "docs" / "operators.md", "operator", "what it does")
    assert [code_of(cell)[0] for cell in found.column("operator")] == [*ON_CODE, *ON_LINES]


@pytest.mark.parametrize("region", ["a.py:EVOLVE-BLOCK", "a.py::tuned"])
async def test_regions_are_respected(region: str) -> None:
    """Operators work inside the region of a file only, and find as much there as in a file of its own."""
    block = "# EVOLVE-BLOCK-START\ndef tuned(x):\n    return 3 * x + 7\n# EVOLVE-BLOCK-END\n"
    around = [f"def f{at}(x):\n    return {at} * x + 11 if x > 5 else 13\n" for at in range(100, 140)]
    root = Tree.of({"a.py": "\n".join([*around[:20], block, *around[20:]])})
    policy = Policy(editable=(region,))
    drafts = await Operators(policy).propose(Remembered(root).brief(1, count=8))
    assert len(drafts) == 8
    for draft in drafts:
        assert "in tuned(), line" in draft.description
        apply_text(root, draft.text or "", policy)


async def test_regions_of_other_text() -> None:
    """Numbers and lines of any text stay as they are outside the marks."""
    text = "".join(f"before{at} = {at}\n" for at in range(50)) + "# X-START\nrate = 5\n# X-END\n"
    root, policy = Tree.of({"a.cfg": text}), Policy(editable=("a.cfg:X",))
    drafts = await Operators(policy).propose(Remembered(root).brief(1, count=4))
    assert len(drafts) == 4
    assert all("line 52 of a.cfg" in draft.description for draft in drafts)
