"""Campaigns whose changes come from a model, through the gateway and over the wire."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.llm.line import Unusable
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from tests.messages import MessagesServer, Refusal, Reply, Text
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import TUNE, Scripted, scripted, write_task
from tests.orchestrator.loop.test_models import CHEAP, MODEL, settings_for

SMALL = CHEAP + "context = 6000\n"


def change(value: object, said: str = "", path: str = "params.json", old: str = '  "value": 0') -> str:
    new = f'  "value": {json.dumps(value)}' if path == "params.json" else str(value)
    block = f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
    return f"=== change: {said or f'set it to {value}'}\n{block}\n"


def say(server: MessagesServer, *texts: str) -> None:
    server.play(*(Reply((Text(text),)) for text in texts))


def open_llm(
    folder: Path, server: MessagesServer, how: How = How.START, script: Script | None = None, **flags: Any
) -> Any:
    given = {"proposer": "llm", **flags} if how is not How.RESUME else flags
    return scripted(folder, script, how=how, settings=settings_for(server), **given)


async def ran_llm(folder: Path, server: MessagesServer, how: How = How.START, **flags: Any) -> Scripted:
    """A whole session."""
    async with open_llm(folder, server, how, **flags) as session:
        await session.run()
    return session  # type: ignore[no-any-return]


def told(server: MessagesServer, request: int = -1) -> str:
    return json.dumps(server.requests[request].body, ensure_ascii=False)


async def test_a_search_by_a_model(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Three changes of one answer are three siblings; the best of them is what the next question builds on."""
    say(messages_server, change(3) + change(9) + change(5))
    say(messages_server, change(11, old='  "value": 9'))
    async with open_llm(write_task(tmp_path, SMALL), messages_server, attempts=4) as session:
        finished = await session.run()
        nodes = session.nodes
        assert [(name, node.operator, node.description) for name, node in nodes.items()][1:] == [
            ("1.1", "draft", "set it to 3"),
            ("1.2", "draft", "set it to 9"),
            ("1.3", "draft", "set it to 5"),
            ("1.2.1", "improve", "set it to 11"),
        ]
        assert finished.champion is not None
        assert finished.champion.id == "1.2.1"
        campaign = session.state.campaign
        assert (campaign.offered, campaign.distinct, campaign.calls) == (4, 4, 2)
        drafts = [draft for name in nodes if name != "1" for draft in session.state.drafts(name)]
        assert {draft.model for draft in drafts} == {MODEL}
    first, second = messages_server.requests
    shared = [part["text"] for part in first.body["system"]][:2]
    assert shared == [part["text"] for part in second.body["system"]][:2]
    assert [("cache_control" in part) for part in second.body["system"]] == [True, True, True, False]
    for line in ("1 the files to begin with -> score=0 (kept)", '1.2 on 1 draft "set it to 9" -> score=9 (kept)'):
        assert line in second.body["system"][2]["text"]
    assert '1.3 on 1 draft "set it to 5" -> score=5\n' in second.body["system"][3]["text"]


async def test_what_the_model_offers_is_told_back_once(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Within one attempt and one allowance: two calls on the same node, and one charge."""
    say(messages_server, change(3, old="not there"), change(4))
    session = await ran_llm(write_task(tmp_path, SMALL), messages_server, attempts=1)
    assert session.nodes["1.1"].ending is Ending.SCORED
    assert [it.node for it in session.of(e.ModelCallEnded)] == ["1.1", "1.1"]
    assert session.charged == 1
    assert "lines not found" in told(messages_server)


async def test_prose_ends_the_attempt_as_invalid(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Something was asked and answered twice, so it is charged, with one clear line."""
    say(messages_server, "I would rather not.", "Really not.", change(4))
    session = await ran_llm(write_task(tmp_path, SMALL), messages_server, attempts=2)
    first = session.nodes["1.1"]
    assert (first.ending, first.drafts) == (Ending.INVALID, 0)
    assert first.why == "the model was asked twice and gave nothing to try: there is no change in its answer"
    assert session.nodes["1.2"].ending is Ending.SCORED
    assert session.charged == 2


async def test_a_refused_key_charges_nothing(tmp_path: Path, messages_server: MessagesServer) -> None:
    """The campaign ends with one line about the key; no attempt is used."""
    messages_server.play(*[Refusal(401, "authentication_error", "invalid x-api-key")] * 3)
    async with open_llm(write_task(tmp_path, SMALL), messages_server, attempts=2) as session:
        with pytest.raises(Unusable, match="key"):
            await session.run()
        assert session.charged == 0


async def test_t87_an_allowance_that_no_question_fits(tmp_path: Path, messages_server: MessagesServer) -> None:
    """That is no outage of the model, which is well and never asked: the campaign ends with what to change."""
    model = '[model]\nusd = "$0.017"\nmax_output = 1000\ncontext = 6000\n[stall]\nafter = 2\n'
    async with open_llm(write_task(tmp_path, model), messages_server, attempts=2) as session:
        with pytest.raises(Unusable, match=r"of the allowance are left; .*raise model\.usd above"):
            await session.run()
        assert (session.charged, session.of(e.BreakerOpened), session.of(e.AttemptQuarantined)) == (0, [], [])
        assert {it.cause for it in session.of(e.StallFound)} == {"refused"}
    assert messages_server.requests == []


@pytest.mark.parametrize(
    ("key", "does", "ending", "code"),
    [
        ("do", "failed", Ending.FAILED, "no score: failed, exit code 3"),
        ("judge", "nan", Ending.INVALID, "no score: invalid, score is not finite"),
    ],
)
async def test_t45_a_failing_change_is_debugged(
    tmp_path: Path, messages_server: MessagesServer, key: str, does: str, ending: Ending, code: str
) -> None:
    """The model sees the change and the code of its ending; nothing of the log, nor of what a judge says."""
    folder = write_task(tmp_path, SMALL + "proposals = 1\n")
    broken = change("x").replace('"value": "x"', f'"value": 0, "{key}": "{does}"')
    say(messages_server, broken, change(4))
    nodes = (await ran_llm(folder, messages_server, attempts=2)).nodes
    assert (nodes["1.1"].ending, nodes["1.2"].operator, nodes["1.2"].ending) == (ending, "debug", Ending.SCORED)
    last = told(messages_server)
    assert code in last
    assert f'+  \\"value\\": 0, \\"{key}\\": \\"{does}\\"' in last
    assert "value 0\\n" not in last


async def test_stopped_and_resumed_nothing_is_asked_twice(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What one answer offered is taken up after a stop, without another call."""
    folder = write_task(tmp_path, SMALL)
    say(messages_server, change(1) + change(0.5) + change(0.25))
    async with open_llm(folder, messages_server, attempts=3) as session:
        session.stop_at(e.Promoted, 2)
        assert (await session.run()).reason == "Ctrl-C"
    session = await ran_llm(folder, messages_server, How.RESUME)
    assert {node.phase for node in session.nodes.values()} == {Phase.ENDED}
    assert len(messages_server.requests) == 1


async def test_points_by_a_model(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Several points of one answer, side by side; one outside the space is told back once."""
    first = {"points": [{"why": "low", "point": {"value": 2}}, {"why": "too high", "point": {"value": 99}}]}
    second = {"points": [{"why": "high", "point": {"value": 12}}]}
    say(messages_server, json.dumps(first), json.dumps(second))
    folder = write_task(tmp_path, SMALL + "proposals = 2\n")
    async with open_llm(folder, messages_server, proposer="llm-params", attempts=2, width=2) as session:
        finished = await session.run()
        assert sorted((session.nodes[name].params or {})["value"] for name in ("1.1", "1.2")) == [2, 12]
        assert finished.champion is not None
        assert len(messages_server.requests) == 2
    assert "99 is no value of value" in told(messages_server)


async def test_in_tuning_all_of_an_answer_compete(tmp_path: Path, messages_server: MessagesServer) -> None:
    """As many as the task tunes are asked for, and the best of them becomes the node."""
    say(messages_server, change(3) + change(9) + change(5))
    session = await ran_llm(write_task(tmp_path, SMALL, TUNE), messages_server, attempts=1)
    node = session.nodes["1.1"]
    assert (node.drafts, node.promoted, node.description) == (3, 2, "set it to 9")
    assert "Propose 3 changes" in told(messages_server)


async def test_t63_the_key_is_in_no_record(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Neither in the ledger, nor in artifacts, candidates, streams or logs; and never in a prompt."""
    say(messages_server, change(3, said=f"the key is {messages_server.key[:4]}"))
    folder = write_task(tmp_path, SMALL)
    async with open_llm(folder, messages_server, attempts=1) as session:
        await session.run()
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if messages_server.key.encode() in path.read_bytes()]
    assert all(messages_server.key not in request.raw.decode() for request in messages_server.requests)


async def test_a_workspace_with_a_secret(tmp_path: Path, messages_server: MessagesServer) -> None:
    """One clear line before anything is asked; with the file hidden, the campaign runs."""
    folder = write_task(tmp_path, SMALL)
    (folder / "workspace" / "config.py").write_text("\nKEY = 'AKIA" + "A1B2C3D4E5F6G7H8'\n")
    with pytest.raises(TaskError, match=r"workspace/config\.py line 2 looks like an AWS key"):
        await ran_llm(folder, messages_server, attempts=1)
    assert not messages_server.requests
    assert not list((folder / ".blastdoor").glob("*.db"))
    task = folder / "blastdoor.toml"
    task.write_text(task.read_text().replace("[trial]", 'hidden = ["config.py"]\n\n[trial]'))
    say(messages_server, change(3))
    session = await ran_llm(folder, messages_server, attempts=1)
    assert session.nodes["1.1"].ending is Ending.SCORED
    assert "config.py" not in told(messages_server)


async def test_a_context_that_is_too_small(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Said before anything begins, with what is needed."""
    with pytest.raises(TaskError, match=r"model\.context: .* raise it, or shorten the statement"):
        await ran_llm(write_task(tmp_path, CHEAP + "context = 1000\n"), messages_server)


async def test_an_arm_that_asks_nobody_goes_on(tmp_path: Path, messages_server: MessagesServer) -> None:
    """When dollars are short the search goes on with points, which cost nothing, to its last attempt."""
    # More output than was asked for is not believed: the worst case is booked, and the cap covers one question.
    messages_server.play(*(Reply((Text(change(value)),), usage={"output_tokens": 1_001}) for value in range(20, 30)))
    task = write_task(tmp_path, SMALL + "proposals = 1\n", high=500)
    flags: dict[str, Any] = {"proposer": "hybrid", "arms": "random,llm", "attempts": 16, "usd": 0.04, "width": 1}
    async with open_llm(task, messages_server, seed=2, **flags) as session:
        finished = await session.run()
        nodes = [node for node in session.nodes.values() if node.parent]
        made = [node.drawn.arms["proposer"].option if node.drawn else "" for node in nodes]
        assert (session.charged, made.count("llm")) == (16, 1), finished.reason
    assert len(messages_server.requests) == 1
