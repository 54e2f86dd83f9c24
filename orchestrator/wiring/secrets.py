"""Nothing that looks like a secret may reach a prompt or an agent's chamber: then the campaign does not begin."""

from collections.abc import Mapping

from orchestrator.change import Tree
from orchestrator.llm.secrets import Found, secrets_in, secrets_in_tree
from orchestrator.task import Task, TaskError
from orchestrator.text import printable


def refuse_secrets(task: Task, tree: Tree, playbook: Mapping[str, str] | None = None) -> None:
    """Raises TaskError, in one line that says where it is and of what kind, never what it is."""
    hide = "take it out, or add the file to hidden"
    found = [(f"workspace/{it.path}", it, hide) for it in secrets_in_tree(tree, task.policy())]
    texts = {"the statement": task.statement} | {f"playbook/{name}": text for name, text in (playbook or {}).items()}
    for name, text in texts.items():
        found += [(name, Found(name, line, kind), "take it out") for line, kind in secrets_in(text.encode(), name)]
    if not found:
        return
    place, first, advice = found[0]
    more = f" ({len(found) - 1} more like it)" if len(found) > 1 else ""
    raise TaskError(
        f"{printable(place)} line {first.line} looks like {first.kind}, and a model would be shown it; {advice}{more}"
    )
