"""From a proposal to the next tree: a change by its policy, a point of the parameters as a JSON file.

And the trees of candidates, which are read again and again.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.change import File, Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.proposal import BROUGHT, Proposal, Value
from orchestrator.task import Float, Parameter, Parameters, active_part, in_order, is_there

_TREES_KEPT = 8


def next_tree(tree: Tree, proposal: Proposal, policy: Policy, parameters: Parameters | None) -> Tree:
    """Raises Refusal for a change that the policy, or the tree, does not take."""
    if proposal.text is not None:
        return apply_text(tree, proposal.text, policy, exact=proposal.operator == BROUGHT)
    if parameters is None:
        raise ValueError("a point was proposed, but the task has no [parameters]")
    policy.check(parameters.file)
    old = tree.get(parameters.file)
    present = {**_object_of(old), **(proposal.params or {})}
    new = Tree({**tree, parameters.file: _written(old, present, parameters.space)})
    if new == tree:
        raise Refusal(Reason.NO_EFFECT, parameters.file)
    policy.check_regions(parameters.file, old, new[parameters.file])
    return new


def point_in(tree: Tree, path: str, space: Mapping[str, Parameter]) -> dict[str, Value]:
    """The parameters that a candidate's own file holds; what is no value of the space, or not there, is left out."""
    return active_part(space, object_in(tree, path))


def known_as(tree: Tree, parameters: Parameters | None) -> str | None:
    """The digest of the same tree with its point as we write it: another writing of a point is no other point. None
    where it is written so already, or holds none.
    """
    file = tree.get(parameters.file) if parameters else None
    present = _object_of(file)
    if parameters is None or file is None or not present:
        return None
    point = active_part(parameters.space, present)
    reals = {name: float(value) for name, value in point.items() if isinstance(parameters.space[name], Float)}
    ours = _written(file, {**present, **point, **reals}, parameters.space)
    return None if ours == file else Tree({**tree, parameters.file: ours}).digest


def _written(old: File | None, new: dict[str, Any], space: Mapping[str, Parameter]) -> File:
    """The file's other keys stay, but not those of parameters that are not there now; what is no object is replaced."""
    for name in in_order(space):
        if not is_there(space[name], new):
            new.pop(name, None)
    text = json.dumps(new, indent=2, sort_keys=True, allow_nan=False) + "\n"
    return File(text.encode(), old.executable if old else False)


def object_in(tree: Tree, path: str) -> dict[str, Any]:
    """The JSON object in a file, which a candidate may have written: one that could not be written back is none."""
    return _object_of(tree.get(path))


def _object_of(file: File | None) -> dict[str, Any]:
    try:
        present = json.loads(file.data) if file else {}
        json.dumps(present, allow_nan=False)
    except (ValueError, RecursionError):
        return {}
    return present if isinstance(present, dict) else {}


class Trees:
    """Candidates by their commits; those that were asked for last are kept. Safe to use from several threads."""

    def __init__(self, read: Callable[[str], Tree]) -> None:
        self._read = read
        self._kept: OrderedDict[str, Tree] = OrderedDict()
        self._guard = threading.Lock()

    def kept(self, commit: str) -> Tree | None:
        """At once."""
        with self._guard:
            if commit in self._kept:
                self._kept.move_to_end(commit)
            return self._kept.get(commit)

    def read(self, commit: str) -> Tree:
        """For a thread: one that is not kept is read from the disk."""
        if (kept := self.kept(commit)) is not None:
            return kept
        tree = self._read(commit)
        self.keep(commit, tree)
        return tree

    def keep(self, commit: str, tree: Tree) -> None:
        """What was written just now need not be read."""
        with self._guard:
            self._kept[commit] = tree
            while len(self._kept) > _TREES_KEPT:
                self._kept.popitem(last=False)
