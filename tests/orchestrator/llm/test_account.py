"""What was spent and what is held are together within the allowance, at any time and in any order."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.llm.account import Account, Held, PerMinute
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.refusal import Refused


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def account(dollars: int, **more: Any) -> Account:
    return Account(Allowance(ModelRole.USER, ("m",), dollars, **more), Clock())


async def reserved(account: Account, micro: int, tokens: int = 1) -> Held:
    return await account.reserve(Spent(microdollars=micro, tokens=tokens), lambda: None)


async def test_exactly_all() -> None:
    """What fits exactly is given; one more is refused as the API refuses for money. Tokens have a cap, too."""
    assert (await reserved(account(100), 100)).worst.microdollars == 100
    with pytest.raises(Refused, match=r"may cost \$0.0002, and \$0.0001 of the allowance are left") as refused:
        await reserved(account(100), 101)
    assert (refused.value.status, refused.value.kind) == (402, "billing_error")
    assert refused.value.headers == {"x-should-retry": "false"}
    with pytest.raises(Refused, match=r"\$0.0000 of the allowance"):
        await reserved(account(0), 1)
    with pytest.raises(Refused, match="may take 11 tokens, and 10 of"):
        await reserved(account(100, tokens=10), 1, tokens=11)


async def test_waits_its_turn() -> None:
    """Who does not fit waits, in order: a small one behind a large one does not overtake it."""
    one = account(100)
    first = await reserved(one, 60)
    waited: list[str] = []
    large = asyncio.create_task(one.reserve(Spent(microdollars=90), lambda: waited.append("large")))
    small = asyncio.create_task(one.reserve(Spent(microdollars=10), lambda: waited.append("small")))
    await asyncio.sleep(0)
    assert waited == ["large", "small"]
    one.settle(first, Spent(microdollars=5))
    assert (await large).worst.microdollars == 90
    await asyncio.sleep(0)
    assert not small.done()
    one.settle(large.result(), Spent())
    await small


async def test_told_when_it_can_not_fit_any_more() -> None:
    """Who waits for what others then spend is refused at that moment, wherever in the queue it stands."""
    one = account(100)
    first = await reserved(one, 60)
    waiting = [asyncio.create_task(reserved(one, micro)) for micro in (50, 45, 49)]
    await asyncio.sleep(0)
    one.settle(first, Spent(microdollars=52))
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [Refused, Held, Refused]


async def test_withdrawn() -> None:
    """Who is cancelled while it waits, or in the moment in which it is served, holds nothing."""
    one = account(100)
    first = await reserved(one, 60)
    waiting = asyncio.create_task(reserved(one, 90))
    await asyncio.sleep(0)
    one.settle(first, Spent())
    waiting.cancel()
    await asyncio.wait([waiting])
    if not waiting.cancelled():
        one.settle(waiting.result(), Spent())
    assert one.held == Spent()
    assert (await reserved(one, 100)).worst.microdollars == 100


async def test_waits_no_longer_than_the_token_lives() -> None:
    """A wait ends when the token does."""
    one = account(100, expires_at=100.02)
    await reserved(one, 60)
    with pytest.raises(Refused, match="expired") as refused:
        await reserved(one, 60)
    assert refused.value.status == 401
    assert one.held.microdollars == 60


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60), st.booleans()), max_size=30), st.integers(0, 100))
def test_never_more_than_allowed(calls: list[tuple[int, int, bool]], dollars: int) -> None:
    """Whatever is asked in parallel, cancelled or settled: spent and held never pass the allowance."""

    async def play() -> None:
        one = account(dollars)

        async def call(worst: int, cost: int) -> None:
            held = await reserved(one, worst)
            try:
                assert (one.spent + one.held).microdollars <= dollars
                await asyncio.sleep(0)
            finally:
                one.settle(held, Spent(microdollars=min(cost, worst)))

        tasks = [asyncio.create_task(call(worst, cost)) for worst, cost, _ in calls]
        await asyncio.sleep(0)
        for task, (_, _, cancel) in zip(tasks, calls, strict=True):
            if cancel:
                task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert result is None or isinstance(result, Refused | asyncio.CancelledError)
        assert one.held == Spent()
        assert one.spent.microdollars <= dollars

    asyncio.run(play())


def test_requests_a_minute() -> None:
    """So many in any minute; then the seconds until the next are told. A limit of none is one."""
    clock = Clock()
    limit = PerMinute(2, clock)
    limit.admit()
    clock.now += 20
    limit.admit()
    with pytest.raises(Refused) as refused:
        limit.admit()
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "40")
    clock.now += 40
    limit.admit()
    with pytest.raises(Refused) as refused:
        PerMinute(0, Clock()).admit()
    assert refused.value.headers["retry-after"] == "60"
