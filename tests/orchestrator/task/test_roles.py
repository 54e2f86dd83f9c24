"""Shares that can not be are refused in one line, and the defaults are those of the benchmark."""

import pytest
from pydantic import ValidationError

from benchmarks.allocation import ADAPTIVE
from orchestrator.budget import Accounts
from orchestrator.loop.shares import split_of
from orchestrator.task.roles import Roles, RoleSpec, VerifierSpec


def test_defaults() -> None:
    """What is measured is what ships."""
    assert split_of(Roles(evolver=RoleSpec(), verifier=VerifierSpec()), Accounts()) == ADAPTIVE


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"evolver": {"floor": 0.2}}, "floor 0.2, share 0.1 and cap 0.5 are not in this order"),
        ({"verifier": {"share": 0.3}}, "share 0.3 and cap 0.2 are not in this order"),
        ({"evolver": {"cap": 0.8}, "verifier": {"cap": 0.2}}, "are 1 together; leave users at least a tenth"),
        ({"verifier": {"thinking": 500}}, "is 0 or at least 1,024 tokens"),
        ({"verifier": {"holds": 0}}, "greater than or equal to 1"),
        ({"evolver": {"thinking": 0}}, "Extra inputs are not permitted"),
    ],
)
def test_bad_input(given: dict[str, object], told: str) -> None:
    """Each says what is wrong with it."""
    with pytest.raises(ValidationError, match=told):
        Roles.model_validate(given)
