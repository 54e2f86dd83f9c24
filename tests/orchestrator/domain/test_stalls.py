"""Who stalled, how often, and what that cost, told from events."""

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Spent
from orchestrator.domain.stalls import Stalls, stall_tallies


def run(number: int = 1, proposer: str = "llm") -> e.RunStarted:
    return e.RunStarted(
        run=number,
        task="t",
        digests={},
        seed=1,
        proposer=proposer,
        control=None,
        width=1,
        depth=1,
        why="",
        options="{}",
        lower_tier=False,
        before={},
    )


def call(
    node: str, model: str = "m", role: ModelRole = ModelRole.USER, cost: int = 10, configuration: str = ""
) -> list[e.Event]:
    spent = Spent(microdollars=cost, tokens=cost)
    return [
        e.ModelCallIntended(
            node=node, call=f"c{node}", role=role, model=model, worst=spent, configuration=configuration
        ),
        e.ModelCallEnded(
            node=node,
            call=f"c{node}",
            role=role,
            model=model,
            ending=CallEnding.COMPLETE,
            tokens=Tokens(output=cost),
            spent=spent,
        ),
    ]


def agent(node: str, name: str = "claude-code", configuration: str = "v1") -> e.Event:
    return e.AgentIntended(node=node, agent=name, configuration=configuration)


def stall(node: str, name: str = "claude-code", configuration: str = "v1", cause: str = "silent") -> e.Event:
    return e.StallFound(
        node=node,
        agent=name,
        model="m",
        configuration=configuration,
        cause=cause,
        after_s=75.0,
        saved_s=1100.0,
        lost=Spent(microdollars=7, tokens=70),
    )


def requeued(node: str) -> e.Event:
    return e.AttemptRequeued(node=node, ending=Ending.STALLED, why="silent", not_before="")


def ended(node: str) -> e.Event:
    return e.AttemptEnded(node=node, ending=Ending.SCORED)


def test_takes_and_stalls() -> None:
    """Every go counts, and each stall with cause, loss and what it saved; what an agent said of itself stays."""
    quarantined = e.AttemptQuarantined(node="1.1", ending=Ending.STALLED, why="silent")
    events = [
        run(proposer="agent"),
        *(agent("1.1"), *call("1.1"), stall("1.1"), requeued("1.1")),
        *(agent("1.1"), *call("1.1"), stall("1.1", cause="loop"), quarantined),
        *(agent("1.2"), *call("1.2"), ended("1.2")),
        *(agent("1.3"), *call("1.3", configuration="other")),
    ]
    [found] = stall_tallies(events)
    assert (found.agent, found.model, found.configuration) == ("claude-code", "m", "v1")
    assert (found.takes, found.stalls, found.quarantined) == (3, 2, 1)
    assert found.causes == {"silent": 1, "loop": 1}
    assert found.lost == Spent(microdollars=14, tokens=140)
    assert found.spent == Spent(microdollars=30, tokens=30)
    assert (found.saved_s, found.after_s) == (2200.0, 75.0)
    assert found.record()["stall_rate"] == 2 / 3


def test_a_proposer_without_a_chamber() -> None:
    """One that only asks a model is known by its run's proposer, and its configuration by its calls, stalls or none."""
    events = [
        run(1),
        *(*call("1.1", configuration="blocks, 3 a call"), ended("1.1")),
        *(*call("1.2", configuration="blocks, 3 a call"), stall("1.2", "llm", "blocks, 3 a call"), requeued("1.2")),
        run(2),
        *(*call("2.1", configuration="files, 1 a call"), ended("2.1")),
    ]
    [first, second] = stall_tallies(events)
    assert (first.agent, first.configuration, first.takes, first.stalls) == ("llm", "blocks, 3 a call", 2, 1)
    assert (second.agent, second.configuration, second.takes, second.stalls) == ("llm", "files, 1 a call", 1, 0)


def test_records_of_calls_without_a_configuration() -> None:
    """Where calls do not tell, a stall tells for the whole run."""
    events = [
        run(1),
        *(*call("1.1"), ended("1.1")),
        *(*call("1.2"), stall("1.2", "llm", "blocks, 3 a call"), requeued("1.2")),
        run(2),
        *(*call("2.1"), ended("2.1")),
    ]
    [first, second] = stall_tallies(events)
    assert (first.agent, first.configuration, first.takes, first.stalls) == ("llm", "blocks, 3 a call", 2, 1)
    assert (second.agent, second.configuration, second.takes) == ("llm", "", 1)


def test_what_asks_no_model_does_not_count() -> None:
    """An attempt without an agent or a call of a user's cannot stall; a verifier's call is none."""
    assert stall_tallies([run(), ended("1.1"), *call("1.2", role=ModelRole.VERIFIER), ended("1.2")]) == []
    assert stall_tallies([run(), *call("", role=ModelRole.EVOLVER)]) == []


def test_late_usage() -> None:
    """What is told after the end belongs to whoever worked on it last."""
    stalls = Stalls()
    told = call("1.1")
    for event in (run(), told[0], ended("1.1"), told[1]):
        stalls.hear(event)
    [found] = stalls.tallies()
    assert found.spent.tokens == 10


def test_each_by_itself() -> None:
    """Agents, models and configurations are told apart, the most troubled first."""
    events: list[e.Event] = [run(proposer="agent")]
    for node, model, configuration in (("1.1", "m", "v1"), ("1.2", "n", "v1"), ("1.3", "m", "v2")):
        events += [agent(node, configuration=configuration), *call(node, model), ended(node)]
    events += [agent("1.4", configuration="v2"), *call("1.4"), stall("1.4", configuration="v2"), requeued("1.4")]
    found = stall_tallies(events)
    assert [(it.model, it.configuration, it.stalls) for it in found] == [("m", "v2", 1), ("m", "v1", 0), ("n", "v1", 0)]
