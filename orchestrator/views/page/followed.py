"""A campaign that somebody looks at: read once, then followed record by record."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestrator.budget import BOOKS, Accounts
from orchestrator.domain import events as e
from orchestrator.domain.lines import Line
from orchestrator.domain.node import parse_node
from orchestrator.domain.records import Node, Run
from orchestrator.git import GitError
from orchestrator.ledger import START, Artifacts, Corrupt, Head, Ledger, LedgerError, Missing, Record, check
from orchestrator.settings import Settings
from orchestrator.task import StoredTask, TaskError
from orchestrator.text import short
from orchestrator.views.campaign.happenings import LONGEST, line_of, node_of
from orchestrator.views.campaign.opening import ranking_of
from orchestrator.views.live.pulses import Pulses
from orchestrator.views.page.board import Board
from orchestrator.views.page.columns import compressed, packed
from orchestrator.views.page.finding import Found
from orchestrator.views.page.kept_board import keep_board, kept_board
from orchestrator.views.page.live_logs import live_logs
from orchestrator.views.page.row_state import RowState
from orchestrator.views.page.sparing import Sparing
from orchestrator.views.page.summary import LONGEST_ARTIFACT, Standing, holder_of, last_ending, summary_of
from orchestrator.wiring.ledgers import Identity, identity_of, open_ledger
from orchestrator.wiring.reading import SHORT_LEDGER, Reading

T = TypeVar("T")
L = TypeVar("L", bound=Line)

# Lines of what happened last, for those that come later.
SAID = 100
# As many updates are kept for a browser that was away for a moment; one that was away for longer starts again.
KEPT = 256
_WALKED = 5000
_LONGEST_SEQ = 18
# So much of what a node tried, or why it came to nothing, stands in a table.
WORDS = 200
_RUN_STARTED, _ENDED = (kind.model_fields["kind"].default for kind in (e.RunStarted, e.AttemptEnded))
_STAIR = {kind.model_fields["kind"].default for kind in (e.ChampionChanged, e.CohortOpened)}

# What a ledger, or what it names, can fail with.
UNREADABLE = (LedgerError, TaskError, GitError, OSError, ValueError, RecursionError)

# When, what, and about which node.
Said = tuple[str, str, str]


class NotThere(LookupError):
    """What was asked for is not in this campaign; the message is for a person."""


class Followed:
    """`run` is for what must not be changed meanwhile: the board, and where the reading stands."""

    def __init__(self, found: Found, settings: Settings | None) -> None:
        self.found = found
        self.settings = settings
        self._turn = threading.Lock()
        self.is_over = False
        self._ledger, self._identity = self._opened()
        self.updates: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self.said: deque[Said] = deque(maxlen=SAID)
        self.views = Sparing()
        self._packed: tuple[int, int, bytes] | None = None
        self._verified, self._epoch, self._broken = START, 0, ""
        self._kept_up_to: Head | None = None
        try:
            self.read()
            self.poll()  # a board that was kept is brought up to date
        except BaseException:
            self._ledger.close()
            raise

    def _opened(self) -> tuple[Ledger, Identity]:
        identity = identity_of(self.found.folder)  # before: one that is replaced meanwhile is noticed by the next look
        return self._look(), identity

    def _look(self) -> Ledger:
        """One that does not wait for its database: one who asks would wait with it, and all others behind them."""
        return open_ledger(self.found.folder, self.settings, read_only=True, waits_to_read=False)

    def _open_again(self) -> None:
        """Another campaign is where this one was: nothing that is known of the old one may stay."""
        self._identity = Identity()  # until it is read: one that has not begun yet is opened again by the next look
        self._ledger.close()
        self._ledger, identity = self._opened()
        self.views = Sparing()
        self._verified, self._epoch, self._broken = START, 0, ""
        self.read()
        self._identity = identity

    def _is_replaced(self) -> bool:
        """By another file, or by other bytes in the same one, which only a fresh look at it sees."""
        identity = identity_of(self.found.folder)
        if identity.place != self._identity.place:
            return True
        if identity != self._identity:
            with self._look() as fresh:
                if not fresh.has(self.reading.head):
                    return True
            self._identity = identity
        return False

    def read(self) -> None:
        """From the beginning: what is appended meanwhile is told by the next update."""
        self._packed = None  # another campaign may have come as far
        self._kept_up_to = None  # until there is a board of this one
        head = self._ledger.head()
        self._state = RowState(self._ledger)
        if not self._state.opened or not self._state.runs:
            raise Missing(f"no campaign has begun in {self.found.folder} yet; blastdoor run starts one")
        artifacts = Artifacts(self.found.folder / "artifacts", longest=LONGEST_ARTIFACT)
        self.reading = Reading(
            state=self._state,
            accounts=self._accounts(),
            ledger=self._ledger,
            head=head,
            artifacts=artifacts,
            folder=self.found.folder,
            named=self.found.named,
            stored=StoredTask(artifacts.get(self._state.run.task).decode("utf-8", "replace")),
            holder=holder_of(self.found, self._ledger),
        )
        self.board = self._kept_board() or self._board_of(self._state.run)
        if self._kept_up_to is None:
            self._keep_board()
        head = self.reading.head
        self.last = last_ending(self._ledger, head.seq)
        self.updates.clear()
        self.said.clear()
        records = self._ledger.read(after=max(0, head.seq - SAID), limit=SAID)
        self.said.extend(_said(record, _event(record)) for record in records)

    def _kept_board(self) -> Board | None:
        """One that an earlier server left, and the reading as far as it goes."""
        board = Board(self._state, ranking_of(self.reading).metrics, self._state.run)
        self._kept_up_to = kept_board(self.found.id, board, self._ledger)
        if self._kept_up_to is None:
            return None
        self.reading = replace(self.reading, head=self._kept_up_to)
        return board

    def _keep_board(self) -> None:
        keep_board(self.found.id, self.board, self.reading.head)
        self._kept_up_to = self.reading.head

    @property
    def seq(self) -> int:
        return self.reading.head.seq

    @property
    def mark(self) -> str:
        """The last record that was read, for a browser to show again: another campaign has none like it."""
        return f"{self.reading.head.seq}-{self.reading.head.hash}"

    def has(self, mark: str) -> bool:
        """Whether a mark is of this campaign, however old it is."""
        seq, _, digest = mark.partition("-")
        is_number = seq.isascii() and seq.isdecimal() and len(seq) <= _LONGEST_SEQ
        return is_number and self.reading.ledger.has(Head(int(seq), digest))

    def run(self, work: Callable[["Followed"], T]) -> T:
        with self._turn:
            if self.is_over:
                raise LedgerError("the server ends")
            return work(self)

    def close(self) -> None:
        self.is_over = True  # those who wait for their turn do not take it
        self._state.close()  # what takes long ends here, wherever it is
        with self._turn:
            if self._kept_up_to not in (None, self.reading.head):
                self._keep_board()
            self._ledger.close()

    def poll(self) -> dict[str, Any] | None:
        """What came since, as a browser takes it in; None where nothing did. Raises LedgerErrors."""
        # The last one that was read comes first: where it is another one, so is the campaign.
        found = [] if self._is_replaced() else list(self._ledger.read(after=self.seq - 1))
        if not found or found[0].hash != self.reading.head.hash:
            self._open_again()
            return self.start_again()
        records = found[1:]
        holder = holder_of(self.found, self._ledger)
        if not records and holder == self.reading.holder:
            return None
        if any(record.kind == _RUN_STARTED for record in records):
            # Its task may be another one, with other metrics.
            self.read()
            return self.start_again()
        events = [_event(record) for record in records]
        began, names = self.mark, self._forget(records, events)
        self._state.refresh()
        nodes = self._state.read_nodes(names)  # while it may fail: what was read counts as read from here on
        head = Head(records[-1].seq, records[-1].hash) if records else self.reading.head
        self.reading = replace(self.reading, accounts=self._accounts(), head=head, holder=holder)
        ended = [number for number, record in enumerate(records) if record.kind == _ENDED]
        self.last = _said(records[ended[-1]], events[ended[-1]])[1] if ended else self.last
        said = [_said(record, event) for record, event in zip(records[-SAID:], events[-SAID:], strict=True)]
        return self._update(began, said, nodes, records)

    def start_again(self) -> dict[str, Any]:
        """For a viewer whose board cannot be brought up to date."""
        return {"seq": self.seq, "mark": self.mark, "again": True}

    def _forget(self, records: Sequence[Record], events: Sequence[e.Event | None]) -> list[str]:
        """The nodes that these are about, in their order. What was kept of them, and of all that they name, goes."""
        nodes: dict[str, None] = {}
        drafts: list[str] = []
        trials: list[str] = []
        for record, event in zip(records, events, strict=True):
            body = vars(event) if event else json.loads(record.body)
            trial, node = str(body.get("trial", "")), str(body.get("node") or "")
            nodes |= dict.fromkeys(filter(None, (node or trial.rpartition("-")[0], body.get("subject"))))
            trials.append(trial)
            drafts.append(f"{node}#{body.get('draft', 0)}")
        self._state.forget("trial", trials)
        self._state.forget("draft", drafts)
        # One that was measured beside another has a trial of the other's.
        nodes |= {str(subject): None for trial in trials if trial and (subject := self._subject(trial))}
        return list(nodes)

    def _subject(self, trial: str) -> str:
        return self._state.trials[trial].subject if self._state.run.noisy and trial in self._state.trials else ""

    def _update(
        self, began: str, said: Sequence[Said], nodes: Sequence[Node], records: Sequence[Record]
    ) -> dict[str, Any]:
        self.said.extend(said)
        for node in nodes:
            self._state.index(node)
        before = {name: len(known) for name, known in self.board.lists().items()}
        rows = self.board.update(nodes)
        fresh = {name: known[before[name] :] for name, known in self.board.lists().items() if known[before[name] :]}
        own = [(self.board.place_of(node.id), node) for node in nodes]
        words = [[place, short(node.description or node.why, WORDS)] for place, node in own if place >= 0]
        made = {
            "after": began,
            "seq": self.seq,
            "mark": self.mark,
            "rows": rows,
            "words": words,
            "summary": self.summary(),
            "said": said,
            "names": fresh,
        }
        if any(record.kind in _STAIR for record in records):
            made |= {"steps": self.board.steps(), "champion": self.board.champion()}
        self.updates.append(made)
        return made

    def _accounts(self) -> Accounts:
        books = self._state.books
        return Accounts.from_ledger({BOOKS: books} if books else {})

    def summary(self) -> dict[str, Any]:
        it = self.reading
        return summary_of(Standing(self.found, it.state, it.accounts, ranking_of(it), self.seq, it.holder, self.last))

    def since(self, mark: str) -> list[dict[str, Any]] | None:
        """The updates after a record; None where they are no longer kept, or it is of another campaign."""
        if mark == self.mark:
            return []
        updates = list(self.updates)
        began = next((at for at, it in enumerate(updates) if it["after"] == mark), None)
        return None if began is None else updates[began:]

    def board_of(self, run: Run) -> Board:
        """That of the present run is kept up to date; another one is made."""
        return self.board if run.number == self.board.run else self._board_of(run)

    def packed_board(self, run: Run) -> bytes:
        """Compressed, and kept until something happens: several viewers are told the same."""
        if self._packed is None or self._packed[:2] != (run.number, self.seq):
            board = self.board_of(run)
            head = {**board.head(), "seq": self.seq, "mark": self.mark, "present": run.number == self.board.run}
            self._packed = run.number, self.seq, compressed(packed(head, board.columns()))
        return self._packed[2]

    def _board_of(self, run: Run) -> Board:
        """A look at every node, which also finds those that are not over."""
        board = Board(self._state, ranking_of(self.reading, run).metrics, run)
        board.fill(self._state.each_line())
        return board

    def lines(self, kind: str, line: type[L]) -> Iterator[L]:
        return self._state.lines(kind, line)

    def run_numbered(self, number: int | None) -> Run:
        runs = self.reading.state.runs
        if number is None:
            return self.reading.state.run
        if str(number) not in runs:
            raise NotThere(f"there is no run {number}; runs are {', '.join(runs)}")
        return runs[str(number)]

    def node(self, text: str) -> Node:
        try:
            name = parse_node(text)
        except ValueError:
            raise NotThere("that is not a node; nodes are written like 1.3.2") from None
        if name not in self.reading.state.nodes:
            raise NotThere(f"there is no node {name[:200]} in this campaign")
        return self.reading.state.nodes[name]

    def live(self) -> dict[str, Any]:
        """Of chambers and models at work: how long each log is by now, and the tokens a second of each attempt."""
        folder: Path = self.reading.folder / "live"
        logs = live_logs(folder)
        pulses = Pulses(folder).read(self.reading.state.unfinished, time.time())
        return {"logs": logs, "pulses": {node: pulse.model_dump() for node, pulse in pulses.items()}}

    def walk(self) -> dict[str, Any]:
        """Go on with proving the chain, some thousand records at a time. At its end, the rows of a short ledger are
        compared with what the last record seals.
        """
        head, rows = max(self.seq, self._verified.seq), False
        if not self._broken:
            try:
                for record in self.reading.ledger.read(after=self._verified.seq, limit=_WALKED):
                    check(record, self._verified, self._epoch)
                    self._verified, self._epoch = Head(record.seq, record.hash), record.epoch
                head = max(self.seq, self._verified.seq)
                if self._verified.seq == head <= SHORT_LEDGER:
                    self.reading.ledger.snapshot()
                    rows = True
            except Corrupt as error:
                self._broken = str(error)
        return {"verified": self._verified.seq, "head": head, "rows": rows, "broken": self._broken}


def _event(record: Record) -> e.Event | None:
    """None for one that a later version wrote."""
    try:
        return e.read_event(record.body)
    except ValidationError:
        return None


def _said(record: Record, event: e.Event | None) -> Said:
    """An event that this version does not know is told by its kind."""
    if event is None:
        return record.at, short(f"{record.kind} (not known to this version)", LONGEST), ""
    return record.at, line_of(event), node_of(event) or ""
