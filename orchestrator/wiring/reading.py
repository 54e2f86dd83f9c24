"""A campaign seen from another terminal: one consistent state, and an inbox to ask through."""

import functools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.budget import BOOKS, Accounts
from orchestrator.domain.state import SHORT_KINDS, State
from orchestrator.ledger import Artifacts, Head, Ledger, LedgerError, Missing, Request, Snapshot, held_by
from orchestrator.settings import Settings
from orchestrator.task import FILE as TASK_FILE
from orchestrator.task import StoredTask, TaskError, refuse_unnameable
from orchestrator.units import stamp, utc_now
from orchestrator.wiring.ledgers import FILE, NOTE, open_ledger

if TYPE_CHECKING:
    from orchestrator.git import Candidates
    from orchestrator.task import Task

_CAMPAIGN = ".blastdoor"
_TASK_NOTE = "task.txt"
# Up to so many records, all rows are compared with their seal for whoever only looks, too, in less than a tenth of a
# second. Of a longer ledger, only for who acts.
SHORT_LEDGER = 20_000
# In the folder of a comparison of campaigns, which has each of them in a folder of its own.
AB_FILE = "ab.json"


@dataclass(frozen=True)
class Reading:
    """`holder` says who works on the campaign now, None when nobody does; `named` is what a person called it by."""

    state: State
    accounts: Accounts
    ledger: Ledger
    head: Head
    artifacts: Artifacts
    folder: Path
    named: Path
    stored: StoredTask
    holder: str | None

    @property
    def task(self) -> "Task":
        """Of the present run. Raises TaskError where it cannot be read."""
        return self.stored.whole

    @functools.cached_property
    def candidates(self) -> "Candidates":
        # Loaded here: git's library takes a tenth of what a command takes that looks at no candidate.
        from orchestrator.git import Candidates

        return Candidates(self.folder / "candidates.git", make=False)

    def waiting(self, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        """Requests of these kinds that nobody took yet: when each was asked for, and what it says."""
        found = [(it.at, json.loads(it.body)) for it in self.requests() if it.kind in kinds]
        return [(at, body) for at, body in found if isinstance(body, dict)]

    def requests(self) -> list[Request]:
        """All that nobody took yet."""
        return self.ledger.requests(after=self.state.campaign.request)


def campaign_folder(task_folder: Path) -> Path:
    """Where the campaign of a task is kept; one that is kept elsewhere is named by its own folder.

    Raises TaskError for a folder that no ledger could name.
    """
    refuse_unnameable(task_folder)
    if not (task_folder / TASK_FILE).exists() and any((task_folder / name).is_file() for name in (FILE, NOTE)):
        return task_folder
    return task_folder / _CAMPAIGN


def ab_folder(task: Path) -> Path:
    """Where the comparison of a task is kept, if nobody names another folder."""
    return campaign_folder(task) / "ab"


def task_folder_of(named: Path) -> Path:
    """The task of what a person named: that folder itself, or the task of the campaign that it holds.

    Raises TaskError where nothing says which.
    """
    folder = campaign_folder(named)
    if folder != named:
        return named
    try:
        return Path((folder / _TASK_NOTE).read_text(encoding="utf-8").removesuffix("\n"))
    except FileNotFoundError:
        whole = folder.resolve()
    except (OSError, ValueError):
        raise TaskError(f"{folder / _TASK_NOTE}: cannot be read; it has to name the folder of the task") from None
    if whole.name == _CAMPAIGN and (whole.parent / TASK_FILE).exists():
        return whole.parent
    raise TaskError(f"{named} holds a campaign, and nothing says where its task is; name the folder of the task")


def remember_task(folder: Path, task_folder: Path) -> None:
    """In a campaign that is kept elsewhere, so that commands that need the task find it. Raises LedgerError."""
    if folder.resolve() == (task_folder / _CAMPAIGN).resolve():
        return
    try:
        (folder / _TASK_NOTE).write_text(f"{task_folder.resolve()}\n", encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"{folder / _TASK_NOTE}: {error.strerror}") from error


@contextmanager
def read_campaign(
    task_folder: Path, settings: Settings | None = None, *, glance: bool = False, dotted: bool = False
) -> Iterator[Reading]:
    """Read a campaign, at work or finished: one consistent state, and nothing is locked.

    Args:
        task_folder: The folder of the task, or the campaign's own in it.
        settings: In place of the user's own.
        glance: For one who looks at some nodes: the others are read when they are asked for, and are of that moment.
            Of a long campaign, rows are taken as they are; else, they are those that the chain seals.
        dotted: With a glance, for one who draws all nodes: their dots are read.

    Returns:
        A context manager with state, accounts, ledger, artifacts and candidates.

    Raises:
        LedgerError: Where there is no campaign, or none that can be read.
    """
    folder = campaign_folder(task_folder)
    ledger = open_ledger(folder, settings, read_only=True)
    try:
        if glance and ledger.head().seq <= SHORT_LEDGER:
            ledger.snapshot()
        seen, rest = _glance(ledger, dotted) if glance else (ledger.snapshot(), None)
        state = State.from_rows(seen.rows, at_once=False, rest=rest)
        if not state.opened:
            raise Missing(f"no campaign has begun in {folder} yet; blastdoor run starts one")
        holder = held_by(folder / "lock") or ledger.held_by()
        artifacts = Artifacts(folder / "artifacts")
        yield Reading(
            state=state,
            accounts=Accounts.from_ledger(seen.rows),
            ledger=ledger,
            head=seen.head,
            artifacts=artifacts,
            folder=folder,
            named=task_folder,
            stored=StoredTask(artifacts.get(state.run.task).decode("utf-8", "replace")),
            holder=str(holder) if holder else None,
        )
    finally:
        ledger.close()


def _glance(ledger: Ledger, dotted: bool) -> tuple[Snapshot, Ledger | None]:
    """The rows that tell where a campaign stands, and where the others are; all of them where that is not known."""
    kinds = [*SHORT_KINDS, BOOKS[0], *(["dots"] if dotted else [])]
    seen = ledger.glance(kinds, lambda rows: State.rows_to_glance(rows, dotted=dotted) or {})
    return (seen, ledger) if State.rows_to_glance(seen.rows) is not None else (ledger.snapshot(), None)


def ask(
    task_folder: Path,
    kind: str,
    body: Mapping[str, object],
    settings: Settings | None = None,
    *,
    by: str = "",
    of: Head | None = None,
) -> int:
    """Put a request into the inbox; the process that works on the campaign takes it, or the next resume does. `by` says
    who asks, and `of` a record of the campaign that is meant: raises Replaced where another one is there.
    """
    body = {**body, "by": by} if by else body
    ledger = open_ledger(campaign_folder(task_folder), settings)
    try:
        return ledger.ask(kind, json.dumps(dict(body)), stamp(utc_now()), of)
    finally:
        ledger.close()
