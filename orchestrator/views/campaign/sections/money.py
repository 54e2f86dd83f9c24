"""What a campaign costs: its accounts, what was lost, what stood ready, and which role asked which model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.budget import Account, shown
from orchestrator.budget.amounts import SLOTS
from orchestrator.domain import figures
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.model_use import Tokens
from orchestrator.domain.records import Asked, Campaign
from orchestrator.domain.state import State
from orchestrator.units import format_size
from orchestrator.views.campaign.sections.material import Material, slots_of
from orchestrator.views.render.model import (
    BREAK,
    Block,
    Facts,
    Figure,
    Gauge,
    Part,
    Prose,
    Quote,
    Section,
    Table,
    Words,
    join,
)

if TYPE_CHECKING:
    from orchestrator.budget.allocation import Course


def accounts(it: Material) -> Section:
    """Every account that has a cap or was used. Slots are a run's own: what earlier runs used of them is left out."""
    rows: list[tuple[str, Words]] = []
    for account in Account:
        own = it.run is it.state.run
        earlier = it.run.before.get(account.value, 0) if own else 0
        if account is Account.CONTROL and it.run.control is None:
            continue
        limit, used, held = it.accounts.limit(account), it.accounts.used(account) - earlier, it.accounts.held(account)
        if account is Account.MINIMISATION and not used and not held:
            continue
        if limit is None and not used and not held:
            continue
        rows.append((account.value, _account(account, used, held, None if limit is None else limit - earlier)))
    body: list[Block] = [Facts(rows)] if rows else []
    data = {
        account.value: {
            "limit": it.accounts.limit(account),
            "used": it.accounts.used(account),
            "held": it.accounts.held(account),
            "left": it.accounts.left(account),
        }
        for account in Account
    }
    return Section("accounts", "What it cost", "", body, {"accounts": data}, open=True)


def _account(account: Account, used: int, held: int, cap: int | None) -> list[Part]:
    told = [f"{_units(account, used)} used"]
    told += [f"{_units(account, held)} held"] if held else []
    left = 0 if cap is None else max(0, cap - used - held)
    told += [f"{_units(account, left)} left of {_units(account, cap)}"] if cap is not None else []
    return [Gauge(used, held, cap), f"  {', '.join(told)}"]


def _units(account: Account, units: int) -> str:
    """Slots as a bare number: the line says already what they are."""
    return f"{units:,}" if account in SLOTS or account is Account.TOKENS else shown(account, units)


def cost(it: Material) -> Section:
    """A cap on attempts is one run's and all others are the campaign's, so with several runs both are told."""
    used, losses, runs = it.accounts.used, it.accounts.losses, list(it.state.runs.values())
    combined = [Account.COMBINATION] if used(Account.COMBINATION) else []
    told = [shown(account, used(account)) for account in (Account.ATTEMPTS, *combined, Account.USD)]
    told.append(f"{shown(Account.SECONDS, used(Account.SECONDS))} in chambers")
    told.append(f"{figures.duration(it.state.campaign.elapsed_s)} on the clock")
    told += [f"standing: {stood}"] if (stood := standing_line(it.state.campaign)) else []
    told += [f"stall losses: {losses}"] if losses.cost else []
    whole = ", ".join(told)
    if len(runs) > 1:
        slots = slots_of(runs[-1])
        own = used(slots) - runs[-1].before.get(slots.value, 0)
        mine = f"{shown(slots, own)} in run {runs[-1].number}"
        whole = f"{mine}; all {len(runs)} runs together: {whole}"
    return Section("cost", line=whole, data={"elapsed_s": it.state.campaign.elapsed_s})


def rented(it: Material) -> Section:
    return Section("rented", line=standing_line(it.state.campaign, len(it.state.standing)))


def standing_line(campaign: Campaign, now: int = 0) -> str:
    """Empty where nothing ever stood; `now` is how much of it stands still."""
    if not campaign.stood:
        return ""
    still = f", {now} of them now" if now else ""
    return f"{figures.dollars(campaign.standing.microdollars)} ({campaign.stood} stood ready{still})"


def unsettled(it: Material) -> Section:
    """What is booked at its worst since nobody saw its end; nothing where all is settled."""
    doubts = it.state.doubts.values()
    line: list[Part] = []
    if doubts:
        usd = figures.dollars(sum(doubt.microdollars for doubt in doubts))
        what = figures.plural(len(doubts), "chamber")
        line = [f"{usd} for {what} whose end nobody saw, booked at the worst case; "]
        known = Quote(" and ".join(sorted({doubt.registry for doubt in doubts})))
        if it.holder:
            line += ["until ", known, " says how long each lived"]
        else:
            line += ["blastdoor resume asks ", known, " if it rents there; providers forget in time"]
    data = {doubt.chamber: {"usd": doubt.microdollars / 1e6, "node": doubt.node or None} for doubt in doubts}
    return Section("unsettled", line=line, data={"unsettled": data} if data else {})


def outputs(it: Material) -> Section:
    """Those that it let go; nothing where all is still there, and within its budget."""
    campaign, told = it.state.campaign, []
    if campaign.let_go:
        trials = figures.plural(campaign.let_go, "discarded trial")
        told.append(f"those of {trials} were let go ({format_size(campaign.let_go_bytes)}), the oldest first")
    if campaign.over_budget:
        told.append(f"{format_size(campaign.over_budget)} were needed, more than --artifacts allows")
    return Section("outputs", line="; ".join(told))


def offers(it: Material) -> Section:
    """How many of the changes that a model offered were new; nothing where nobody was asked."""
    campaign = it.state.campaign
    data = {"offered": campaign.offered, "distinct": campaign.distinct, "refused": campaign.unfit}
    line = ""
    if campaign.offered:
        were, are = ("was", "is") if campaign.offered == 1 else ("were", "are")
        offered = f"{figures.plural(campaign.offered, 'change')} that {were} offered"
        line = f"{campaign.distinct:,} of {offered} {are} new ({campaign.distinct / campaign.offered:.0%})"
        line += f", {campaign.unfit:,} did not apply" if campaign.unfit else ""
    return Section("offers", line=line, data={"offers": data})


def models(it: Material) -> Section:
    """Who asked which model, what that cost, and how the dollars are shared from here on."""
    asked, course = _by_role_and_model(it.state), _course(it)
    told: list[list[Part]] = [
        [f"{role} ", Quote(model, 80), f" {_dollars(use)} in {figures.plural(use.calls, 'call')}"]
        for role, model, use in asked
    ]
    shares = [[f"from now on {_shares(course)}: {course.why}"]] if course and asked else []
    rows: list[list[Words]] = [
        [role, Quote(model), Figure(use.calls, f"{use.calls:,}"), *_tokens(use), _dollars(use)]
        for role, model, use in asked
    ]
    titles = ["role", "model", "calls", *(name.replace("_", " ") for name in Tokens.model_fields), "dollars"]
    data = {
        "models": [{"role": role, "model": model, **use.model_dump(mode="json")} for role, model, use in asked],
        "shares": dict(course.shares) if course else None,
        "why": course.why if course else None,
        "findings": findings_of(it.counted.notable),
    }
    body: Block = Table(titles, rows) if asked else Prose("No model was asked.")
    line = join([join(told, ", "), *shares] if asked else [], BREAK)
    return Section("models", "Models and roles", line, [body], {"roles": data})


def findings_of(nodes: Sequence[AnyNode]) -> dict[str, int]:
    """What the verifier found, and how often."""
    found = sorted(node.finding for node in nodes if node.finding)
    return {finding: found.count(finding) for finding in found}


def verifier(it: Material) -> Section:
    found = findings_of(it.counted.notable)
    told = ", ".join(f"{count:,} {finding}" for finding, count in found.items())
    flagged = [node.id for node in it.counted.notable if node.finding in ("flag", "hold")]
    see = f"; see {figures.few(flagged)}" if flagged else ""
    return Section("verifier", line=f"{told}, which never score{see}" if told else "", data={})


def _course(it: Material) -> "Course | None":
    if not (it.criteria.roles.evolver or it.criteria.roles.verifier):
        return None
    # Only campaigns that share dollars pay for loading the loop.
    from orchestrator.loop.shares import course_of

    return course_of(it.state, it.accounts, it.task)


def _shares(course: "Course") -> str:
    return ", ".join(f"{role} {share:.0%}" for role, share in course.shares.items() if share)


def _tokens(asked: Asked) -> list[Figure]:
    counts = [getattr(asked.tokens, name) for name in Tokens.model_fields]
    return [Figure(count, f"{count:,}") for count in counts]


def _dollars(asked: Asked) -> str:
    return figures.dollars(asked.spent.microdollars)


def _by_role_and_model(state: State) -> list[tuple[str, str, Asked]]:
    keyed = [(key.partition(" "), asked) for key, asked in sorted(state.campaign.asked_models.items())]
    return [(role, model, asked) for (role, _, model), asked in keyed]
