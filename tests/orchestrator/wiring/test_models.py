"""What is known before the first call to a model: every model of every role has a price."""

import pytest

from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.prices import Prices
from orchestrator.task import TaskError
from orchestrator.wiring.models import check_models

KNOWN = "claude-sonnet-4-5"


def allowance(role: ModelRole, *models: str) -> Allowance:
    return Allowance(role=role, models=models, microdollars=1)


def test_known_models() -> None:
    """Models with a price pass, whoever asks them."""
    check_models({role: allowance(role, KNOWN) for role in ModelRole}, Prices.load(None))


@pytest.mark.parametrize("role", list(ModelRole))
def test_an_unknown_model(role: ModelRole) -> None:
    """One that has none is refused, also behind one that has; the line names the role and the model."""
    allowances = {it: allowance(it, KNOWN, *(["claude-imaginary-9"] if it is role else [])) for it in ModelRole}
    with pytest.raises(TaskError, match=f"the model of the {role}: .*claude-imaginary-9"):
        check_models(allowances, Prices.load(None))
