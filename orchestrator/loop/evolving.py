"""Evolving the playbook: an evolver writes a challenger, attempts try it beside the present version, and the numbers
decide. All that is decided follows from the state; only one thing is under way here at a time: one asking.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

import structlog

from orchestrator.budget import Amounts
from orchestrator.domain import events as e
from orchestrator.domain.certify import Stand
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import EVOLVING, PlaybookVersion, Role, Spent
from orchestrator.domain.state import State
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.line import Line, NoAnswer
from orchestrator.loop.models import FoundStalled
from orchestrator.loop.money import account_of, usage
from orchestrator.loop.playbooks import Playbooks
from orchestrator.loop.workbench import Workbench
from orchestrator.playbook import Pages, PlaybookError
from orchestrator.playbook.contest import can_be_shown, level_of, open_contest
from orchestrator.playbook.results import Tally, tallies
from orchestrator.playbook.rewriting import Past, attempt_lines, instructions, request, rewritten, shown_in_full
from orchestrator.text import short

# So many attempts are waited for before the evolver is asked, and asked again: it has nothing to go by else.
LEAST_ATTEMPTS = 5
# An answer that cannot be used is told back once, with the reason.
_ROUNDS = 2

Result = TypeVar("Result")
_log = structlog.get_logger()


class Heard(Protocol):
    @property
    def line(self) -> Line: ...

    async def until_stalled(self, work: Coroutine[Any, Any, Result]) -> Result: ...


class Lines(Protocol):
    """Where lines to models come from."""

    @property
    def allowances(self) -> Mapping[ModelRole, Allowance]: ...

    def watched(self, node: str, role: ModelRole, lasts_s: float) -> AbstractAsyncContextManager[Heard]: ...


class Evolving:
    """`is_funded` is the allocator's word: whether it is the evolver's turn to be paid for."""

    def __init__(self, bench: Workbench, playbooks: Playbooks, models: Lines, is_funded: Callable[[], bool]) -> None:
        self._bench = bench
        self._playbooks = playbooks
        self._models = models
        self._is_funded = is_funded
        self._asking: asyncio.Task[None] | None = None

    @property
    def _state(self) -> State:
        return self._bench.state

    def turn(self, *, may_ask: bool) -> None:
        """Decide what can be decided, and ask for a challenger where it is time for one. Raises Unusable."""
        if self._asking and self._asking.done():
            asking, self._asking = self._asking, None
            asking.result()
        self._conclude()
        if may_ask and self._asking is None and self._is_due():
            self._begin()

    async def close(self) -> None:
        """End what is under way; it is booked when this returns."""
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])
            self._asking = None

    def _conclude(self) -> None:
        contest = open_contest(self._state)
        if contest is None:
            return
        found = contest.evidence(self._state, self._bench.ranking)
        number = contest.challenger.number
        if found.stand is Stand.PROVEN:
            why = f"shown to be better than version {contest.present}: {found.told('pair')}"
            self._bench.book.record(e.PlaybookUsed(version=number, by="evolver", why=why))
        elif found.stand is Stand.FUTILE:
            why = f"not shown to be better than version {contest.present}: {found.told('pair')}"
            self._bench.book.record(e.PlaybookDiscarded(version=number, why=why))

    def _is_due(self) -> bool:
        now, certify = self._state.campaign, self._bench.certify
        if now.playbook is None or now.challenger is not None:
            return False
        if self._state.count_all(Role.SEARCH) - now.evolved_after < LEAST_ATTEMPTS:
            return False
        left = self._bench.book.accounts.left(account_of(self._bench))
        return can_be_shown(self._state, certify, attempts=left) and self._is_funded()

    def _begin(self) -> None:
        """The worst case is set aside first; where it does not fit, users go on without."""
        book = self._bench.book
        allowance = self._models.allowances[ModelRole.EVOLVER]
        worst = usage(Spent(microdollars=allowance.microdollars, tokens=allowance.tokens or 0))
        if book.accounts.shortage(worst):
            return
        hold = f"{EVOLVING}{self._state.campaign.evolutions + 1}"
        book.record(e.Reserved(hold=hold, amounts=worst.as_row()))
        self._asking = asyncio.create_task(self._evolve(hold, allowance), name=hold)

    async def _evolve(self, hold: str, allowance: Allowance) -> None:
        present = self._playbooks.present
        pages = self._playbooks.pages(present)
        found: tuple[Pages, str] | None = None
        try:
            async with asyncio.timeout(self._bench.propose_s):
                found = await self._ask(pages, allowance)
        except (NoAnswer, FoundStalled, PlaybookError, TimeoutError) as error:
            _log.warning("no new playbook", why=short(str(error) or "no answer in time", 200))
        finally:
            events: list[e.Event] = [e.Settled(hold=hold, node="", spent=self._spent().as_row())]
            # What a person chose meanwhile is not what the evolver was shown.
            if found and self._playbooks.present == present:
                certify = self._bench.certify
                level = level_of(self._state, certify)
                events.append(self._playbooks.challenge(*found, level=level, pairs=certify.repeats))
            self._bench.book.record(*events)

    def _spent(self) -> Amounts:
        return usage(self._state.campaign.unbooked)

    async def _ask(self, pages: Pages, allowance: Allowance) -> tuple[Pages, str]:
        """Raises PlaybookError when the last answer cannot be used either."""
        number = self._state.campaign.evolutions
        model = allowance.models[number % len(allowance.models)]
        messages: list[dict[str, Any]] = [{"role": "user", "content": self._request(pages)}]
        async with self._models.watched("", ModelRole.EVOLVER, self._bench.propose_s) as heard:
            for last in range(1, _ROUNDS + 1):
                asked = heard.line.ask(
                    system=[instructions()],
                    messages=messages,
                    max_tokens=self._bench.task.model.max_output,
                    model=model,
                )
                answer = await heard.until_stalled(asked)
                try:
                    return rewritten(pages, answer.text)
                except PlaybookError as error:
                    if last == _ROUNDS:
                        raise
                    told = f"That could not be used: {error}. Answer once more, in the form that you were told."
                    messages += [{"role": "assistant", "content": answer.text or "(nothing)"}]
                    messages += [{"role": "user", "content": told}]
        raise AssertionError("the last round returns or raises")

    def _request(self, pages: Pages) -> str:
        state = self._state
        versions = list(state.playbooks.values())
        brought = tallies(state, self._bench.ranking)
        in_full = {it.number for it in shown_in_full(versions)}
        pasts = [self._past(it, brought.get(it.number, Tally()), it.number in in_full) for it in versions]
        return request(self._bench.task.statement, pages, pasts, attempt_lines(state))

    def _past(self, record: PlaybookVersion, tally: Tally, in_full: bool) -> Past:
        if not in_full or record.parent is None:
            return Past(record, tally)
        return Past(record, tally, self._playbooks.pages(record.number), self._playbooks.pages(record.parent))
