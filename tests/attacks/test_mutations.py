"""Every hardening flag is noticed by an attack."""

from dataclasses import fields

import pytest

from sandbox.attacks.attack import Attack, Finding, Result, registered
from sandbox.attacks.hosts import LocalTarget
from sandbox.attacks.mutations import MUTATIONS, Mutation, Verdict, run_mutations
from sandbox.config import DockerConfig
from sandbox.errors import Refused
from sandbox.posture import Posture

# Opening two backends and running a handful of attacks, some of which wait for a limit that is off.
FLAG_LIMIT_S = 600


def test_every_flag_has_a_mutation() -> None:
    """A field of the posture that nobody switches off would be neither tested nor known to be useless."""
    assert sorted(mutation.flag for mutation in MUTATIONS) == sorted(field.name for field in fields(Posture))


def test_mutations_name_existing_rows() -> None:
    """Each mutation names rows that exist."""
    known = {item.id for item in registered()}
    assert {row for mutation in MUTATIONS for row in mutation.rows} <= known


def test_only_a_kernel_of_its_own_may_not_see_a_flag() -> None:
    """On runc every flag must turn something red."""
    assert {runtime for mutation in MUTATIONS for runtime in mutation.unseen} <= {"runsc"}


async def _nothing(arena: object) -> Finding:
    raise NotImplementedError


def _result(row: str, *, ran: bool = True, blocked: bool = True) -> Result:
    return Result(Attack(row, "a row", _nothing), "runc", Finding(ran, blocked, "completed", ""), 1.0)


@pytest.mark.parametrize(
    ("control", "before", "now", "good"),
    [
        pytest.param(True, (True, True), (True, False), True, id="turned-red"),
        pytest.param(True, (True, True), (True, True), False, id="stayed-green"),
        pytest.param(True, (True, True), (False, False), False, id="did-not-run"),
        pytest.param(True, (True, False), (True, False), False, id="was-red-before"),
        pytest.param(False, (True, True), (True, False), False, id="chamber-broke"),
    ],
)
def test_verdict(control: bool, before: tuple[bool, bool], now: tuple[bool, bool], good: bool) -> None:
    """Red means: it ran and succeeded now, was good before, and an honest candidate still gets through."""
    verdict = Verdict(
        Mutation("seccomp", ("T07",)),
        "runc",
        _result("C01", blocked=control),
        [_result("T07", ran=now[0], blocked=now[1])],
        [_result("T07", ran=before[0], blocked=before[1])],
    )
    assert verdict.good is good


async def test_unknown_flag() -> None:
    """A flag that does not exist is refused before anything starts."""
    with pytest.raises(Refused, match="no hardening flag magic"):
        await run_mutations(LocalTarget(DockerConfig()), {"magic"})


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.timeout(FLAG_LIMIT_S)
@pytest.mark.parametrize("flag", [mutation.flag for mutation in MUTATIONS])
@pytest.mark.parametrize("runtime", ["runc", "runsc"])
async def test_flag(runtime: str, flag: str) -> None:
    """With the flag off an attack succeeds that failed with it on, or the runtime's reason is stated."""
    (verdict,) = await run_mutations(LocalTarget(DockerConfig(runtime=runtime)), {flag})
    told = [(result.attack.id, result.finding) for result in [verdict.control, *verdict.results]]
    assert verdict.good, f"{flag} off on {runtime}: nothing turned red: {told}"
