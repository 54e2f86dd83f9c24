"""What no single key can tell: sections that do not fit each other, and places that do not fit the folder.

The first thing that is wrong is raised; what looks wrong and may be right comes back as warnings. The one that
carries weight: neither judge nor gold may lie where a candidate could see them, whatever links lead there.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from orchestrator.change import Refusal
from orchestrator.change.names import folded
from orchestrator.change.patterns import is_exact, matches
from orchestrator.change.regions import BadRegion, spans, split_entry
from orchestrator.choices import PARENTS, PROPOSERS, PRUNERS
from orchestrator.domain.certify import EACH, CertifyRule
from orchestrator.domain.metric import Rule
from orchestrator.domain.tier import USUAL, modes_with
from orchestrator.domain.verdict import Mode
from orchestrator.registry import ChoiceError, listed
from orchestrator.task.combining import POOL_INPUT, CombineSpec
from orchestrator.task.conditions import check_conditions
from orchestrator.task.errors import STATE, Key, Wrong
from orchestrator.task.explaining import nearest
from orchestrator.task.files import plain_names
from orchestrator.task.model import Task
from orchestrator.task.sections import HeldOutSpec, Repository

PLAYBOOK = "playbook"

Notice = tuple[Key, str]


def check(task: Task, folder: Path, *, searches: bool = True) -> list[Notice]:
    """All checks that need no repository to be read. Where nobody `searches`, who would propose need not be there."""
    check_sections(task)
    if searches:
        _check_choices(task)
    check_places(task, folder)
    warnings = [
        *_weights_without_effect(task),
        *_too_few_repeats(task),
        *_certify_without_effect(task),
        *_strict_with_a_time(task),
        *_search_without_a_space(task),
        *_archive_without_effect(task),
    ]
    if task.combine:
        warnings += _check_combination(task, folder, searches=searches)
    if (mode := task.judge.mode).terms.calls and task.trial.outputs:
        warnings.append((("trial", "outputs"), f'has no effect; with judge.mode = "{mode}" nothing is harvested'))
    if task.judge.looks and not mode.terms.calls:
        warnings.append((("judge", "looks"), f'has no effect; with judge.mode = "{mode}" nothing is put beside it'))
    if (task.stall.heartbeat or 0.0) >= task.limits.wall:
        warnings.append((("stall", "heartbeat"), "has no effect; limits.wall ends every trial before that"))
    if isinstance(task.workspace, str):
        place = folder / task.workspace
        names = plain_names(place, ("workspace",), leaves_out=task.leaves_out)
        warnings += [*_excluded_without_effect(task, place), *check_names(task, names)]
        check_regions(task, lambda name: (place / name).read_bytes())
    return warnings


def check_sections(task: Task) -> None:
    try:
        task.policy()
    except ValueError as error:
        raise Wrong(("editable",), str(error)) from None
    _refuse_twice(("metrics",), [metric.name for metric in task.metrics])
    _refuse_twice(("guards",), [guard.name for guard in task.guards])
    if task.ranking.rule is Rule.WEIGHTED:
        for at, metric in enumerate(task.metrics):
            if "weight" not in metric.model_fields_set:
                raise Wrong(("metrics", at), 'has no weight, but ranking.rule is "weighted"; give every metric one')
    _check_certify(task)
    for name in task.tune.inputs if task.tune else ():
        if name not in task.inputs:
            raise Wrong(("tune", "inputs", name), "replaces no input; use a name of [inputs]")
    if task.heldout:
        _check_heldout(task, task.heldout)
    for at, metric in enumerate(task.metrics):
        if metric.timing and not task.judge.mode.terms.calls:
            instead = f"set judge.mode = {modes_with(lambda it: it.calls)}, or take it out"
            raise Wrong(("metrics", at, "timing"), f"is measured where the judge calls the candidate; {instead}")
    if task.parameters:
        check_conditions(task.parameters.space)
        _check_parameters_file(task, task.parameters.file)
    for stops, key in ((task.pruning, ("pruning", "rule")), (task.stall.heartbeat, ("stall", "heartbeat"))):
        if stops and not (mode := task.judge.mode).terms.stops:
            instead = f"needs judge.mode = {modes_with(lambda it: it.stops)}"
            raise Wrong(key, f'{instead}: with "{mode}" no trial can be told to stop; take one of them out')


def _check_combination(task: Task, folder: Path, *, searches: bool) -> list[Notice]:
    """The stage is a task like any other, whose keys are written beneath [combine]."""
    terms = (mode := task.judge.mode).terms
    if terms.calls or not terms.hides_gold:
        text = f'combines what candidates leave, and with judge.mode = "{mode}" the judge gets no outputs of theirs'
        raise Wrong(("combine",), f'{text}; use judge.mode = "{USUAL}", or take it out')
    if POOL_INPUT in task.inputs:
        raise Wrong(("inputs", POOL_INPUT), "is where combinations find their pool; give the input another name")
    _check_members(task)
    stage = task.combination()
    try:
        noticed = [_beneath_combine(*notice) for notice in check(stage, folder, searches=searches)]
    except Wrong as wrong:
        key, text = _beneath_combine(wrong.key, wrong.text)
        raise Wrong(key, text) from None
    return [(key, text) for key, text in noticed if key[:1] == ("combine",)]


def _check_members(task: Task) -> None:
    combine = task.combine
    if combine and combine.members == "code" and not combine.serve:
        example = '["python3", "-m", "blastdoor_candidate", "solve.py"]'
        raise Wrong(("combine", "serve"), f"is how a member is called, and members is code; set it, like {example}")
    if combine and combine.serve and combine.members != "code":
        raise Wrong(("combine", "serve"), 'is for members that are called; set members = "code", or take it out')


def _beneath_combine(key: Key, text: str) -> Notice:
    own = bool(key) and key[0] in CombineSpec.model_fields
    return ("combine", *key) if own else key, text


def _check_choices(task: Task) -> None:
    """Every name is one that is built in or installed."""
    controls = PROPOSERS.with_trait("is_control")
    rule = task.pruning.rule if task.pruning else None
    named = (
        (PROPOSERS, task.search.proposer, ("search", "proposer")),
        (PARENTS, task.search.selection, ("search", "selection")),
        (PRUNERS, rule, ("pruning", "rule")),
    )
    for kind, name, key in named:
        try:
            if name:
                kind.find(name)
        except ChoiceError as error:
            raise Wrong(key, str(error)) from None
    if task.search.control and task.search.control not in controls:
        raise Wrong(("search", "control"), f'must be {listed(controls)}, not "{task.search.control}"')


def _check_certify(task: Task) -> None:
    certify = task.certify.certify()
    if not certify.noisy:
        return
    if task.ranking.rule is Rule.PARETO:
        text = '"noisy" needs scores in one order, which "pareto" does not give; use another ranking.rule, or "strict"'
        by_default = task.rule_by_default.removeprefix("certify.rule ")
        raise Wrong(("certify", "rule"), f"{by_default}; {text}" if by_default else text)


def _check_heldout(task: Task, held: HeldOutSpec) -> None:
    for name in held.inputs:
        if name not in task.inputs:
            raise Wrong(("heldout", "inputs", name), "replaces no input; use a name of [inputs]")
    if not (mode := task.judge.mode).terms.hides_gold:
        instead = f'use judge.mode = "{USUAL}", or take [heldout] out'
        raise Wrong(("heldout",), f"a {mode} judge shows the held-out gold to the candidate; {instead}")
    if task.target(Mode.HELDOUT).inputs == task.inputs and not judged_otherwise(task):
        text = "is the development split: same inputs, same judge command, same judge.env; give it other data"
        raise Wrong(("heldout",), text)


def judged_otherwise(task: Task) -> bool:
    """Whether the judge is told to score the held-out split by something else than the development split."""
    real, held = task.target(Mode.SUBMIT), task.target(Mode.HELDOUT)
    return (real.judge, real.judge_env) != (held.judge, held.judge_env)


def gold_of(task: Task, folder: Path) -> Path | None:
    if task.judge.gold is not None:
        return folder / task.judge.gold
    usual = folder / task.judge.folder / "gold"
    return usual if usual.exists() else None


def playbook_of(task: Task, folder: Path) -> Path | None:
    """The task's own pages for those who ask a model; None for a task that brings none."""
    if task.playbook is not None:
        return folder / task.playbook
    usual = folder / PLAYBOOK
    return usual if usual.is_dir() else None


def check_places(task: Task, folder: Path) -> None:
    """Everything that is named is there, and what is secret lies apart from what is shown.

    Gold lies beneath the judge's folder, so what holds for the folder holds for it.
    """
    workspace, workspace_key = _workspace(task, folder)
    judge, gold = folder / task.judge.folder, gold_of(task, folder)
    if not judge.is_dir():
        raise Wrong(("judge", "folder"), f"{judge} is not a folder; put the judge there")
    if gold:
        _check_gold(gold, judge)
    if _is_shown(task, judge, workspace):
        where = _within(judge, workspace)
        other = "" if where == "." else f', or set exclude = ["{where}"]'
        text = f"{judge} lies inside the workspace, where candidates see it; move it out{other}"
        raise Wrong(("judge", "folder"), text)
    if _inside(workspace, judge):
        raise Wrong(workspace_key, f"{workspace} lies inside the judge's folder; move it out")
    for key, path in _inputs(task, folder):
        _check_input(key, path, {"the judge's folder": judge, "the gold": gold, "what runs left": folder / STATE})
    for name, place in task.heldout.inputs.items() if task.heldout else ():
        # What development trials read as well is no secret.
        if place != task.inputs[name] and _is_shown(task, folder / place, workspace):
            text = f"{folder / place} lies inside the workspace, where candidates see it; move it out, or exclude it"
            raise Wrong(("heldout", "inputs", name), text)
    if playbook := playbook_of(task, folder):
        _check_playbook(playbook, judge)
    for name, place in task.heldout.inputs.items() if task.heldout else ():
        _check_looks_alike(("heldout", "inputs", name), folder / place, folder / task.inputs[name])


def check_names(task: Task, names: Iterable[str]) -> list[Notice]:
    """Compare the patterns with the workspace's files."""
    files = set(names)
    warnings: list[Notice] = []
    for section, patterns in (("editable", task.editable), ("hidden", task.hidden)):
        for at, entry in enumerate(patterns):
            pattern, region = split_entry(entry)
            if is_exact(pattern):
                warnings += _check_exact(task, (section, at), pattern, files)
                if region and pattern not in files:
                    raise Wrong((section, at), f'"{pattern}" is not in the workspace; a region is in a file that is')
            elif not any(matches(pattern, name) for name in files):
                warnings.append(((section, at), f'"{pattern}" matches no file of the workspace'))
    return warnings


def check_regions(task: Task, read: Callable[[str], bytes]) -> None:
    """Every region is in its file as candidates start from it."""
    for path, regions in task.policy().regions.items():
        try:
            spans(path, read(path), regions)
        except BadRegion as error:
            at = next(at for at, entry in enumerate(task.editable) if split_entry(entry)[0] == path)
            raise Wrong(
                ("editable", at), f'"{path}" cannot be cut at its regions: {error}; mend the file, or name all of it'
            ) from None


def _check_exact(task: Task, key: Key, path: str, files: set[str]) -> Iterator[Notice]:
    """An editable file may be one that is still to be written, but it must be possible to write it."""
    if any(name.startswith(f"{path}/") for name in files):
        if key[0] == "editable":
            raise Wrong(key, f'"{path}" is a folder; write {path}/** for all that is in it')
        return
    if task.leaves_out(path):
        raise Wrong(key, f'"{path}" is excluded too, so that it is not there; take it out of one of them')
    other = next((name for name in files if folded(name) == folded(path) and name != path), None)
    above = next((name for name in files if path.startswith(f"{name}/")), None)
    if other or above:
        raise Wrong(key, f'"{path}" cannot be there beside the file {other or above}; correct the name')
    close = nearest(path, files)
    hint = f"; did you mean {close}?" if close else ""
    if key[0] == "hidden":
        if path not in files:
            raise Wrong(key, f'"{path}" is not in the workspace, so nothing is hidden{hint or "; correct the name"}')
        return
    if task.policy().hides(path):
        raise Wrong(key, f'"{path}" is hidden too, and hidden wins; take it out of one of them')
    if path not in files:
        yield key, f'"{path}" is not in the workspace; a change may create it{hint}'


def _check_parameters_file(task: Task, file: str) -> None:
    try:
        task.policy().check(file)
    except Refusal as refusal:
        text = f'"{file}" cannot be written ({refusal.reason}); add it to editable'
        raise Wrong(("parameters", "file"), text) from None
    if file in task.policy().regions:
        raise Wrong(("parameters", "file"), f'"{file}" is written as a whole; make all of it editable, not a region')


def _workspace(task: Task, folder: Path) -> tuple[Path, Key]:
    """Where the candidates' files come from. Of a repository, the place in its working tree counts."""
    if isinstance(task.workspace, str):
        path = folder / task.workspace
        if not path.is_dir():
            raise Wrong(("workspace",), f"{path} is not a folder; put there what candidates start from")
        return path, ("workspace",)
    return _repository(task.workspace, folder), ("workspace", "repository")


def _repository(workspace: Repository, folder: Path) -> Path:
    path = folder / workspace.repository
    if not path.is_dir():
        raise Wrong(("workspace", "repository"), f"{path} is not a folder; name a repository")
    root = path.parent if path.name == ".git" else path
    return root / workspace.folder


def _check_gold(gold: Path, judge: Path) -> None:
    if not gold.exists():
        raise Wrong(("judge", "gold"), f"{gold} is missing; put the gold there or correct the name")
    if not _inside(gold, judge) or _inside(judge, gold):
        raise Wrong(("judge", "gold"), f"{gold} is not beneath the judge's folder {judge}; move it there")


def _inputs(task: Task, folder: Path) -> Iterator[tuple[Key, Path]]:
    for name, path in task.inputs.items():
        yield ("inputs", name), folder / path
    for name, path in task.tune.inputs.items() if task.tune else ():
        yield ("tune", "inputs", name), folder / path
    for name, path in task.heldout.inputs.items() if task.heldout else ():
        yield ("heldout", "inputs", name), folder / path


def _check_input(key: Key, path: Path, secrets: dict[str, Path | None]) -> None:
    if not path.exists():
        raise Wrong(key, f"{path} is missing; put the data there or correct the name")
    for what, secret in secrets.items():
        if secret and secret.exists() and (_inside(path, secret) or _inside(secret, path)):
            raise Wrong(
                key, f"{path} and {what} ({secret}) lie in each other; candidates see inputs, so keep them apart"
            )


def _check_playbook(playbook: Path, judge: Path) -> None:
    """All of it goes to a provider, and to agents."""
    if not playbook.is_dir():
        raise Wrong(("playbook",), f"{playbook} is not a folder; put the playbook there, or take the key out")
    if _inside(playbook, judge) or _inside(judge, playbook):
        raise Wrong(("playbook",), f"{playbook} and the judge's folder lie in each other, and agents read it; move it")


def _check_looks_alike(key: Key, held: Path, usual: Path) -> None:
    """A candidate that finds another name there breaks on it, or knows where it is."""
    if held.is_dir() != usual.is_dir():
        raise Wrong(key, f"{held} must be a {'folder' if usual.is_dir() else 'file'} like {usual}")
    if not held.is_dir() and held.name != usual.name:
        raise Wrong(key, f"{held} must have the name that candidates look for; call it {usual.name}, in another folder")


def _is_shown(task: Task, path: Path, workspace: Path) -> bool:
    """Whether a candidate would see it: it lies in the workspace, and is not left out."""
    return _inside(path, workspace) and not task.leaves_out(_within(path, workspace))


def _within(path: Path, workspace: Path) -> str:
    """The place in the workspace, whatever links lead there; nothing is left out that is the workspace itself."""
    return os.path.relpath(os.path.realpath(path), os.path.realpath(workspace))


def _inside(path: Path, folder: Path) -> bool:
    """Whether the path is the folder or lies beneath it, by what is on the disk and not by how it is spelt."""
    if not folder.exists():
        return False
    there = folder.stat()
    path = Path(os.path.realpath(path))
    return any(os.path.samestat(there, place.stat()) for place in (path, *path.parents) if place.exists())


def _refuse_twice(key: Key, names: list[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise Wrong((*key, at, "name"), f'"{name}" is there twice; rename one')


def _excluded_without_effect(task: Task, workspace: Path) -> Iterator[Notice]:
    for at, pattern in enumerate(task.exclude):
        if is_exact(pattern) and not (workspace / pattern).exists():
            yield ("exclude", at), f'"{pattern}" is not in the workspace, so nothing is left out'


def _weights_without_effect(task: Task) -> Iterator[Notice]:
    for at, metric in enumerate(task.metrics):
        if "weight" in metric.model_fields_set and task.ranking.rule is not Rule.WEIGHTED:
            yield ("metrics", at, "weight"), 'has no effect; it counts only with ranking.rule = "weighted"'
        if metric.before and task.ranking.rule is not Rule.LEXICOGRAPHIC:
            yield ("metrics", at, "before"), 'has no effect; it counts only with ranking.rule = "lexicographic"'


def _too_few_repeats(task: Task) -> Iterator[Notice]:
    certify = task.certify.certify()
    if certify.noisy and certify.repeats < (used := EACH * certify.least) - EACH + 1:
        text = f"{certify.repeats} cannot prove anything at an error of {certify.error:g}; {used} are used"
        yield ("certify", "repeats"), text


def _certify_without_effect(task: Task) -> Iterator[Notice]:
    # An evolver's playbooks are compared by the same rule, whatever the scores are like.
    unused: tuple[str, ...] = ("champion",) if task.roles.evolver else ("error", "repeats", "champion")
    other = CertifyRule.NOISY
    if task.certify.certify().noisy:
        unused, other = () if task.certify.replay else ("replay",), CertifyRule.STRICT
    for name in unused:
        if name in task.certify.model_fields_set:
            yield ("certify", name), f'has no effect; it counts only with certify.rule = "{other}"'


def _strict_with_a_time(task: Task) -> Iterator[Notice]:
    if task.times and not task.certify.certify().noisy:
        text = f'is "strict", and {task.times[0]} is a time, so luck is kept; take it out, and repeats in turn decide'
        yield ("certify", "rule"), text


def _archive_without_effect(task: Task) -> Iterator[Notice]:
    """A package's own rule may make something of it."""
    given = task.search.archive and task.search.archive.features
    if given and task.search.selection in (None, *(set(PARENTS.built_in) - {"archive"})):
        yield ("search", "archive"), 'has no effect; it counts only with search.selection = "archive"'


def _search_without_a_space(task: Task) -> Iterator[Notice]:
    """A flag may name another proposer; who makes the one that counts refuses it."""
    for name, proposer in (("proposer", task.search.proposer), ("control", task.search.control)):
        if proposer and not task.parameters and PROPOSERS.has(proposer, "needs_space"):
            other = ", or leave the control out" if name == "control" else ""
            yield ("search", name), f'"{proposer}" needs a space to search; add [parameters]{other}'
