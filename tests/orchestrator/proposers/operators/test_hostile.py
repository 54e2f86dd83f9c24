"""Files that a candidate may have written to break whoever reads them: nothing crashes, hangs or goes wrong unseen."""

import pytest

from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.proposers import Exhausted
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.code import read_code
from orchestrator.proposers.operators.safety import parsed
from tests.orchestrator.proposers.operators.past import Remembered
from tests.orchestrator.proposers.operators.samples import DEEP, ODD, SOLVER

POLICY = Policy(editable=("a.py",))
# What these are, LibCST could be killed with, or kept busy for years; so they must not reach it.
OF_SEVERAL_LINES = ("lists", "elifs", "patterns", "patterns in brackets", "maps in patterns", "indents")


async def worked(data: bytes, numbers: int) -> int:
    """How many proposals came, every one of them checked."""
    past = Remembered(Tree.of({"a.py": data}))
    count = 0
    for number in range(1, numbers + 1):
        try:
            [proposal] = await Operators(POLICY).propose(past.brief(number, parent="1"))
        except Exhausted:
            continue
        count += 1
        new = apply_text(past.trees["1"], proposal.text or "", POLICY)["a.py"].data
        assert new != data
        if parsed(data) is not None:
            assert parsed(new) is not None
    return count


@pytest.mark.parametrize("name", DEEP)
async def test_deep(name: str) -> None:
    """LibCST never sees it, and nothing crashes or hangs; what has several lines is worked on by them."""
    data = DEEP[name].encode()
    assert read_code(data) is None or name == "indents"
    assert await worked(data, 3) == (3 if name in OF_SEVERAL_LINES else 0)


@pytest.mark.parametrize("name", ODD)
async def test_odd(name: str) -> None:
    """What is proposed can be applied, still parses where it did, and is something else."""
    assert await worked(ODD[name].encode(), 25) or name in ("only a comment", "old returns")


async def test_only_the_change_changes() -> None:
    """Line ends, tabs, form feeds and a byte order mark are the same before and after."""
    data = b"\xef\xbb\xbf# c\r\ndef f(x):\r\n\tx = x + 1.5\r\n\x0c\r\n\treturn x\r\n"
    past = Remembered(Tree.of({"a.py": data}))
    for number in range(1, 30):
        [proposal] = await Operators(POLICY).propose(past.brief(number, parent="1"))
        new = apply_text(past.trees["1"], proposal.text or "", POLICY)["a.py"].data
        assert new.startswith(b"\xef\xbb\xbf# c\r\ndef f(x):\r\n\t")
        assert new.endswith(b"\r\n\x0c\r\n\treturn x\r\n")
        assert new.count(b"\n") == new.count(b"\r\n")


async def test_a_file_over_the_cap_is_worked_on_by_lines() -> None:
    """Parsing has a price, and so the tree has a bound."""
    big = (SOLVER.split("if __name__")[0] * 200).encode()
    assert read_code(big) is None
    past = Remembered(Tree.of({"a.py": big}))
    [proposal] = await Operators(POLICY).propose(past.brief(1))
    assert proposal.operator.startswith("line ")
