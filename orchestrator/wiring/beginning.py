"""How a campaign begins, goes on, or gets another run: what is written before anything else."""

import json
import os
import socket
import uuid
from collections.abc import Mapping
from enum import Enum
from importlib.metadata import version

from orchestrator.budget import Account, limits_of
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Campaign, Combining, Role, Run, SiteRecord
from orchestrator.loop.book import Book
from orchestrator.loop.interruption import reconcile
from orchestrator.loop.money import account_of
from orchestrator.loop.purse import settle_left
from orchestrator.loop.width import Shape
from orchestrator.loop.workbench import Workbench
from orchestrator.task import Snapshot, Task
from orchestrator.wiring.options import Options
from orchestrator.wiring.plugins import brought_by_others
from orchestrator.wiring.site import Site


class How(Enum):
    """What is done with a campaign: it is started, resumed, or goes on in a new run: with other criteria, or with
    combinations of what it has.
    """

    START = "run"
    RESUME = "resume"
    NEW_RUN = "run --new-run"
    COMBINE = "combine"


def begin(
    book: Book,
    bench: Workbench,
    task: Task,
    site: Site,
    options: Options,
    form: Shape,
    taken: Snapshot,
    how: How,
    start: str | None,
    lower_tier: bool,
    combine: Combining | None = None,
    by: str = "",
) -> None:
    """Seize the campaign, then say what begins. `task` is as its folder says; the site may give it more."""
    holder = f"pid {os.getpid()} on {socket.gethostname()}"
    elsewhere = book.state.opened and _is_elsewhere(book.state.campaign, holder, site)
    epoch = book.ledger.seize(holder)
    session = e.SessionStarted(epoch=epoch, holder=holder, place=site.place, by=by)
    if how is How.RESUME:
        book.record(session)
        _close_what_was_left(bench, site, elsewhere=elsewhere)
        caps = _caps(bench, options, book.state.run.before)
        book.record(caps, *_site(site, book.state.run), *_pages(bench, new_run=False))
    elif how is not How.START:
        book.record(session)
        _close_what_was_left(bench, site, elsewhere=elsewhere)
        number = book.state.campaign.run + 1
        started = _run_started(number, bench, task, options, form, taken, start, lower_tier, combine)
        limits = _caps(bench, options, started.before)
        # Together: after a death before it, the old run can still be resumed.
        book.record(*_drop_old_runs(book), started, limits, *_site(site), *_pages(bench, new_run=True))
    else:
        opened = e.CampaignOpened(campaign=uuid.uuid4().hex, name=bench.task.name, version=version("blastdoor"))
        started = _run_started(1, bench, task, options, form, taken, start, lower_tier)
        book.record(
            opened,
            session,
            started,
            _caps(bench, options, {}),
            *_site(site),
            *_pages(bench, new_run=True),
        )


def _is_elsewhere(last: Campaign, holder: str, site: Site) -> bool:
    """Whether those before us rented where we cannot end it: on another host, for another user, in another app."""
    hosts = {_host(last.holder), _host(holder)} - {""}
    places = {last.place, site.place} - {""}
    return len(hosts) > 1 or len(places) > 1


def _host(holder: str) -> str:
    return holder.rpartition(" on ")[2]


def _close_what_was_left(bench: Workbench, site: Site, *, elsewhere: bool) -> None:
    """What a dead owner had under way was ended at its provider when we connected; only now it is booked.

    What one `elsewhere` rented is left alone until its own end, for it may still live: so it counts as the worst case.
    So does what the provider did not let us end, and what was rented where the campaign is no longer: nobody was asked
    there.
    """
    last = bench.state.run.site
    moved = last is not None and last.is_rented and last.backend != site.name
    doubtful = elsewhere or bool(site.unreaped)
    if doubtful and bench.door.tariff.is_rented:
        bench.door.unsure["rented by somebody whose chambers may still live"] = ""
    reconcile(bench, moved=moved)
    settle_left(bench.book, worst=doubtful or moved)
    bench.door.unsure.clear()


def _pages(bench: Workbench, *, new_run: bool) -> list[e.Event]:
    return bench.playbooks.begun(new_run=new_run) if bench.playbooks else []


def _site(site: Site, run: Run | None = None) -> list[e.Event]:
    """Said once, and again only where it is not what the run was told last."""
    can = site.backend.capabilities
    place = SiteRecord(backend=site.name, boundary=can.boundary, judge=site.home.name, caveats=can.caveats)
    return [] if run and run.site == place else [e.SiteOpened(site=place)]


def _run_started(
    number: int,
    bench: Workbench,
    task: Task,
    options: Options,
    form: Shape,
    taken: Snapshot,
    start: str | None,
    lower_tier: bool,
    combine: Combining | None = None,
) -> e.RunStarted:
    return e.RunStarted(
        run=number,
        task=bench.artifacts.put(task.canonical().encode()),
        digests={name: digest for name, digest in taken.digests.items() if name != "task"},
        seed=options["seed"],
        proposer=options["proposer"],
        control=options["control"],
        width=form.width,
        depth=form.depth,
        why=form.why,
        options=json.dumps(options.given()),
        lower_tier=lower_tier,
        noisy=bench.certify.noisy,
        before={account.value: bench.book.accounts.used(account) for account in _OF_A_RUN},
        usd_before=bench.book.accounts.used(Account.USD),
        start=start,
        brought=brought_by_others(options, task),
        islands=options["islands"] if bench.proposers[Role.SEARCH].branching else 1,
        migrate=options["migrate"],
        combine=combine,
    )


def _drop_old_runs(book: Book) -> list[e.Event]:
    why = "a new run was started"
    return [e.AttemptEnded(node=name, ending=Ending.CANCELLED, why=why) for name in book.state.unfinished]


_OF_A_RUN = (Account.ATTEMPTS, Account.TUNES, Account.COMBINATION, Account.MINIMISATION, Account.CONTROL)


def _caps(bench: Workbench, options: Options, before: Mapping[str, int]) -> e.LimitsSet:
    """A cap below what is used already is reached, no more: the rule that stops there says so."""
    names, accounts = ("tunes", "minimisation", "usd", "tokens", "seconds", "stall_losses"), bench.book.accounts
    attempts = {account_of(bench).value: options["attempts"]}
    caps = limits_of(**{name: options[name] for name in names}, **attempts, control=options["attempts"])
    limits = {
        account.value: max(units + before.get(account.value, 0), accounts.used(account))
        for account, units in caps.items()
    }
    return e.LimitsSet(limits=limits, options=json.dumps(options.given()))
