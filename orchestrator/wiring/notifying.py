"""News of a session, to wherever its user wants it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from orchestrator.domain import events as e
from orchestrator.notify.post import Post
from orchestrator.notify.reporter import Reporter
from orchestrator.notify.target import Target
from orchestrator.registry import told
from orchestrator.settings import Settings
from orchestrator.wiring.opening import Opened
from orchestrator.wiring.resuming import CannotOpen

Say = Callable[[str], None]


def targets_of(settings: Settings) -> list[Target]:
    """Raises CannotOpen with one line; what is wrong with one is said before a campaign begins."""
    try:
        return [Target.parse(it.get_secret_value()) for it in settings.notify]
    except ValueError as error:
        raise CannotOpen(f"notify: {error}") from None


@asynccontextmanager
async def notifying(opened: Opened, settings: Settings, say: Say = lambda _: None) -> AsyncIterator[None]:
    """`say` gets a line for each target that did not get everything. Nothing else that goes wrong is felt."""
    targets = targets_of(settings)
    if not targets:
        yield
        return
    book = opened.bench.book
    campaign = book.state.campaign
    reporter = Reporter(book.state, book.accounts, opened.options["wall"])
    post = Post(targets, campaign.id, campaign.name, campaign.run)
    faults: list[str] = []

    def on_event(event: e.Event, at: str) -> None:
        try:
            for news in reporter.news_of(event, at):
                post.send(news)
        except Exception as error:  # noqa: BLE001  news must never end a campaign; it is said below
            faults.append(told(error))

    book.observers.append(on_event)
    try:
        yield
    finally:
        book.observers.remove(on_event)
        await asyncio.to_thread(post.close)
        for fault in (*post.faults, *faults[:1]):
            say(f"notify: {fault}")
