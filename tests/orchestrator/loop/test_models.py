"""A campaign that asks a model: every call on record and in the books, and whoever stalls is ended and queued again."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase, Spent
from orchestrator.domain.stalls import stall_tallies
from orchestrator.llm.line import NoAnswer, Unusable
from orchestrator.proposers import Brief, Stalled, Tuned, Unanswered
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from tests.messages import Hang, MessagesServer, Refusal, Reply, Text
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import TUNE, Act, Point, make_site, proposal, scripted, write_task
from tests.orchestrator.loop.telling import in_moments

MODEL = "claude-sonnet-5-5"
# A stall is found within seconds here; in a real task it is minutes.
STALL = """[stall]
after = 2
first_token = "2s"
grace = "500ms"
window = "2s"
thinking = "2s"
waiting = "5s"
floor = 5
"""
CHEAP = '[model]\nusd = "$0.05"\nmax_output = 1000\n'


def settings_for(server: MessagesServer, **more: Any) -> Settings:
    given = {"api_url": server.url, "api_key": SecretStr(server.key), "models": (MODEL,), **more}
    return Settings(**given)


def points(server: MessagesServer, *values: int) -> None:
    server.play(*(Reply((Text(json.dumps({"value": value})),)) for value in values))


async def asking(brief: Brief, max_tokens: int = 200) -> Sequence[Proposal]:
    """A proposer that does as the model says."""
    assert brief.line is not None
    try:
        answer = await brief.line.ask(
            system=["Answer with a point."], messages=[{"role": "user", "content": brief.node}], max_tokens=max_tokens
        )
    except NoAnswer as error:
        raise (Unanswered if error.charged else Stalled)(str(error)) from error
    return [proposal(json.loads(answer.text))]


def open_asking(folder: Path, server: MessagesServer, *acts: Act, how: How = How.START, **flags: Any) -> Any:
    given = {"proposer": "llm", **flags} if how is not How.RESUME else flags
    return scripted(folder, None, *acts, how=how, settings=settings_for(server), **given)


async def test_calls_are_on_record_and_in_the_books(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What the provider counted is what the attempt spent, in dollars and in tokens. An intent is on record before
    anything is sent: who dies in between finds out what may have been spent. How a proposer was set up is known of
    every attempt of it, not only of those that stalled.
    """
    points(messages_server, 3, 5)
    sent: list[int] = []
    async with open_asking(write_task(tmp_path, CHEAP), messages_server, asking, asking) as session:
        session.when(e.ModelCallIntended, lambda _: sent.append(len(messages_server.requests)))
        await session.run()
        ended = session.of(e.ModelCallEnded)
        assert [(it.node, it.ending, it.model) for it in ended] == [
            ("1.1", CallEnding.COMPLETE, MODEL),
            ("1.2", CallEnding.COMPLETE, MODEL),
        ]
        assert session.charged == 2
        assert sent == [0, 1]
        accounts = session.accounts
        assert accounts.used(Account.USD) == sum(it.spent.microdollars for it in ended) > 0
        assert accounts.used(Account.TOKENS) == sum(it.tokens.total for it in ended) > 0
        assert not session.state.open_calls
        assert not accounts.holds
        [found] = stall_tallies(session.events)
        assert (found.model, found.takes, found.configuration) == (MODEL, 2, "llm, blocks, 3 a call")


async def test_a_hung_model_is_ended_refunded_and_asked_again(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Intent, kill, confirmed dead; then refund, loss and the queue in one transaction. No attempt is charged. A cut
    stream costs its worst case: what was not counted may have been generated, and the promise holds only if booked.
    """
    messages_server.play(Reply((Text("x" * 400),), hang=Hang.MIDDLE))
    points(messages_server, 7)
    async with open_asking(write_task(tmp_path, CHEAP, STALL), messages_server, asking) as session:
        await session.run()
        kinds = [type(it) for it in session.events]
        first = kinds.index(e.KillIntended)
        ended = [e.KillIntended, e.ModelCallEnded, e.KillConfirmed, e.Refunded, e.StallFound, e.AttemptRequeued]
        assert kinds[first : first + 6] == ended
        assert len(set(session.stamps[first + 3 : first + 6])) == 1
        assert session.charged == 1
        assert session.nodes["1.1"].ending is Ending.SCORED
        assert session.accounts.losses.endings == 1
        cut, worst = session.of(e.ModelCallEnded)[0], session.of(e.ModelCallIntended)[0].worst
        assert cut.ending is CallEnding.CUT
        assert 200 * 10 <= cut.spent.microdollars <= worst.microdollars  # all of max_tokens at the price of output
        assert session.of(e.StallFound)[0].lost.microdollars == cut.spent.microdollars


async def test_one_that_always_stalls_is_quarantined(tmp_path: Path, messages_server: MessagesServer) -> None:
    """After as many stalls as the task allows; it is kept, and the next attempt goes on."""
    messages_server.play(*[Reply(hang=Hang.FIRST)] * 2)
    points(messages_server, 7)
    task = write_task(tmp_path, CHEAP, STALL)
    async with open_asking(task, messages_server, asking, asking, attempts=1) as session:
        await session.run()
        assert session.nodes["1.1"].phase is Phase.QUARANTINED
        assert session.nodes["1.2"].ending is Ending.SCORED
        assert session.charged == 1
        causes = {it.cause for it in session.of(e.StallFound)}
        assert causes == {"no first token"}


async def test_a_drip_is_below_the_floor(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A byte now and then keeps an idle time-out happy, and nobody else."""
    messages_server.play(Reply((Text("x" * 200),), piece=4, pace_s=0.3))
    points(messages_server, 7)
    async with open_asking(write_task(tmp_path, CHEAP, STALL), messages_server, asking) as session:
        await session.run()
        assert [it.cause for it in session.of(e.StallFound)] == ["below the floor"]
        assert session.charged == 1


async def test_an_overloaded_provider_is_waited_for(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Retries before the first byte are no stall and cost nothing; that they go on is said from the first one on."""
    messages_server.play(Refusal(529, "overloaded_error", "Overloaded"))
    points(messages_server, 7)
    async with open_asking(write_task(tmp_path, CHEAP), messages_server, asking) as session:
        await session.run()
        assert len(messages_server.requests) == 2
        assert len(session.of(e.ModelCallEnded)) == 1
        assert session.charged == 1
        assert [it.provider for it in (*session.of(e.ProviderSilent), *session.of(e.ProviderHeard))] == ["model"] * 2
        assert not session.state.campaign.silent


async def test_a_refused_key_ends_the_campaign_and_charges_nothing(
    tmp_path: Path, messages_server: MessagesServer
) -> None:
    """One line says so; there is no use in trying the other attempts."""
    task = write_task(tmp_path, CHEAP)
    wrong = settings_for(messages_server, api_key=SecretStr("sk-ant-wrong"))
    async with scripted(task, None, asking, asking, settings=wrong, proposer="llm") as session:
        with pytest.raises(Unusable) as caught:
            await session.run()
        assert "key" in str(caught.value)
        assert "sk-ant-wrong" not in str(caught.value)
        assert session.charged == 0
        assert session.accounts.used(Account.USD) == 0


async def test_dollars_never_pass_the_cap_whatever_runs_in_parallel(
    tmp_path: Path, messages_server: MessagesServer
) -> None:
    """Reserved at the worst case, call by call and attempt by attempt; held after every single event."""

    async def greedy(brief: Brief) -> Sequence[Proposal]:
        assert brief.line is not None
        for _ in range(10):
            try:
                await brief.line.ask(system=["s"], messages=[{"role": "user", "content": "x"}], max_tokens=1000)
            except NoAnswer as error:
                raise (Unanswered if error.charged else Stalled)(str(error)) from error
        return []

    costly = {"input_tokens": 10, "output_tokens": 1000}
    messages_server.answering(lambda _: Reply((Text("x" * 100),), usage=costly))
    task = write_task(tmp_path, CHEAP)
    async with open_asking(task, messages_server, *[greedy] * 8, usd=0.18, width=4) as session:
        accounts = session.accounts

        def held(_: e.Event, __: str) -> None:
            open_worst = sum(it.spent.microdollars for it in session.nodes.values())
            assert open_worst <= 180_000
            assert accounts.used(Account.USD) + accounts.held(Account.USD) <= 180_000

        session.bench.book.listeners.append(held)
        finished = await session.run()
        assert "usd" in finished.reason or "$" in finished.reason
        assert 0 < accounts.used(Account.USD) <= 180_000
        assert session.charged == len(session.of(e.AttemptEnded)) - 1 >= 3


async def test_who_is_asked_again_has_what_is_left(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A proposer that offers only what is known is asked once more, within the one reservation of its attempt."""
    known = json.dumps({"value": 3})
    costly = {"input_tokens": 10, "output_tokens": 580}
    messages_server.answering(lambda _: Reply((Text(known + " " * 600),), usage=costly))
    task = write_task(tmp_path, '[model]\nusd = "$0.0125"\nmax_output = 600\n')

    async def at_length(brief: Brief) -> Sequence[Proposal]:
        return await asking(brief, max_tokens=600)

    async with open_asking(task, messages_server, at_length, at_length) as session:
        await session.run()
        assert len(messages_server.requests) == 2
        second = session.nodes["1.2"]
        assert second.ending is Ending.INVALID
        assert second.spent.microdollars <= 12_500


async def test_calls_that_died_with_their_orchestrator_are_booked_at_their_worst(
    tmp_path: Path, messages_server: MessagesServer
) -> None:
    """Nobody knows what the provider counted, so nothing less is safe."""
    task = write_task(tmp_path, CHEAP)
    worst = Spent(microdollars=1234, tokens=56)
    points(messages_server, 3)
    async with open_asking(task, messages_server, asking) as session:
        await session.run()
        before = session.accounts.used(Account.USD)
        session.bench.book.record(
            e.Reserved(hold="evolve-1", amounts={"usd": 5000, "tokens": 100}),
            e.ModelCallIntended(node="", call="lost", role=ModelRole.EVOLVER, model=MODEL, worst=worst),
        )
    async with open_asking(task, messages_server, how=How.RESUME, attempts=1) as session:
        assert not session.state.open_calls
        assert not session.accounts.holds
        assert session.accounts.used(Account.USD) == before + 1234
        await session.run()


async def test_an_agent_tunes_while_it_works(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Each try is a draft, paid from the tuning pool; it is told a rounded score, and what it hands in is run. Tuning
    is no oracle: an attempt has as many tries as the task says, and the same files are measured once.
    """
    told: list[Tuned] = []

    async def tuning(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        told.append(await brief.tune(proposal({"value": 3, "tuned": 1.23456789})))
        told.append(await brief.tune(proposal({"value": 4, "do": "failed"})))
        return [proposal({"value": 3, "tuned": 1.23456789})]

    async def curious(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        tune = brief.tune
        told.extend([await tune(proposal({"value": it, "tuned": it})) for it in (1, 1, 1, 2, 3, 4, 5)])
        return [proposal({"value": 3, "tuned": 3})]

    words: list[Point] = [{"tuned": 1.23456789, "do": "failed"}, *({"tuned": it} for it in range(1, 6))]
    task = write_task(tmp_path, CHEAP, TUNE)
    async with open_asking(task, messages_server, tuning, curious, tunes=9, words=words) as session:
        await session.run()
        assert told[:2] == [Tuned(1.235, "scored", 2), Tuned(None, "failed", 1)]
        node = session.nodes["1.1"]
        assert (node.ending, node.promoted) == (Ending.SCORED, 3)
        assert [draft.tried for draft in session.state.drafts("1.1")] == [True, True, False]
        again = [(1, 2)] * 3 + [(2, 1), (3, 0), (None, 0), (None, 0)]
        assert [(it.score, it.left) for it in told[2:]] == again
        assert session.accounts.used(Account.TUNES) == 2 + 3


@pytest.mark.parametrize("then", ["hands in", "overstays"])
@in_moments
async def test_a_tune_that_nobody_waits_for_is_used_up(
    tmp_path: Path, messages_server: MessagesServer, then: str
) -> None:
    """What it cost is booked, its hold is closed, and the next one can be asked for."""

    begun = asyncio.Event()

    async def impatient(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        begun.clear()
        tuning = asyncio.ensure_future(brief.tune(proposal({"value": 5, "tuned": 5, "takes": 30})))
        await begun.wait()
        if then == "overstays":
            await tuning
        tuning.cancel()
        await asyncio.wait([tuning])
        return [proposal({"value": brief.number, "tuned": brief.number})]

    task = write_task(tmp_path, CHEAP, TUNE, '[stall]\nafter = 1\npropose = "3s"\n', limits='[limits]\nwall = "60s"\n')
    site = make_site(Script(), usd_per_second=0.001)
    given: dict[str, Any] = {"settings": settings_for(messages_server), "proposer": "llm"}
    words: list[Point] = [{"tuned": 5, "takes": 30}, {"tuned": 1}, {"tuned": 2}]
    async with scripted(task, None, impatient, impatient, site=site, words=words, **given) as session:
        session.when(e.TrialIntended, lambda _: begun.set())
        await session.run()
        accounts, nodes = session.accounts, session.nodes.values()
        assert not accounts.holds
        assert accounts.used(Account.TUNES) == len(session.of(e.AttemptOpened)) - 1
        assert accounts.used(Account.USD) == sum(node.spent.microdollars for node in nodes) > 0
        assert all(trial.ended for trial in session.state.trials.values())


async def test_stalls_may_cost_only_so_much(tmp_path: Path, messages_server: MessagesServer) -> None:
    """The cap on losses ends the campaign, and says which flag to raise."""
    messages_server.answering(lambda _: Reply((Text("x" * 400),), hang=Hang.MIDDLE))
    task = write_task(tmp_path, CHEAP, STALL)
    async with open_asking(task, messages_server, *[asking] * 9, stall_losses=0.000001) as session:
        finished = await session.run()
        assert "--stall-losses" in finished.reason
        assert session.accounts.losses.usd > 0


async def test_nothing_to_hand_in_is_charged_and_invalid(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It was asked and it answered; that is an attempt."""

    async def prose(_: Brief) -> Sequence[Proposal]:
        raise Unanswered("the model answered with prose")

    async with open_asking(write_task(tmp_path, CHEAP), messages_server, prose) as session:
        await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.why) == (Ending.INVALID, "the model answered with prose")
        assert session.charged == 1


async def test_many_stalls_open_the_breaker(tmp_path: Path, messages_server: MessagesServer) -> None:
    """The queue is not burnt while a provider hangs."""
    messages_server.answering(lambda _: Reply(hang=Hang.FIRST))
    task = write_task(tmp_path, CHEAP, STALL)
    async with open_asking(task, messages_server, *[asking] * 9, width=3) as session:
        session.when(e.BreakerOpened, lambda _: session.campaign.stop("seen"))
        await session.run()
        opened = session.of(e.BreakerOpened)[0]
        assert opened.providers == ("model",)
        assert "no first token" in opened.why
        assert not session.charged
        assert not session.of(e.AttemptQuarantined)


@pytest.mark.parametrize(
    ("flags", "more", "words"),
    [
        ({}, {"api_key": None}, "there is no key"),
        ({}, {"api_key": SecretStr("  ")}, "there is no key"),
        ({}, {"models": ("claude-unheard-of",)}, "claude-unheard-of"),
        ({"usd": 0.0}, {}, "raise --usd"),
        ({"tokens": 0}, {}, "raise --tokens"),
    ],
)
async def test_what_is_missing_is_said_before_anything_is_asked(
    tmp_path: Path, messages_server: MessagesServer, flags: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    """One line, nothing recorded, nothing charged."""
    task = write_task(tmp_path, CHEAP)
    with pytest.raises(TaskError, match=words):
        async with scripted(
            task, None, asking, settings=settings_for(messages_server, **more), proposer="llm", **flags
        ):
            pass
    assert not messages_server.requests


async def test_a_provider_that_counts_too_much(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What it says that it bills is in the books, also beyond what was set aside, and the campaign ends at once."""
    told = {"input_tokens": 400_000, "output_tokens": 10}
    messages_server.answering(lambda _: Reply((Text('{"value": 4}'),), usage_first=told, usage=told))
    async with open_asking(write_task(tmp_path, CHEAP), messages_server, asking, asking) as session:
        with pytest.raises(Unusable, match="counts more than a request can hold: 400000 tokens of input"):
            await session.run()
        assert session.accounts.used(Account.USD) >= 800_000
    assert len(messages_server.requests) == 1
