"""The playbook of a campaign, and who evolves it."""

from dataclasses import replace
from pathlib import Path

from orchestrator.domain.model_use import ModelRole
from orchestrator.loop.evolving import Evolving
from orchestrator.loop.playbooks import Playbooks
from orchestrator.loop.shares import course_of, spent_by_role
from orchestrator.loop.workbench import Workbench
from orchestrator.playbook import Pages, PlaybookError, load_pages
from orchestrator.task import Task, TaskError, playbook_of


def task_pages(task: Task, folder: Path) -> Pages:
    """What agents of this task work with to begin with. Raises TaskError."""
    try:
        return load_pages(playbook_of(task, folder))
    except PlaybookError as error:
        raise TaskError(str(error)) from None


def with_playbooks(bench: Workbench, folder: Path) -> Workbench:
    """For a campaign that asks a model. Raises TaskError for pages that cannot be used."""
    own = "task" if playbook_of(bench.task, folder) else "default"
    pages = task_pages(bench.task, folder)
    return replace(bench, playbooks=Playbooks(bench.book, bench.artifacts, pages, own))


def make_evolving(bench: Workbench) -> Evolving | None:
    """None where nobody has that role, or no model is asked."""
    if bench.playbooks is None or bench.models is None or bench.task.roles.evolver is None:
        return None
    return Evolving(bench, bench.playbooks, bench.models, Funding(bench).of_the_evolver)


class Funding:
    """The allocator's word, asked again only when something happened since."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._asked_at = ""
        self._said = False

    def of_the_evolver(self) -> bool:
        state = self._bench.state
        if self._asked_at != state.campaign.last_at:
            self._asked_at = state.campaign.last_at
            course = course_of(state, self._bench.book.accounts, self._bench.task)
            self._said = course.next_role(spent_by_role(state)) is ModelRole.EVOLVER
        return self._said
