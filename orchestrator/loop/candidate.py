"""From a proposal to the next tree: a change by its policy, a point of the parameters as a JSON file."""

import json

from orchestrator.change import File, Form, Policy, Reason, Refusal, Tree, apply_text
from orchestrator.domain.proposal import Proposal, Value


def next_tree(tree: Tree, proposal: Proposal, policy: Policy, parameters_file: str | None) -> Tree:
    """Raises Refusal for a change that the policy, or the tree, does not take."""
    if proposal.text is not None:
        return apply_text(tree, proposal.text, policy, Form.AUTO)
    if parameters_file is None:
        raise ValueError("a point was proposed, but the task has no [parameters]")
    policy.check(parameters_file)
    new = Tree({**tree, parameters_file: _with_point(tree, parameters_file, proposal.params or {})})
    if new == tree:
        raise Refusal(Reason.NO_EFFECT, parameters_file)
    return new


def _with_point(tree: Tree, path: str, point: dict[str, Value]) -> File:
    """The file's other keys stay; a file that is no JSON object is replaced."""
    old = tree.get(path)
    try:
        present = json.loads(old.data) if old else {}
    except ValueError:
        present = {}
    merged = {**present, **point} if isinstance(present, dict) else point
    text = json.dumps(merged, indent=2, sort_keys=True, allow_nan=False) + "\n"
    return File(text.encode(), old.executable if old else False)
