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
    """For a campaign that asks a model. Raises TaskError for pages that can not be used."""
    own = "task" if playbook_of(bench.task, folder) else "default"
    pages = task_pages(bench.task, folder)
    return replace(bench, playbooks=Playbooks(bench.book, bench.artifacts, pages, own))


def make_evolving(bench: Workbench) -> Evolving | None:
    """None where nobody has that role, or no model is asked. It must be made after the run has begun."""
    if bench.playbooks is None or bench.models is None or bench.task.roles.evolver is None:
        return None

    def is_due() -> bool:
        course = course_of(bench.state, bench.book.accounts, bench.task)
        return course.next_role(spent_by_role(bench.state)) is ModelRole.EVOLVER

    return Evolving(bench, bench.playbooks, bench.models, is_due)
