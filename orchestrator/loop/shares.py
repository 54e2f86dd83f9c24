"""How the roles stand in a campaign: what its state says of results and dollars, put into the allocator's terms."""

from collections.abc import Mapping

from orchestrator.budget import Account, Accounts
from orchestrator.budget.allocation import Allocator, Course, RoleShare, Split, UserResult
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.task import Task
from orchestrator.task.roles import Roles, RoleSpec

_CAUGHT = (Ending.TAMPERED, Ending.HELD)


def split_of(roles: Roles, accounts: Accounts) -> Split:
    return Split(_share(roles.evolver), _share(roles.verifier), accounts.limit(Account.USD))


def _share(spec: RoleSpec | None) -> RoleShare | None:
    return RoleShare(spec.share, spec.floor, spec.cap) if spec else None


def course_of(state: State, accounts: Accounts, task: Task) -> Course:
    """Made again each time it is asked for, from the state alone: after a crash it is the same."""
    metric = task.metrics[0].metric()
    return Allocator(split_of(task.roles, accounts)).after(user_results(state, metric))


def spent_by_role(state: State) -> Mapping[ModelRole, int]:
    """Micro-dollars of calls to models, over the whole campaign."""
    spent = dict.fromkeys(ModelRole, 0)
    for key, asked in state.campaign.asked_models.items():
        spent[ModelRole(key.split(" ", 1)[0])] += asked.spent.microdollars
    return spent


def user_results(state: State, metric: Metric) -> list[UserResult]:
    """What attempts of the search brought, in the order in which they were opened; free endings say nothing."""
    mine = [node for node in state.nodes.values() if node.role is Role.SEARCH]
    best: dict[str, float] = {}
    results = []
    for node in sorted(mine, key=lambda node: (run_of(node.id), node.number)):
        held = node.phase is Phase.QUARANTINED and node.ending is Ending.HELD
        charged = node.phase is Phase.ENDED and node.ending is not None and node.ending.charged
        if held or charged:
            results.append(_result(state, node, _gain(state, node, metric, best)))
    return results


def _result(state: State, node: Node, gain: float | None) -> UserResult:
    draft = state.draft(f"{node.id}#{node.promoted or 1}")
    return UserResult(
        microdollars=node.paid.get(ModelRole.USER, 0),
        kept=node.kept,
        gain=gain,
        usable=node.ending in (Ending.SCORED, Ending.PRUNED),
        gamed=node.ending in _CAUGHT or bool(node.verdict and node.verdict.suspect),
        playbook=draft.playbook if draft else None,
    )


def _gain(state: State, node: Node, metric: Metric, best: dict[str, float]) -> float | None:
    """Over what was the best in the same cohort, by the first metric; None where another metric made the difference."""
    if not node.kept or node.verdict is None:
        return None
    cohort, merit = node.verdict.cohort, _merit(node, metric)
    root = state.nodes.get(str(run_of(node.id)))
    before = best.get(cohort, _merit(root, metric) if root and root.verdict and root.verdict.cohort == cohort else None)
    if merit is None:
        return None
    best[cohort] = merit
    return merit - before if before is not None and merit > before else None


def _merit(node: Node, metric: Metric) -> float | None:
    value = node.verdict.metrics.get(metric.name) if node.verdict else None
    return None if value is None else metric.merit(value)
