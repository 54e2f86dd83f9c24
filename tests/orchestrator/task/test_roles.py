"""Shares that cannot be are refused in one line, and the defaults are those of the benchmark."""

import pytest
from pydantic import ValidationError

from benchmarks.allocation import ADAPTIVE
from orchestrator.budget import Accounts
from orchestrator.budget.allocation import Allocator, UserResult
from orchestrator.domain.model_use import ModelRole
from orchestrator.loop.shares import split_of
from orchestrator.task.roles import Roles, RoleSpec, VerifierSpec


def test_defaults() -> None:
    """What is measured is what ships, but for the verifier's share: the one of the landscape spends all that it may,
    while a real one is asked once a change.
    """
    verifier = VerifierSpec(share=0.1, floor=0.02, cap=0.2)
    assert split_of(Roles(evolver=RoleSpec(), verifier=verifier), Accounts()) == ADAPTIVE


def test_by_default_changes_are_reviewed() -> None:
    """A review that costs half of what a proposal does fits the default share: who names a verifier has every change
    looked at.
    """
    proposal, looked = 60_000, 30_000
    split = split_of(Roles(verifier=VerifierSpec()), Accounts())
    reviewed = 0
    for number in range(1, 21):
        course = Allocator(split).after([UserResult(proposal)] * (number - 1))
        spent = {ModelRole.USER: number * proposal, ModelRole.VERIFIER: reviewed * looked}
        reviewed += course.is_due(ModelRole.VERIFIER, spent)
    assert reviewed == 20


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        ({}, (0.35, 0.35, 0.4)),
        ({"share": 0.1}, (0.1, 0.1, 0.4)),
        ({"share": 0.6}, (0.35, 0.6, 0.6)),
        ({"cap": 0.2}, (0.2, 0.2, 0.2)),
        ({"floor": 0.02}, (0.02, 0.35, 0.4)),
        ({"floor": 0.45}, (0.45, 0.45, 0.45)),
    ],
)
def test_defaults_of_a_verifier_give_way(given: dict[str, float], shares: tuple[float, float, float]) -> None:
    """A task that says one of the three need not say the others."""
    spec = VerifierSpec.model_validate(given)
    assert (spec.floor, spec.share, spec.cap) == shares


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"evolver": {"floor": 0.2}}, "floor 0.2, share 0.1 and cap 0.5 are not in this order"),
        ({"verifier": {"share": 0.5, "cap": 0.4}}, "share 0.5 and cap 0.4 are not in this order"),
        ({"evolver": {"cap": 0.6}, "verifier": {"cap": 0.4}}, "are 1 together; leave users at least a tenth"),
        ({"verifier": {"thinking": 500}}, "is 0 or at least 1,024 tokens"),
        ({"verifier": {"holds": 0}}, "greater than or equal to 1"),
        ({"evolver": {"thinking": 0}}, "Extra inputs are not permitted"),
    ],
)
def test_bad_input(given: dict[str, object], told: str) -> None:
    """Each says what is wrong with it."""
    with pytest.raises(ValidationError, match=told):
        Roles.model_validate(given)
