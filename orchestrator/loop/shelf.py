"""What trials left, within a budget of bytes: the outputs of the oldest discarded attempts are let go first, after
those of selections that minimising only tried.

The ledger says so before a byte is removed, and a resume finishes what a killed session began. What the champion, any
kept node, the baseline or an attempt under way left is never let go. Bytes that two trials left alike are stored once,
and stay while one of them needs them; outputs that are the same as a whole count once.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain

import structlog
from pydantic import BaseModel

from orchestrator.domain import events as e
from orchestrator.domain.lines import AnyNode, AnyTrial, DraftLine, Line, NodeLine, TrialLine
from orchestrator.domain.records import Draft, Injection, Node, Phase, PlaybookVersion, Role, Run, Trial
from orchestrator.ledger import Artifacts, LedgerError
from orchestrator.loop.book import Book
from orchestrator.offload import offload_disk

_log = structlog.get_logger()
_ROOM = 0.9  # down to so much of the cap, so that not every trial has something removed
# Of outputs, for judges that come next: so many trials, and so many bytes of them.
_AT_HAND, AT_HAND_BYTES = 64, 16 << 20
SLACK_S = 1.0  # a file's time may be older than the moment at which it was written


class Shelf:
    """One session's. `cap` is in bytes; None keeps everything."""

    def __init__(self, book: Book, artifacts: Artifacts, cap: int | None) -> None:
        self._book = book
        self._artifacts = artifacts
        self.cap = cap
        self.kept_bytes = 0
        self._sizes: dict[str, int] = {}  # of lists of files
        self._users: dict[str, set[str]] = {}  # the trials that left such a list
        # Nodes with something to let go, in the order in which they ended; first what minimising only tried on its way.
        self._minimised: dict[str, None] = {}
        self._discarded: dict[str, None] = {}
        self._storing: dict[object, float] = {}
        self._at_hand: dict[str, tuple[int, Mapping[str, bytes]]] = {}  # by trial, the latest last; with their size
        self._left: set[str] = set()  # let go, and not removed yet
        self._work: asyncio.Task[set[str]] | None = None
        self._said_over = False
        self._stuck = False  # nothing more can be let go before another attempt ends

    async def open(self) -> None:
        """Count what is there, and remove what a killed session let go of and did not get to."""
        state = self._book.state
        trials = list(state.trial_lines())
        unsaid = await offload_disk(self._unsaid_sizes, trials)
        for trial in trials:
            self._add(trial, unsaid)
        ended = sorted((node for node in state.node_lines() if _has_spares(node)), key=lambda node: node.ended_place)
        self._minimised = dict.fromkeys(node.id for node in ended if node.role is Role.MINIMISED)
        self._discarded = dict.fromkeys(node.id for node in ended if node.role is not Role.MINIMISED)
        gone = {name for trial in trials if trial.let_go for name in _lists(trial)}
        self._left = await offload_disk(self._artifacts.those_there, gone)
        await self.close()
        self._book.listeners.append(self._on_event)

    def keep_all(self) -> None:
        """For a campaign that nobody keeps."""
        self.cap = None

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Around what is stored until an event names it: nothing that may be part of it is removed meanwhile."""
        token = object()
        self._storing[token] = time.time()
        try:
            yield
        finally:
            del self._storing[token]

    def hand_on(self, trial: str, outputs: Mapping[str, bytes], size: int) -> None:
        """What was stored just now need not be read for the judge that comes next."""
        self._at_hand[trial] = size, outputs
        while len(self._at_hand) > _AT_HAND or sum(size for size, _ in self._at_hand.values()) > AT_HAND_BYTES:
            del self._at_hand[next(iter(self._at_hand))]

    async def take(self, trial: Trial) -> Mapping[str, bytes]:
        """What its judge is given. At hand it is for the first who asks; a resume, or another judging, reads it."""
        _, at_hand = self._at_hand.pop(trial.id, (0, None))
        if at_hand is None and trial.outputs:
            return await offload_disk(self._artifacts.get_files, trial.outputs)
        return at_hand or {}

    def turn(self) -> None:
        """Look once."""
        if self._work is not None:
            if not self._work.done():
                return
            self._left, self._work = self._work.result(), None
        if self.cap is None or self.kept_bytes <= self.cap or self._stuck:
            return
        if trials := self.oldest(self.cap):
            self._let_go(trials)
            return
        self._stuck = True
        if not self._said_over:
            self._said_over = True
            self._book.record(e.ArtifactsOverBudget(kept=self.kept_bytes, cap=self.cap))

    async def close(self) -> None:
        """When nothing is under way any more."""
        if self._work is not None:
            self._left, self._work = await self._work, None
        if self._left:
            self._left = await self._remove(self._left, math.inf)

    def oldest(self, cap: int) -> list[Trial]:
        """As many as have to go, of the attempts that ended first. Bytes are free when the last that has them goes."""
        found, freed = [], 0
        users: dict[str, int] = {}  # left; none of a list that has to stay
        for node in chain(self._minimised, self._discarded):
            if self.kept_bytes - freed <= _ROOM * cap:
                break
            for trial in self._spares(node):  # none where a person had it queued again
                lists = _lists(trial) if not trial.let_go else {}
                for name in lists.keys() - users.keys():
                    users[name] = len(self._users[name]) if self._may_go(name) else 0
                going = [name for name in lists if users[name]]
                for name in going:
                    users[name] -= 1
                    freed += 0 if users[name] else self._sizes[name]
                found += [trial] if going else []
        return found

    def _may_go(self, name: str) -> bool:
        state = self._book.state
        if any(name in _pooled(run) for run in state.runs.values()):
            return False
        return all(_is_spare(state.nodes[state.trials[it].node], it) for it in self._users[name])

    def _spares(self, name: str) -> list[Trial]:
        """Those of a node that nobody needs."""
        node = self._book.state.nodes[name]
        return [trial for trial in self._book.state.trials_of(name) if _is_spare(node, trial.id)]

    def _let_go(self, trials: list[Trial]) -> None:
        before = self.kept_bytes
        names = {name for trial in trials for name in _lists(trial)}
        for trial in trials:
            self._drop(trial)
        self._book.record(e.OutputsLetGo(trials=tuple(it.id for it in trials), bytes=before - self.kept_bytes))
        for node in {trial.node for trial in trials}:
            # One of its trials may have left what another node needs now, and not for ever.
            if all(it.let_go or not _lists(it) for it in self._spares(node)):
                self._minimised.pop(node, None)
                self._discarded.pop(node, None)
        until = min([*self._storing.values(), time.time()]) - SLACK_S
        self._work = asyncio.create_task(self._remove(names | self._left, until))

    async def _remove(self, names: set[str], until: float) -> set[str]:
        """Those that could not be removed yet. They may be too much for the disk; they are nobody's attempt."""
        await self._book.durable()  # a byte is removed only after the ledger has said so
        try:
            return await offload_disk(_removed, self._artifacts, names, self._book.state.lines_of_now(), until)
        except LedgerError as error:
            _log.warning("outputs that were let go could not be removed", error=str(error))
            return names

    def _on_event(self, event: e.Event, at: str) -> None:
        del at
        match event:
            case e.TrialEnded() | e.JudgingEnded():
                self._add(self._book.state.trials[event.trial])
            case e.AttemptEnded(node=node):
                self._stuck = False
                ended = self._book.state.nodes[node]
                if _has_spares(ended):
                    (self._minimised if ended.role is Role.MINIMISED else self._discarded)[node] = None

    def _add(self, trial: AnyTrial, unsaid: Mapping[str, int] | None = None) -> None:
        """Again for each of its events: a trial has its outputs first and its traces later."""
        for name, said in _lists(trial).items() if not trial.let_go else ():
            users = self._users.setdefault(name, set())
            if not users:
                size = said or (unsaid or {}).get(name, 0)
                self._sizes[name] = size
                self.kept_bytes += size
            users.add(trial.id)

    def _drop(self, trial: Trial) -> None:
        for name in _lists(trial):
            self._users[name].discard(trial.id)
            if not self._users[name]:
                self.kept_bytes -= self._sizes.pop(name)
                del self._users[name]

    def _unsaid_sizes(self, trials: Iterable[AnyTrial]) -> dict[str, int]:
        """In a thread. Ledgers of earlier versions do not say how large outputs are."""
        kept = (_lists(trial) for trial in trials if not trial.let_go)
        return {name: self._artifacts.size_of(name) for lists in kept for name, said in lists.items() if not said}


def _has_spares(node: AnyNode) -> bool:
    """One that was discarded, or minimised: of that, the selections that were tried on the way. What ended free may be
    run again from where it was, and then its outputs are judged and guarded.
    """
    if node.phase is not Phase.ENDED or node.ending is None or not node.ending.charged:
        return False
    return node.role is Role.MINIMISED or (not node.kept and node.role is not Role.BASELINE)


def _is_spare(node: Node, trial: str) -> bool:
    return _has_spares(node) and not (node.kept and trial == node.submitted)


def _pooled(run: Run) -> set[str]:
    """What its combinations are made of, and what members left that are not frozen yet."""
    left = {it.outputs for it in run.member_outputs.values() if it.outputs}
    return left | {digest for member in run.pool for digest in member.outputs.values()}


def _lists(trial: AnyTrial) -> dict[str, int]:
    """The lists of files that it left, with their bytes. Where a candidate leaves what its judge traces, it is one."""
    both = ((trial.outputs, trial.outputs_bytes), (trial.traces, trial.traces_bytes))
    return {name: size for name, size in both if name}


def _removed(artifacts: Artifacts, names: set[str], records: Iterable[BaseModel | Line], until: float) -> set[str]:
    """In a thread: remove these lists and their files, but nothing that a record still names."""
    lists: set[str] = set()
    files: set[str] = set()
    for record in records:
        match record:
            case Trial() | TrialLine():
                files |= {record.log} if record.log else set()
                lists |= set(_lists(record)) if not record.let_go else set()
            case Node() | NodeLine():
                files |= {it for it in (record.diff, record.agent_log) if it}
            case Draft() | DraftLine() | Injection():
                files |= {record.change} if record.change else set()
            case Run():
                files.add(record.task)
                lists |= _pooled(record)
            case PlaybookVersion():
                lists.add(record.files)
    return artifacts.let_go(names - lists, lists, files, until)
