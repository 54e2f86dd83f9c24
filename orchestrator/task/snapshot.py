"""What a run is bound to: every file of the task, read once, and a digest of each part."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.domain.verdict import Mode
from orchestrator.task.crosschecks import check_names, check_places, check_regions, gold_of, judged_otherwise
from orchestrator.task.errors import FILE, Key, TaskError, Wrong, dotted
from orchestrator.task.files import FILES, input_digest, plain_names, read_tree
from orchestrator.task.model import Task
from orchestrator.task.sections import Repository


@dataclass(frozen=True)
class Snapshot:
    """Names in `judge` and `gold` are relative to the judge's folder: both together are that folder.

    Inputs are too large to hold: they stay where they are, and their digest tells whether they are still the same.
    `tune_inputs` are all that a tune trial sees, `heldout_inputs` all that one on held-out data does. `digests` has
    one SHA-256 for each of task, workspace, judge, gold, inputs and tune_inputs, and heldout_inputs where the task has
    [heldout]. `commit` is that of a workspace that is a repository.
    """

    tree: Tree
    judge: Tree
    gold: Tree
    inputs: Mapping[str, Path]
    tune_inputs: Mapping[str, Path]
    digests: Mapping[str, str]
    commit: str | None = None
    heldout_inputs: Mapping[str, Path] = field(default_factory=dict)


def snapshot(task: Task, folder: Path) -> Snapshot:
    """Read all that the task names. Raises TaskError."""
    try:
        check_places(task, folder)
        return _taken(task, folder)
    except Wrong as wrong:
        raise TaskError(f"{folder / FILE}: {dotted(wrong.key)}: {wrong.text}") from None
    except OSError as error:
        raise TaskError(
            f"{error.filename or folder}: cannot be read ({error.strerror}); check the name and rights"
        ) from None


def _taken(task: Task, folder: Path) -> Snapshot:
    commit, tree = _workspace(task, folder)
    judge, gold = _judge(task, folder)
    if commit:
        _refuse_judge_elsewhere(tree, judge, gold)
    inputs = _paths(task.target(Mode.SUBMIT).inputs, folder)
    tune_inputs = _paths(task.target(Mode.TUNE).inputs, folder)
    heldout_inputs = _paths(task.target(Mode.HELDOUT).inputs, folder) if task.heldout else {}
    paths = {*inputs.values(), *tune_inputs.values(), *heldout_inputs.values()}
    seals = {path: input_digest(path, ("inputs",)) for path in paths}
    digests = {
        "task": task.digest,
        "workspace": tree.digest,
        "judge": judge.digest,
        "gold": gold.digest,
        "inputs": _sealed((name, seals[path]) for name, path in inputs.items()),
        "tune_inputs": _sealed((name, seals[path]) for name, path in tune_inputs.items()),
    }
    if task.heldout:
        digests["heldout_inputs"] = _sealed((name, seals[path]) for name, path in heldout_inputs.items())
        _refuse_same_split(task, digests)
    return Snapshot(tree, judge, gold, inputs, tune_inputs, digests, commit, heldout_inputs)


def _refuse_judge_elsewhere(tree: Tree, judge: Tree, gold: Tree) -> None:
    """A revision may have the judge where it lay before it was moved, and `exclude` names where it lies now.

    A single file of its code may be one that candidates need as well; all of them together are the judge.
    """
    for path, file in tree.items():
        parts = path.split("/")
        for name in ("/".join(parts[at:]) for at in range(len(parts))):
            place = path.removesuffix(name)
            is_gold = name in gold and file.data != b"" and file.data == gold[name].data
            if is_gold or (name in judge and all(tree.get(f"{place}{each}") == judge[each] for each in judge)):
                text = (
                    f"{path} of that revision is the judge's {name}, and candidates see it; set exclude to leave it out"
                )
                raise Wrong(("workspace", "revision"), text)


def _refuse_same_split(task: Task, digests: Mapping[str, str]) -> None:
    """Copies under other names are the development split, too."""
    if digests["heldout_inputs"] == digests["inputs"] and not judged_otherwise(task):
        text = "hold the very files of the development split; held-out data must be other data"
        raise Wrong(("heldout", "inputs"), text)


def _workspace(task: Task, folder: Path) -> tuple[str | None, Tree]:
    key: Key = ("workspace",)
    cap = task.limits.bundle_bytes
    if isinstance(task.workspace, str):
        path = folder / task.workspace
        names = plain_names(path, key, leaves_out=task.leaves_out)
        commit, tree = None, read_tree(path, names, key, cap, "limits.bundle_bytes")
    else:
        commit, tree = _committed(task, task.workspace, folder, cap)
        check_names(task, tree)
    check_regions(task, lambda name: tree[name].data if name in tree else b"")
    return commit, tree


def _committed(task: Task, workspace: Repository, folder: Path, byte_cap: int) -> tuple[str, Tree]:
    from orchestrator import git  # the library behind it is large, and most tasks have no repository

    beneath = "" if workspace.folder == "." else workspace.folder
    try:
        place, revision = folder / workspace.repository, workspace.revision
        return git.read_tree(place, revision, beneath, entries=FILES, size=byte_cap, leaves_out=task.leaves_out)
    except git.GitError as error:
        raise Wrong(("workspace",), str(error)) from None


def _judge(task: Task, folder: Path) -> tuple[Tree, Tree]:
    """The judge's folder in two: its code, and its gold."""
    key: Key = ("judge", "folder")
    place = (folder / task.judge.folder).resolve()
    whole = read_tree(place, plain_names(place, key), key, task.judge.limits.bundle_bytes, "judge.limits.bundle_bytes")
    gold_place = gold_of(task, folder)
    if not gold_place:
        return whole, Tree()
    top = gold_place.resolve().relative_to(place).as_posix()
    gold = {name: file for name, file in whole.items() if name == top or name.startswith(f"{top}/")}
    if not gold:
        raise Wrong(("judge", "gold"), f"{gold_place} holds no file; put the gold there")
    return Tree({name: file for name, file in whole.items() if name not in gold}), Tree(gold)


def _paths(inputs: Mapping[str, str], folder: Path) -> dict[str, Path]:
    return {name: (folder / path).resolve() for name, path in inputs.items()}


def _sealed(parts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{digest} {name}\n" for name, digest in sorted(parts)).encode()).hexdigest()
