"""Whatever Python comes, what operators make of it is Python again, and other Python.

Python's own library is the corpus: it is read and never run.
"""

import ast
import random
import sysconfig
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.proposers import Exhausted
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.code import read_code
from orchestrator.proposers.operators.hints import Hints
from orchestrator.proposers.operators.safety import parsed
from orchestrator.proposers.operators.table import ON_CODE
from tests.orchestrator.proposers.operators.past import Remembered

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
POLICY = Policy(editable=("a.py",))
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@lru_cache(maxsize=1)
def corpus() -> list[bytes]:
    """Files of up to 30 kB, from every corner of the library."""
    paths = sorted(path for path in LIBRARY.rglob("*.py") if "site-packages" not in path.parts)
    return [path.read_bytes() for path in paths if 200 < path.stat().st_size < 30_000]


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
@settings(RELAXED, max_examples=3 * settings().max_examples)
@given(st.integers(0, 10**6), st.sampled_from(list(ON_CODE)), st.integers(0, 10**6))
def test_operators_leave_python_behind(which: int, name: str, seed: int) -> None:
    """The operators themselves, without the check that follows them: the proposer leaves out what does not parse."""
    files = corpus()
    data = files[which % len(files)]
    code = read_code(data)
    edit = ON_CODE[name].work(code, random.Random(seed), Hints()) if code else None
    if edit is not None:
        assert edit.data != data
        assert parsed(edit.data) is not None, f"{name}: {edit.said}"
        assert edit.data.splitlines()[0] == data.splitlines()[0] or edit.line == 1


@RELAXED
@given(st.integers(0, 10**6), st.integers(0, 10**6))
async def test_proposals_mean_something_else(which: int, seed: int) -> None:
    """Not only other bytes: another program."""
    files = corpus()
    data = files[which % len(files)]
    past = Remembered(Tree.of({"a.py": data}))
    try:
        [proposal] = await Operators(POLICY).propose(past.brief(1, seed=seed))
    except Exhausted:
        return
    new = apply_text(past.trees["1"], proposal.text or "", POLICY)["a.py"].data
    old_tree, new_tree = parsed(data), parsed(new)
    assert (old_tree is None) == (new_tree is None)
    if old_tree is not None and new_tree is not None:
        assert ast.dump(old_tree) != ast.dump(new_tree)


@RELAXED
@given(st.text(), st.integers(0, 1000))
async def test_any_text(text: str, seed: int) -> None:
    """Any text at all, as Python and as a file of lines, gives a proposal that applies, or none."""
    data = text.encode("utf-8", "surrogatepass")
    for path in ("a.py", "a.json", "a.txt"):
        policy = Policy(editable=(path,))
        past = Remembered(Tree.of({path: data}))
        try:
            [proposal] = await Operators(policy).propose(past.brief(1, seed=seed))
        except Exhausted:
            continue
        assert apply_text(past.trees["1"], proposal.text or "", policy)[path].data != data
