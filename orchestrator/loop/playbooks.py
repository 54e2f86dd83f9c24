"""The versions of the playbook in a campaign: which one an attempt gets, and what a person may do with them."""

from collections.abc import Callable
from functools import cached_property, lru_cache

from orchestrator.domain import events as e
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts
from orchestrator.loop.book import Book
from orchestrator.playbook import Pages, PlaybookError, carried, corrected, pages_of, pinned, raw_of
from orchestrator.playbook.contest import open_contest
from orchestrator.proposers import Playbook

_KEPT = 8
_OF_THE_TASK = ("default", "task")


class Playbooks:
    """There is a present version from the first moment on that anybody asks for one. `own` are the pages that the task
    has now, over those that ship; `by` says whether any are its own.
    """

    def __init__(self, book: Book, artifacts: Artifacts, own: Pages, by: str) -> None:
        self._book = book
        self._artifacts = artifacts
        self._own = own
        self._by = by

    @property
    def state(self) -> State:
        return self._book.state

    @property
    def present(self) -> int:
        number = self.state.campaign.playbook
        if number is None:
            raise PlaybookError("this campaign has no playbook; its proposer asks no model")
        return number

    def pages(self, version: int) -> Pages:
        return self._read(self.state.playbooks[version].files)

    @cached_property
    def _read(self) -> Callable[[str], Pages]:
        return lru_cache(maxsize=_KEPT)(lambda digest: pages_of(self._artifacts.get_files(digest)))

    def give(self, name: str) -> Playbook:
        """What an attempt of the search works with: on record before anybody is asked, and the same after a resume."""
        node = self.state.nodes[name]
        version, challenger = self.present, None
        contest = open_contest(self.state)
        if contest is not None:
            dealt = contest.version_of(name, self.state)
            drawn = contest.next_version(self.state.run.seed) if dealt is None else None
            version = dealt or drawn or version
            challenger = contest.challenger.number if drawn else None
        if challenger is not None or node.playbook != version:
            self._book.record(e.PlaybookGiven(node=name, version=version, challenger=challenger))
        return Playbook(version, self.pages(version))

    def begun(self, *, new_run: bool) -> list[e.Event]:
        """What is recorded when a session begins: nothing where the task's pages are as they were.

        The version is exactly what the task has, so that the next session can tell; corrections follow as another.
        """
        events: list[e.Event] = []
        challenger = self.state.campaign.challenger if self.state.opened else None
        if new_run and challenger is not None:
            why = "a new run began before it was shown to be better"
            events.append(e.PlaybookDiscarded(version=challenger, why=why))
        pages, by, before = self._own, self._by, self._last_of_the_task()
        what = "the task's own pages" if by == "task" else "what ships with the program"
        if before is None:
            return [*events, self._changed(pages, None, by, what)]
        if pages == self.pages(before):
            return events
        changed = self._changed(pages, self.present, by, f"{what} changed")
        events.append(changed)
        with_corrections = carried(pages, self.pages(self.present), self.pages(before))
        if with_corrections != pages:
            why = f"version {changed.version}, with the corrections of version {self.present}"
            more = self._changed(with_corrections, changed.version, "person", why)
            events.append(more.model_copy(update={"version": changed.version + 1}))
        return events

    def use(self, version: int) -> tuple[str, list[e.Event]]:
        """A person's choice. Corrections stay: an older version without one of them becomes a new one that has it."""
        if version not in self.state.playbooks:
            return f"refused: there is no version {version} of the playbook", []
        if version == self.present:
            return f"refused: version {version} is the present one", []
        own, pages = self.pages(version), pinned(self.pages(version), self.pages(self.present))
        if pages == own:
            used = e.PlaybookUsed(version=version, by="person", why="chosen by a person")
            return f"version {version} is used from now on", [used]
        why = f"version {version}, with the corrections of version {self.present}"
        changed = self._changed(pages, version, "person", why)
        return f"version {changed.version} is used from now on: {why}", [changed]

    def correct(self, text: str, *, drop: bool) -> tuple[str, list[e.Event]]:
        try:
            pages = corrected(self.pages(self.present), text, drop=drop)
        except PlaybookError as error:
            return f"refused: {error}", []
        changed = self._changed(pages, self.present, "person", f"{'dropped' if drop else 'corrected'}: {text}"[:500])
        return f"version {changed.version} is used from now on", [changed]

    def challenge(self, pages: Pages, why: str, *, level: float, pairs: int) -> e.PlaybookChanged:
        """A version that is tried beside the present one."""
        changed = self._changed(pages, self.present, "evolver", why)
        return changed.model_copy(update={"used": False, "level": level, "pairs": pairs})

    def _changed(self, pages: Pages, parent: int | None, by: str, why: str) -> e.PlaybookChanged:
        number = max(self.state.playbooks, default=0) + 1
        files = self._artifacts.put_files(raw_of(pages))
        fields = {"version": number, "files": files, "parent": parent, "by": by, "why": why}
        return e.PlaybookChanged.model_validate(fields)

    def _last_of_the_task(self) -> int | None:
        found = [it.number for it in self.state.playbooks.values() if it.by in _OF_THE_TASK]
        return max(found, default=None)
