"""What an attempt sets aside for its proposer: nothing where it asks nobody, and what is left where that is enough."""

from pathlib import Path

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from tests.messages import MessagesServer, Reply, Text
from tests.orchestrator.loop.scripted import Scripted, write_task
from tests.orchestrator.loop.test_llm import SMALL, change, open_llm, say

# What one question of an answer of 1,000 tokens is taken to need at least.
LEAST = 16_000


def reserved(session: Scripted) -> dict[str, int]:
    """The dollars that each attempt set aside, in millionths."""
    return {it.hold: it.amounts.get("usd", 0) for it in session.of(e.Reserved)}


async def test_what_was_paid_for_is_run(tmp_path: Path, messages_server: MessagesServer) -> None:
    """With dollars for one question, all changes of its answer are tried: those that take one up set none aside."""
    say(messages_server, change(3) + change(9) + change(5))
    async with open_llm(write_task(tmp_path, SMALL), messages_server, attempts=3, usd=0.05) as session:
        await session.run()
        nodes = session.nodes
        assert [nodes[f"1.{n}"].ending for n in (1, 2, 3)] == [Ending.SCORED] * 3
        assert reserved(session) == {"1#1": 0, "1.1#1": 50_000, "1.2#1": 0, "1.3#1": 0}
    assert len(messages_server.requests) == 1


def descending(server: MessagesServer) -> None:
    """The first change is the best. Too much output is not believed: the worst case, about $0.025, is booked."""
    texts = [change(90), *(change(value, old='  "value": 90') for value in range(89, 30, -1))]
    server.play(*(Reply((Text(it),), usage={"output_tokens": 1_001}) for it in texts))


async def test_the_last_questions_get_what_is_left(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Less than an allowance and enough for a question is set aside and used as it is; the cap is never passed."""
    descending(messages_server)
    task = write_task(tmp_path, SMALL + "proposals = 1\n")
    async with open_llm(task, messages_server, attempts=50, usd=0.08, width=1) as session:
        accounts = session.accounts
        lines: list[tuple[int, int]] = []

        def see(event: e.ModelCallIntended) -> None:
            models = session.bench.models
            assert models is not None
            granted = sum(it.microdollars for key, it in models.grants.granted.items() if key[0] == event.node)
            lines.append((granted, accounts.held(Account.USD)))
            assert accounts.used(Account.USD) + accounts.held(Account.USD) <= 80_000

        session.when(e.ModelCallIntended, see)
        finished = await session.run()
        assert finished.reason.startswith("usd: $0.0")
        assert accounts.used(Account.USD) > 30_000
        burnt = [it for it in session.nodes.values() if it.number and it.ending is Ending.INVALID]
        assert len(burnt) <= 1
    assert all(granted == held for granted, held in lines)
    assert lines[0][0] == 50_000
    assert LEAST <= lines[-1][0] < 50_000


async def test_too_little_is_tried_once(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A rest that covers the smallest question and not this one ends one attempt, free, and is handed out no more."""
    descending(messages_server)
    task = write_task(tmp_path, SMALL + "proposals = 1\n")
    async with open_llm(task, messages_server, attempts=50, usd=0.095, width=1) as session:
        models = session.bench.models
        assert models is not None
        session.when(e.AttemptEnded, lambda event: models.grants.seen.clear() if event.node == "1.1.2" else None)
        await session.run()
        nodes = [it for name, it in session.nodes.items() if name != "1"]
        *paid, last = nodes
        assert session.charged == len(paid) == 3
        assert (last.phase, last.stalls, last.spent.microdollars) == (Phase.QUEUED, 1, 0)
        assert "raise model.usd above" in last.why


async def test_who_finds_its_change_gone_asks_nobody(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A person's word makes what was offered old: who set nothing aside is cancelled free, and the next one asks."""
    say(messages_server, change(3) + change(9) + change(5), change(7, old='  "value": 3'), change(7))
    async with open_llm(write_task(tmp_path, SMALL), messages_server, attempts=2, width=1) as session:
        asked: list[int] = []

        def tell(event: e.AttemptOpened) -> None:
            if event.node == "1.2":
                session.bench.book.record(e.Steered(text="keep it odd"))
                asked.append(len(messages_server.requests))

        session.when(e.AttemptOpened, tell)
        await session.run()
        gone = session.nodes["1.2"]
        assert (gone.ending, gone.spent.microdollars) == (Ending.CANCELLED, 0)
        assert session.charged == 2
        assert list(reserved(session).values()) == [0, 50_000, 0, 50_000]
    assert asked == [1]
    assert len(messages_server.requests) > 1
