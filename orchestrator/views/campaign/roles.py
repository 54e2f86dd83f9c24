"""Who asked which model, what that cost, and how the dollars are shared from here on; and what the verifier found."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from orchestrator.budget import Accounts
from orchestrator.budget.allocation import Course
from orchestrator.domain.model_use import Tokens
from orchestrator.domain.records import Asked, Draft, Node
from orchestrator.domain.state import State
from orchestrator.loop.shares import course_of
from orchestrator.task import Task
from orchestrator.text import short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.markdown import code, table

_STYLES = {"flag": "yellow", "hold": "bold yellow", "released": "cyan", "unreviewed": "bright_black"}
_WORDS = {"flag": "flagged", "hold": "held", "released": "released by a person", "unreviewed": "unreviewed"}


def roles_lines(state: State, accounts: Accounts, task: Task) -> Text:
    """For the status; empty where no model was asked."""
    lines = [_asked_line(state)] if state.campaign.asked_models else []
    course = _course(state, accounts, task)
    if course and lines:
        lines.append(f"from now on {_shares(course)}: {course.why}")
    return Text("\n".join(lines))


def _asked_line(state: State) -> str:
    told = [
        f"{role} {short(model, 80)} {figures.dollars(it.spent.microdollars)} in {figures.plural(it.calls, 'call')}"
        for (role, model), it in _by_role_and_model(state)
    ]
    return ", ".join(told)


def roles_section(state: State, accounts: Accounts, task: Task, nodes: Sequence[Node]) -> list[str]:
    if not state.campaign.asked_models:
        return ["No model was asked."]
    rows = [
        [role, code(model), f"{it.calls:,}", *_tokens(it), figures.dollars(it.spent.microdollars)]
        for (role, model), it in _by_role_and_model(state)
    ]
    titles = ["role", "model", "calls", *(name.replace("_", " ") for name in Tokens.model_fields), "dollars"]
    lines = table(titles, rows)
    if course := _course(state, accounts, task):
        lines += ["", f"Shares from here on: {_shares(course)}; {course.why}."]
    if findings := findings_of(nodes):
        told = ", ".join(f"{count:,} {finding}" for finding, count in findings.items())
        flagged = ", ".join(node.id for node in nodes if node.finding in ("flag", "hold"))
        lines += ["", f"The verifier's findings, which never score: {told}." + (f" See {flagged}." if flagged else "")]
    return lines


def _tokens(asked: Asked) -> list[str]:
    return [f"{getattr(asked.tokens, name):,}" for name in Tokens.model_fields]


def findings_of(nodes: Sequence[Node]) -> dict[str, int]:
    return dict(sorted(Counter(node.finding for node in nodes if node.finding).items()))


def roles_record(state: State, accounts: Accounts, task: Task, nodes: Sequence[Node]) -> dict[str, Any]:
    course = _course(state, accounts, task)
    return {
        "models": [
            {"role": role, "model": model, **asked.model_dump(mode="json")}
            for (role, model), asked in _by_role_and_model(state)
        ],
        "shares": dict(course.shares) if course else None,
        "why": course.why if course else None,
        "findings": findings_of(nodes),
    }


def finding_mark(node: Node) -> Text:
    """For a line of the tree; what passed needs no word, and what is held is seen from the node's own look."""
    if node.finding not in ("flag", "released"):
        return Text()
    return Text(f" {_WORDS[node.finding]}", _STYLES[node.finding])


def finding_facts(drafts: Sequence[Draft]) -> dict[str, str]:
    """For `show`: what the verifier said of each draft."""
    return {
        f"draft {draft.number}": f"{draft.finding}{f': {short(draft.reasons, 600)}' if draft.reasons else ''}"
        for draft in drafts
        if draft.finding
    }


def _course(state: State, accounts: Accounts, task: Task) -> Course | None:
    shared = task.roles.evolver or task.roles.verifier
    return course_of(state, accounts, task) if shared else None


def _shares(course: Course) -> str:
    return ", ".join(f"{role} {share:.0%}" for role, share in course.shares.items() if share)


def _by_role_and_model(state: State) -> list[tuple[tuple[str, str], Asked]]:
    found = []
    for key, asked in sorted(state.campaign.asked_models.items()):
        role, _, model = key.partition(" ")
        found.append(((role, model), asked))
    return found
