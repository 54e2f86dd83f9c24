"""Where a campaign stands, in a few figures: one row of the overview, and the head of its own page."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.budget import BOOKS, Account, Accounts
from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Campaign, Node
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts, Ledger, Missing, held_by
from orchestrator.settings import Settings
from orchestrator.task import StoredTask
from orchestrator.text import short
from orchestrator.views.campaign.sections.material import slots_of
from orchestrator.views.campaign.waiting import away_because, how_it_goes_on, silent_because
from orchestrator.views.page.finding import Found
from orchestrator.views.page.row_state import RowState
from orchestrator.wiring.ledgers import open_ledger

# A folder of somebody else may hold any file under the name of a task.
LONGEST_ARTIFACT = 64 << 20
_NAME = 200
_LINE = 400
# Among so many events is the last ending, if any is recent enough to be told.
_LAST = 400
_ENDED = e.AttemptEnded.model_fields["kind"].default


@dataclass(frozen=True)
class Standing:
    """A campaign's state, or as much of it as the figures need, and who works on it. `last` is the last ending."""

    found: Found
    state: State
    accounts: Accounts
    ranking: Ranking
    seq: int
    holder: str | None
    last: str = ""


def summary_of(it: Standing) -> dict[str, Any]:
    state, run = it.state, it.state.run
    campaign, metric = state.campaign, it.ranking.metrics[0]
    champion, root = state.champion(run), state.nodes.get(run.root)
    best, baseline = (_value(state, node, run.cohort, metric.name) for node in (champion, root))
    status, why = _status(state, it.holder, _waiting(it))
    slots = slots_of(run)
    over = it.accounts.used(slots) - run.before.get(slots.value, 0)
    worked = campaign.elapsed_s - run.began_s
    return {
        "id": it.found.id,
        "folder": short(it.found.shown, _NAME),
        "name": short(campaign.name, _NAME),
        "run": run.number,
        "runs": [int(number) for number in state.runs],
        "proposer": short(run.proposer, _NAME),
        "control": short(run.control or "", _NAME),
        "islands": run.islands,
        "status": status,
        "why": short(why, _LINE),
        "holder": short(it.holder or "", _NAME),
        "metric": short(metric.name, _NAME),
        "goal": str(metric.goal),
        "best": best,
        "best_node": champion.id if champion else "",
        "baseline": baseline,
        "since_improvement": campaign.since_improvement,
        "attempts": _gauge(it.accounts, slots, run.before.get(slots.value, 0)),
        "usd": _gauge(it.accounts, Account.USD),
        "rate": over * 3600 / worked if worked > 0 and over else None,
        "elapsed_s": campaign.elapsed_s,
        "at": _seconds(campaign.last_at),
        "last": short(it.last, _LINE),
        "seq": it.seq,
    }


def _value(state: State, node: Node | None, cohort: str | None, metric: str) -> dict[str, Any] | None:
    found = headline(state, node, cohort) if node else None
    value = found.metrics.get(metric) if found else None
    return None if found is None or value is None else {"value": value, "text": found.mark + figures.score(value)}


def _status(state: State, holder: str | None, waiting: Sequence[str]) -> tuple[str, str]:
    """One word, and why."""
    campaign: Campaign = state.campaign
    if holder and waiting:
        return "waits for you", f"{figures.few(waiting, 5)} may become the best: blastdoor accept, or decline"
    if holder and campaign.paused:
        return "paused", campaign.pause_why or "blastdoor pause --off goes on"
    if holder and campaign.away:
        return "away", away_because(campaign)
    if holder:
        return "running", silent_because(campaign)
    if campaign.session_open:
        return "died", f"nobody works on it: it died at its work, and {how_it_goes_on(state)}"
    return "stopped", campaign.stopped or how_it_goes_on(state)


def _waiting(it: Standing) -> list[str]:
    """Who waits for a person, among the attempts that money is held for: those are the open ones."""
    names = dict.fromkeys(hold.partition("#")[0] for hold in it.accounts.holds)
    return [name for name in names if name in it.state.nodes and it.state.nodes[name].waits_for_person]


def _gauge(accounts: Accounts, account: Account, before: int = 0) -> dict[str, int | None]:
    limit = accounts.limit(account)
    used, cap = accounts.used(account) - before, None if limit is None else limit - before
    return {"used": used, "held": accounts.held(account), "cap": cap}


def _seconds(at: str) -> float | None:
    return datetime.fromisoformat(at).timestamp() if at else None


@contextmanager
def read_standing(found: Found, settings: Settings | None) -> Iterator[Standing]:
    """From a few rows, whatever the length of the campaign. Raises LedgerErrors."""
    with open_ledger(found.folder, settings, read_only=True, waits_to_read=False) as ledger:
        seq, state = ledger.head().seq, RowState(ledger)
        if not state.opened or not state.runs:
            raise Missing(f"no campaign has begun in {found.folder} yet; blastdoor run starts one")
        task = (
            Artifacts(found.folder / "artifacts", longest=LONGEST_ARTIFACT)
            .get(state.run.task)
            .decode("utf-8", "replace")
        )
        yield Standing(
            found,
            state,
            Accounts.from_ledger({BOOKS: state.books} if state.books else {}),
            StoredTask(task).criteria.order,
            seq,
            holder_of(found, ledger),
            last_ending(ledger, seq),
        )


def holder_of(found: Found, ledger: Ledger) -> str | None:
    holder = held_by(found.folder / "lock") or ledger.held_by()
    return str(holder) if holder else None


def last_ending(ledger: Ledger, seq: int) -> str:
    """What became of the last attempt that ended, in a line."""
    records = list(ledger.read(after=max(0, seq - _LAST), kinds=[_ENDED]))
    return e.read_event(records[-1].body).said if records else ""
