"""What the allocator is told of a campaign follows from its state alone."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.budget.allocation import UserResult
from orchestrator.domain import events as e
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.loop.shares import course_of, spent_by_role, user_results
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.books import folded, ledger_of
from tests.orchestrator.loop.scripted import Act, Proposing, Scripted, scripted, write_task
from tests.orchestrator.loop.verifying import VERIFIER, proposed, record_call, says, verified

ROLES = VERIFIER + "[roles.evolver]\n"


def paid(session: Scripted, microdollars: int, proposal: Proposal) -> Act:
    async def act(brief: Brief) -> Sequence[Proposal]:
        record_call(session.bench, brief.node, ModelRole.USER, microdollars)
        return [proposal]

    return act


async def test_results_of_users(tmp_path: Path) -> None:
    """Kept with its gain over the best before, no better, refused, held; one that was tried before says nothing."""
    refused = Proposal(operator="scripted", description="x", text="other.txt\n```\nx\n```\n")
    async with scripted(write_task(tmp_path / "task", ROLES)) as session:
        acts = [
            paid(session, 1_000_000, proposed(3)),
            paid(session, 2_000_000, proposed(2)),
            paid(session, 3_000_000, refused),
            paid(session, 0, proposed(3)),
            paid(session, 4_000_000, proposed(8)),
            paid(session, 5_000_000, proposed(7)),
        ]
        session.bench.proposers[Role.SEARCH] = Proposing(*acts)
        verified(session, says("pass"), says("pass"), says("hold"), says("flag"), microdollars=10)
        await session.run()
        metric = session.bench.ranking.metrics[0]
        told = user_results(session.state, metric)
        assert told == [
            UserResult(1_000_000, kept=True, gain=3.0),
            UserResult(2_000_000),
            UserResult(3_000_000, usable=False),
            UserResult(4_000_000, usable=False, gamed=True),
            UserResult(5_000_000, kept=True, gain=4.0),
        ]
        spent = {ModelRole.USER: 15_000_000, ModelRole.VERIFIER: 40, ModelRole.EVOLVER: 0}
        assert spent_by_role(session.state) == spent
        shares = course_of(session.state, session.accounts, session.bench.task).shares
    with ledger_of(tmp_path / "task") as ledger:
        state, _ = folded(ledger)
        assert user_results(state, metric) == told
    async with scripted(tmp_path / "task", None, how=How.RESUME) as session:
        assert course_of(session.state, session.accounts, session.bench.task).shares == shares


async def test_a_released_change_is_no_gaming(tmp_path: Path) -> None:
    """What a person let go counts for what it brought."""
    async with scripted(write_task(tmp_path / "task", ROLES)) as session:
        session.bench.proposers[Role.SEARCH] = Proposing(paid(session, 1_000, proposed(3)))
        verified(session, says("hold"))
        await session.run()
        metric = session.bench.ranking.metrics[0]
        assert user_results(session.state, metric) == [UserResult(1_000, usable=False, gamed=True)]
        session.bench.book.record(e.AttemptReleased(node="1.1", by="a person"))
        assert user_results(session.state, metric) == []
