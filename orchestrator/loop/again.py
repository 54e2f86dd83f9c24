"""Running a candidate once more, with a reservation of its own: for a new cohort, or because its score is noisy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.budget import Amounts
from orchestrator.domain import events as e
from orchestrator.domain.records import Node, Purpose, Trial
from orchestrator.domain.verdict import Mode
from orchestrator.loop.interruption import interrupt
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import unbooked, worst_of_trial
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Free, Workbench


class CanNotCompare(Exception):
    """What a candidate would have to be compared with cannot be measured; the message says why."""


async def run_again(bench: Workbench, name: str, purpose: Purpose, hold: str) -> None:
    """One trial more and its judging. Nothing waits for money: raises CanNotCompare where the caps leave no room.

    A trial that only waits for its judge, since somebody died there, is not run again. On Free, or when it is
    cancelled, the hold stays open: the owner of the node closes it.
    """
    async with set_aside(bench, name, hold, 1, f"one more {purpose} of {name}"):
        await run_once(bench, name, purpose)


@asynccontextmanager
async def set_aside(bench: Workbench, name: str, hold: str, runs: int, what: str) -> AsyncIterator[None]:
    """Reserve the worst case of so many trials, and settle what they did cost. On an exception the hold stays open."""
    amounts = sum([worst_of_trial(bench, Mode.SUBMIT)] * runs, Amounts())
    if shortage := bench.book.accounts.shortage(amounts):
        raise CanNotCompare(f"the caps leave no room for {what} ({shortage})")
    before = unbooked(bench.state.nodes[name])
    bench.book.record(e.Reserved(hold=hold, amounts=amounts.as_row()))
    yield
    # Only its own part: what else the node spent belongs to its attempt, and what is freed of it is booked already.
    spent = unbooked(bench.state.nodes[name]) - before
    bench.book.record(e.Settled(hold=hold, node=name, spent=spent.as_row()))


async def run_once(bench: Workbench, name: str, purpose: Purpose, subject: str = "") -> None:
    """One trial and its judging, for which money is set aside."""
    trial = _unjudged(bench, bench.state.nodes[name], purpose, subject)
    if trial is None:
        whose = bench.state.nodes[subject or name]
        tree = await bench.tree(whose.id)
        done = await run_trial(bench, name, purpose, whose.promoted or 0, tree, subject=subject)
        trial = bench.state.trials[done]
    if trial.ending is None:
        await judge_trial(bench, trial.id)


async def run_ended_again(bench: Workbench, name: str, purpose: Purpose) -> None:
    """The same for a node whose own attempt is over, for another one. One at a time: the caller has the lock."""
    hold = f"{name}#{purpose}-{bench.state.nodes[name].trials + 1}"
    async with for_another(bench, name, hold):
        await run_again(bench, name, purpose, hold)


@asynccontextmanager
async def for_another(bench: Workbench, name: str, hold: str) -> AsyncIterator[None]:
    """Work on a node whose own attempt is over, under a hold of its own. On Free it is refunded, and when cancelled
    ended: the attempt that wanted it ends itself.
    """
    try:
        yield
    except Free:
        spent = unbooked(bench.state.nodes[name])
        bench.book.record(e.Refunded(hold=hold, node=name, spent=spent.as_row()))
        raise
    except asyncio.CancelledError:
        interrupt(bench, name)
        raise


def _unjudged(bench: Workbench, node: Node, purpose: Purpose, subject: str) -> Trial | None:
    trials = [it for it in bench.state.trials_of(node.id) if (it.purpose, it.subject) == (purpose, subject)]
    last = trials[-1] if trials else None
    return last if last and last.ended and last.ending is None and not last.judged else None
