"""From a tree and a change to the next tree, or a refusal. First what may be touched, then what comes of it.

All edits read the tree as it was, so their order has no meaning; the whole change is taken or none of it.
"""

from collections.abc import Iterable, Mapping

from orchestrator.change.as_git import made_by_git
from orchestrator.change.canonical import is_text
from orchestrator.change.edits import Change, Edit, Form, Kind
from orchestrator.change.effort import Effort
from orchestrator.change.forms import parse
from orchestrator.change.names import folded, is_attributes
from orchestrator.change.places import Patch
from orchestrator.change.policy import Caps, Policy
from orchestrator.change.refusal import Reason, Refusal, shown_path
from orchestrator.change.tree import File, Tree
from orchestrator.text import shown
from orchestrator.units import format_size

_ATTRIBUTES_WITH_PROGRAMS = (b"filter", b"diff=", b"merge=", b"working-tree-encoding")


def apply_text(
    tree: Tree,
    text: str | bytes,
    policy: Policy,
    form: Form = Form.AUTO,
    *,
    exact: bool = False,
    effort: Effort | None = None,
) -> Tree:
    """The tree that a text makes of this one. `exact` is for what a person brings and has read: a diff that was cut off
    is refused, as git does it; a model may miscount.
    """
    change = parse(text, form, caps=policy.caps, only=policy.only, exact=exact)
    effort = effort or Effort()
    result = apply(tree, change, policy, effort)
    for edit in change.edits if exact else ():
        if edit.kind is Kind.DELETE and not edit.hunks and tree[edit.path].data:
            raise Refusal(Reason.DELETION_INCOMPLETE, shown(edit.path))
        if change.form is Form.UNIFIED and edit.hunks and edit.kind is not Kind.DELETE:
            _check_places(tree.get(edit.source or edit.path), edit, result[edit.path], effort)
    return result


def _check_places(before: File | None, edit: Edit, after: File, effort: Effort) -> None:
    """What git finds no place for, it refuses as a whole."""
    theirs = made_by_git(before.data if before else b"", edit.hunks, effort)
    if theirs not in (None, after.data):
        raise Refusal(Reason.CONTEXT_AMBIGUOUS, f"git would put a hunk of {shown(edit.path)} elsewhere")


def apply(tree: Tree, change: Change, policy: Policy, effort: Effort | None = None) -> Tree:
    """The next tree. Raises Refusal and nothing else."""
    check_paths(change, policy)
    effort = effort or Effort()
    _check_compared([tree[path].data for path in _replaced(change) if path in tree], policy.caps)
    written = {edit.path: _result(tree, edit, policy, effort) for edit in change.edits if edit.kind is not Kind.DELETE}
    for edit in change.edits:
        if edit.kind is Kind.DELETE:
            _check_deletion(tree, edit, effort)
    check_sizes(written, policy.caps)
    sides = [tree[path].data for path in _replaced(change) if path in tree] + [it.data for it in written.values()]
    _check_compared(sides, policy.caps)
    removed = {edit.removed for edit in change.edits}
    files = {path: file for path, file in tree.items() if path not in removed} | written
    _check_shape([path for path in written if path not in tree], files, policy)
    for path in sorted(_replaced(change)):
        policy.check_regions(path, tree.get(path), files.get(path))
    result = Tree(files)
    if result == tree:
        raise Refusal(Reason.NO_EFFECT, "the tree stays as it is")
    return result


def check_paths(change: Change, policy: Policy) -> None:
    """Raises Refusal for what no tree could take."""
    _check_counts(change, policy.caps)
    for edit in change.edits:
        for path in edit.sides:
            policy.check(path)
    _refuse_twice(change)


def _check_counts(change: Change, caps: Caps) -> None:
    if not change.edits:
        raise Refusal(Reason.NOTHING_FOUND, "the change is empty")
    if len(change.edits) > caps.files:
        raise Refusal(Reason.TOO_MANY_FILES, f"{len(change.edits)} files, at most {caps.files} are allowed")
    hunks = sum(len(edit.hunks) for edit in change.edits)
    if hunks > caps.hunks:
        raise Refusal(Reason.TOO_MANY_HUNKS, f"{hunks} hunks, at most {caps.hunks} are allowed")


def _refuse_twice(change: Change) -> None:
    seen: set[str] = set()
    for edit in change.edits:
        for path in edit.sides if edit.kind is Kind.RENAME else (edit.path,):
            if path in seen:
                raise Refusal(Reason.PATH_TWICE, shown(path))
            seen.add(path)


def _result(tree: Tree, edit: Edit, policy: Policy, effort: Effort) -> File:
    origin = edit.source or edit.path
    before = tree.get(origin)
    creates = edit.kind is Kind.CREATE or (before is None and _is_new_file(edit))
    if edit.kind in (Kind.CREATE, Kind.RENAME, Kind.COPY) and edit.path in tree:
        raise Refusal(Reason.FILE_EXISTS, shown(edit.path))
    if before is None and not creates:
        raise Refusal(Reason.FILE_MISSING, shown_path(origin))
    if before is None or creates:
        before = File(b"")
    data = edit.data if edit.kind is Kind.WRITE else Patch(edit.path, before.data, edit.hunks, effort).result()
    executable = before.executable if edit.executable is None else edit.executable
    if executable != before.executable and not policy.mode_may_change:
        raise Refusal(Reason.MODE, shown(edit.path))
    if is_attributes(edit.path) and _runs_programs(data):
        raise Refusal(Reason.ATTRIBUTE_FILTER, shown(edit.path))
    return File(data, executable)


def _is_new_file(edit: Edit) -> bool:
    """Whether an edit of a file that is not there can only mean a new one: it has one hunk, and no old lines."""
    return edit.kind is Kind.WRITE or (edit.kind is Kind.MODIFY and len(edit.hunks) == 1 and not edit.hunks[0].old)


def _check_deletion(tree: Tree, edit: Edit, effort: Effort) -> None:
    if edit.path not in tree:
        raise Refusal(Reason.FILE_MISSING, shown(edit.path))
    if edit.hunks and Patch(edit.path, tree[edit.path].data, edit.hunks, effort).result():
        raise Refusal(Reason.DELETION_INCOMPLETE, shown(edit.path))


def _runs_programs(attributes: bytes) -> bool:
    return any(word.lstrip(b"-!").startswith(_ATTRIBUTES_WITH_PROGRAMS) for word in attributes.lower().split())


def check_sizes(written: Mapping[str, File], caps: Caps) -> None:
    """Raises Refusal for more than a change may write, into one file or in all."""
    for path, file in written.items():
        if len(file.data) > caps.file_bytes:
            size = f"{format_size(len(file.data))}, at most {format_size(caps.file_bytes)} are allowed"
            raise Refusal(Reason.FILE_TOO_LARGE, f"{shown(path)} would have {size}")
    total = sum(len(file.data) for file in written.values())
    if total > caps.total_bytes:
        size = f"{format_size(total)}, at most {format_size(caps.total_bytes)} are allowed"
        raise Refusal(Reason.TOO_MANY_BYTES, size)


def _replaced(change: Change) -> set[str]:
    """The paths whose present files have to be looked at: what is changed, written over, moved, copied or deleted."""
    return {path for edit in change.edits for path in edit.sides}


def _check_compared(sides: Iterable[bytes], caps: Caps) -> None:
    """Raises Refusal for more text than can be compared. What is no text is told by its digest, so it may be large."""
    texts = [data for data in sides if len(data) <= caps.compared_bytes or is_text(data)]
    if (size := sum(map(len, texts))) > caps.compared_bytes:
        most = f"at most {format_size(caps.compared_bytes)} can be compared"
        raise Refusal(Reason.TOO_MANY_BYTES, f"{format_size(size)} in the files that it replaces and writes, {most}")
    if (count := sum(data.count(b"\n") for data in texts)) > caps.compared_lines:
        most = f"at most {caps.compared_lines} can be compared"
        raise Refusal(Reason.TOO_MANY_LINES, f"{count} lines in the files that it replaces and writes, {most}")


def _check_shape(created: list[str], files: dict[str, File], policy: Policy) -> None:
    """New paths must fit among the others on every file system, and give nothing hidden away when they do not."""
    if not created:
        return
    spellings: dict[str, dict[str, str]] = {}
    folders: dict[str, str] = {}
    for path in files:
        for above in _folders(path):
            folders.setdefault(above, path)
            spellings.setdefault(folded(above), {}).setdefault(above, path)
        spellings.setdefault(folded(path), {}).setdefault(path, path)
    for path in created:
        if path in folders:
            raise _clash(Reason.FILE_AND_FOLDER, path, folders[path], policy)
        for name in (*_folders(path), path):
            if name != path and name in files:
                raise _clash(Reason.FILE_AND_FOLDER, path, name, policy)
            for spelling, holder in spellings[folded(name)].items():
                if spelling != name:
                    raise _clash(Reason.CASE_COLLISION, path, holder, policy)


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _clash(reason: Reason, path: str, other: str, policy: Policy) -> Refusal:
    if policy.hides(other):
        return policy.not_editable(path)
    return Refusal(reason, f"{shown(path)} and {shown(other)}")
