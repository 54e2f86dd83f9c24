"""What is known before the first call to a model: prices, whom each role asks, the floor, and that it is enough."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.prices import Prices
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import StallSpec, Task, TaskError, load_task
from orchestrator.watch import Outcome
from orchestrator.watch.config import Config
from orchestrator.wiring.least import TABLES
from orchestrator.wiring.models import (
    check_models,
    configuration_of,
    learnt_config,
    models_lines,
    ready_models,
    watch_config,
)
from orchestrator.wiring.options import resolve
from tests.orchestrator.loop.scripted import write_task
from tests.orchestrator.views.campaign.builder import TASK
from tests.orchestrator.watch.test_replaying import keep, steady

KNOWN = "claude-sonnet-4-5"


def allowance(role: ModelRole, *models: str) -> Allowance:
    return Allowance(role=role, models=models, microdollars=1)


@pytest.mark.parametrize("role", list(ModelRole))
def test_an_unknown_model(role: ModelRole) -> None:
    """A model without a price is refused, also behind one that has a price; the line names the key and the model."""
    check_models({it: allowance(it, KNOWN) for it in ModelRole}, Prices.load(None))
    allowances = {it: allowance(it, KNOWN, *(["claude-imaginary-9"] if it is role else [])) for it in ModelRole}
    with pytest.raises(TaskError, match=rf"^{TABLES[role]}\.models: .*claude-imaginary-9"):
        check_models(allowances, Prices.load(None))


def lines(task: dict[str, Any], settings: Settings, **flags: Any) -> list[str]:
    made = Task.model_validate({**TASK, **task})
    return models_lines(made, resolve(Flags(**{"proposer": "llm"} | flags), made, settings), settings)


def test_who_is_asked() -> None:
    """Models and dollars are told with the place that each comes from; a lower cap of the campaign counts."""
    bare, user = Settings(), Settings(models=("mine",))
    mine = {"model": {"models": ["a", "b"], "usd": "$0.25"}}
    assert lines({}, bare) == ["model claude-opus-5-5 (default), $0.50 an attempt (default)"]
    assert lines({}, user) == ["model mine (user), $0.50 an attempt (default)"]
    assert lines(mine, user) == ["model a, b (task), $0.25 an attempt (task)"]
    assert lines(mine, bare, usd=0.1) == ["model a, b (task), $0.10 an attempt (flag)"]
    assert lines({}, bare, proposer="random") == []
    _, evolver, verifier = lines({"roles": {"evolver": {}, "verifier": {"models": ["judge"], "usd": 0.02}}}, bare)
    assert evolver.startswith("evolver model claude-haiku-5-5, claude-sonnet-5-5 (default), $")
    assert verifier == "verifier model judge (task), $0.02 an attempt (task)"


def test_a_learnt_floor_says_why(tmp_path: Path) -> None:
    """How many streams it was learnt from and what it promises; or how many are missing."""
    keep(tmp_path, *(steady(f"1.{number}-1", 4, outcome=Outcome.WELL, floor=1.0) for number in range(9)))
    config, why = learnt_config(StallSpec(learn=0.1), tmp_path, "agent", "model")
    assert config.floor == pytest.approx(4, rel=0.05)
    assert why == "learnt from 9 streams that ended well; ends at most 10 % of healthy ones"
    config, why = learnt_config(StallSpec(learn=0.01), tmp_path, "agent", "model")
    assert (config.floor, why) == (1.0, "9 of the 99 streams that it takes to learn a floor")
    assert learnt_config(StallSpec(), tmp_path, "agent", "model")[1] == ""


def test_near_names_only() -> None:
    """Whoever misspells a name is shown a few like it, not the whole list."""
    with pytest.raises(TaskError) as caught:
        check_models({ModelRole.USER: allowance(ModelRole.USER, "claude-opus-55")}, Prices.load(None))
    assert "use one like claude-opus-5-5, " in str(caught.value)
    assert "sonnet" not in str(caught.value)


SHORT = [
    (
        '[model]\nusd = "$0.001"\n',
        {},
        "model.usd of $0.001 is not enough for one question to claude-opus-5-5 and an answer of 8,000 tokens, "
        "which may take $0.172; raise it, or lower model.max_output",
    ),
    ("", {"usd": 0.1}, "--usd of $0.10 is not enough"),
    ('[budget]\nusd = "$0.1"\n', {}, "budget.usd of $0.10 is not enough"),
    ("[model]\ntokens = 9_000\n", {}, "model.tokens of 9,000 tokens is not enough"),
    ("", {"tokens": 10}, "--tokens of 10 tokens is not enough"),
    (
        '[roles.verifier]\nusd = "$0.01"\n',
        {},
        "roles.verifier.usd of $0.01 is not enough for one question to claude-sonnet-5-5 and an answer of 3,548 "
        "tokens, which may take $0.04148; raise it, or lower roles.verifier.thinking",
    ),
    (
        '[roles.evolver]\nusd = "$0.01"\n',
        {},
        "roles.evolver.usd of $0.01 is not enough for one question to claude-sonnet-5-5",
    ),
]


@pytest.mark.parametrize(("more", "flags", "told"), SHORT)
def test_an_allowance_too_small_for_one_question(tmp_path: Path, more: str, flags: dict[str, Any], told: str) -> None:
    """Attempts that can ask nothing are not begun: one line names the key or the flag, and what is needed."""
    task = load_task(write_task(tmp_path, more))
    settings = Settings(api_key=SecretStr("k"))
    with pytest.raises(TaskError) as caught:
        ready_models(task, resolve(Flags(proposer="llm", **flags), task, settings), settings)
    assert str(caught.value).startswith(told)


def test_the_defaults_cover_a_question(tmp_path: Path) -> None:
    """A task that says nothing of models can be searched by them, with every role."""
    task = load_task(write_task(tmp_path, "[roles.verifier]\n[roles.evolver]\n"))
    settings = Settings(api_key=SecretStr("k"))
    ready = ready_models(task, resolve(Flags(proposer="llm"), task, settings), settings)
    assert set(ready.allowances) == set(ModelRole)


def test_stall_defaults_are_the_detectors() -> None:
    """What the task file says of stalls by default is what the detector does by default."""
    assert watch_config(StallSpec()) == Config()


def test_an_agent_for_a_proposer_that_has_none(tmp_path: Path) -> None:
    """A flag that would mean nothing is not taken and listed as if it did."""
    task = load_task(write_task(tmp_path))
    with pytest.raises(TaskError, match="--agent means nothing to the proposer llm; use it with --proposer agent"):
        resolve(Flags(proposer="llm", agent="claude-code"), task, Settings())


def test_what_stalls_are_counted_by() -> None:
    """Agents in other images, or with other time, are told apart; so are ways to ask."""
    plain = Task.model_validate(TASK)
    mine = Task.model_validate({**TASK, "agent": {"image": "mine:1", "limits": {"wall": 60}}})
    assert configuration_of(plain, "llm") == "llm, blocks, 3 a call"
    assert configuration_of(plain, "llm-params") == "llm-params, 3 a call"
    assert configuration_of(plain, "agent") == "blastdoor-agent:latest, 30m at most"
    assert configuration_of(mine, "agent") == "mine:1, 1m at most"
