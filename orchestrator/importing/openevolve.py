"""Tasks of OpenEvolve: a program, an evaluator with `evaluate(program_path)`, and a config.yaml.

The evaluator goes into the judge's folder as it is. It is given the path of a stub, whose functions are calls of the
candidate in its own chamber; see judge/guest/blastdoor_evaluator.py.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.change.regions import spans, split_entry
from orchestrator.domain.tier import Tier
from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.called import CalledTask, driver_text, how_it_is_called
from orchestrator.importing.config import number, read_config, section
from orchestrator.importing.packages import Needs, needs_of, versions_of
from orchestrator.importing.source import Source
from orchestrator.importing.survey import Survey, asks_itself, draws_at_random, mentions, survey
from orchestrator.task import TaskError

_METRIC = "combined_score"
# Where there is no combined_score: what people call the one number that counts, the clearest first.
_NEXT_BEST = ("score", "overall_score", "total_score", "final_score", "composite_score", "fitness", "accuracy")
_TIMEOUT_S = 300.0
_MEMORY_MIB = 2048
_THRESHOLDS = (0.5, 0.75, 0.9)
_STATEMENT_CHARACTERS = 20_000
_MAPPED = {"max_iterations", "evaluator", "prompt", "random_seed", "log_level", "checkpoint_interval"}
_SHOWN = 6
_REGION = "EVOLVE-BLOCK"


@dataclass(frozen=True)
class _Parts:
    """What was found, and what it means."""

    source: Source
    program: str
    evaluator: str
    config_name: str
    config: dict[str, Any]
    functions: list[str]
    classes: list[str]
    seen: Survey
    judge_needs: Needs
    program_needs: Needs
    metric: str
    why_metric: str
    why_noisy: str
    editable: str

    @property
    def rules(self) -> dict[str, Any]:
        return section(self.config, "evaluator")

    @property
    def called(self) -> list[str]:
        return [*self.functions, *self.classes]

    @property
    def thresholds(self) -> list[float] | None:
        """None where the evaluator has no stages, or the config wants none."""
        if not self.seen.stages or self.rules.get("cascade_evaluation") is False:
            return None
        given = self.rules.get("cascade_thresholds")
        given = given if isinstance(given, list) else _THRESHOLDS
        return [float(it) for it in given if isinstance(it, int | float) and not isinstance(it, bool)]

    @property
    def wall_s(self) -> float:
        """Each stage has the whole time-out there."""
        stages = len(self.seen.stages) if self.thresholds is not None else 1
        return number(self.rules.get("timeout"), 1, 86_400, _TIMEOUT_S) * stages


def read(request: ImportRequest) -> Imported:
    source = Source.of(request.source)
    parts = _parts(source, request)
    workspace = _copied(source, parts.program_needs, parts.evaluator)
    judge = _copied(source, parts.judge_needs, parts.program)
    driver = "judge.py" if "judge.py" not in judge else "run_evaluator.py"
    files = {"blastdoor.toml": _called_task(parts, request.name, driver).text().encode()}
    files |= {f"workspace/{name}": source.read(name) for name in sorted(workspace)}
    files |= {f"judge/{name}": source.read(name) for name in sorted(judge)}
    files[f"judge/{driver}"] = _driver(parts).encode()
    beside = [name for name in source.names if name not in workspace | judge and name != parts.config_name]
    return Imported(files, Tier.RELAY, tuple(_mapped(parts)), tuple(_left_out(parts, beside)), tuple(_findings(parts)))


def _parts(source: Source, request: ImportRequest) -> _Parts:
    evaluator = _chosen(source, request.evaluator, ["evaluator.py"], "evaluator")
    program = _chosen(source, request.program, ["initial_program.*", "init_program.*"], "program")
    if not program.endswith(".py"):
        raise TaskError(
            f"{source.folder / program}: is not Python, and only Python programs can be imported yet: what the"
            " evaluator starts for it (a compiler, an interpreter) would have to run in the candidate's chamber"
        )
    config_name = _config_name(source, request.config)
    seen = survey(source.python(evaluator), evaluator)
    if not seen.entries:
        raise TaskError(f"{source.folder / evaluator}: defines no evaluate(program_path); name the evaluator's file")
    tree = source.python(program)
    functions, classes = _called(tree, seen, program, evaluator)
    metric, why = _metric(request.metric, seen, source.folder / evaluator)
    return _Parts(
        source=source,
        program=program,
        evaluator=evaluator,
        config_name=config_name,
        config=read_config(source, config_name) if config_name else {},
        functions=functions,
        classes=classes,
        seen=seen,
        judge_needs=needs_of(source, evaluator, request.packages),
        program_needs=needs_of(source, program, request.packages),
        metric=metric,
        why_metric=why,
        why_noisy=seen.why_noisy or (f"{program} draws random numbers" if draws_at_random(tree) else ""),
        editable=_editable(source, program),
    )


def _editable(source: Source, program: str) -> str:
    """Between the marks, where the program has them."""
    data = source.read(program)
    if f"{_REGION}-START".encode() not in data and f"{_REGION}-END".encode() not in data:
        return program
    try:
        path, region = split_entry(f"{program}:{_REGION}")
        spans(path, data, (region,) if region else ())
    except ValueError as error:
        raise TaskError(f"{source.folder / program}: cannot be cut at its marks: {error}") from None
    return f"{program}:{_REGION}"


def _chosen(source: Source, named: str | None, patterns: Sequence[str], what: str) -> str:
    if named is not None:
        if named not in source.names:
            raise TaskError(f"{source.folder / named}: is not there, or is a link; name a file of the folder")
        return named
    found = next((names for pattern in patterns if (names := source.at_top(pattern))), [])
    if len(found) == 1:
        return found[0]
    if found:
        raise TaskError(f"{source.folder}: has two programs, {found[0]} and {found[1]}; choose with --{what}")
    raise TaskError(f"{source.folder}: has no {' or '.join(patterns)}; name the {what} with --{what}")


def _config_name(source: Source, named: str | None) -> str:
    if named is not None:
        return _chosen(source, named, [], "config")
    found = source.at_top("config.y*ml") or source.at_top("config*.y*ml")
    return found[0] if found else ""


def _called(tree: ast.Module, seen: Survey, program: str, evaluator: str) -> tuple[list[str], list[str]]:
    """The functions and the classes of the program that the evaluator names. Raises TaskError where there is none."""
    own = [it for it in tree.body if isinstance(it, ast.FunctionDef | ast.ClassDef) and it.name[0] != "_"]
    functions = [it.name for it in own if isinstance(it, ast.FunctionDef) and it.name in seen.words]
    classes = [it.name for it in own if isinstance(it, ast.ClassDef) and it.name in seen.words]
    if not functions and not classes:
        raise TaskError(
            f"{evaluator} names none of the functions of {program}"
            f" ({', '.join(it.name for it in own[:_SHOWN]) or 'it has none'}):"
            " an evaluator that only reads the program, or starts it, cannot be imported yet"
        )
    return functions, classes


def _metric(named: str | None, seen: Survey, path: object) -> tuple[str, str]:
    """Its name, and why it is this one. A mean of all numbers, as OpenEvolve takes it, would reward nonsense."""
    if named is not None:
        return named, "as you said"
    if _METRIC in seen.metrics:
        return _METRIC, "as OpenEvolve ranks by it"
    if found := next((name for name in _NEXT_BEST if name in seen.metrics), None):
        return found, f"since there is no {_METRIC}, and its name says that it counts; --metric chooses another"
    if len(seen.metrics) == 1:
        return seen.metrics[0], f"the only one, since there is no {_METRIC}"
    some = ", ".join(seen.metrics[:12]) or "nothing that can be read"
    raise TaskError(f"{path}: returns no {_METRIC}; choose one of what it returns ({some}) with --metric")


def _copied(source: Source, needs: Needs, other: str) -> set[str]:
    """What one side gets: what it imports, and the files and folders that its texts name."""
    meant: set[str] = set()
    for name in needs.files:
        if name.endswith(".py"):
            meant |= mentions(source.python(name))
    named = {name for name in source.names if {name.rpartition("/")[2], name.partition("/")[0]} & meant}
    return needs.files | {name for name in named if name != other}


def _driver(parts: _Parts) -> str:
    return driver_text(
        evaluator=parts.evaluator,
        metric=parts.metric,
        functions=parts.functions,
        classes=parts.classes or None,
        thresholds=parts.thresholds,
    )


def _called_task(parts: _Parts, name: str, driver: str) -> CalledTask:
    versions = versions_of(parts.source)
    return CalledTask(
        origin=f"OpenEvolve: {', '.join(filter(None, [parts.program, parts.evaluator, parts.config_name]))}",
        name=name,
        statement=_statement(parts, name),
        program=parts.program,
        editable=parts.editable,
        metric=parts.metric,
        driver=driver,
        wall_s=parts.wall_s,
        memory_mib=int(number(parts.rules.get("memory_limit_mb"), 64, 1 << 20, _MEMORY_MIB)),
        program_packages=parts.program_needs.requirements(versions),
        judge_packages=parts.judge_needs.requirements(versions),
        why_noisy=parts.why_noisy,
        attempts=int(number(parts.config.get("max_iterations"), 1, 1_000_000, 0)),
    )


def _statement(parts: _Parts, name: str) -> str:
    said = section(parts.config, "prompt").get("system_message")
    said = said.strip()[:_STATEMENT_CHARACTERS] if isinstance(said, str) else ""
    called = how_it_is_called(parts.called, parts.program, parts.metric)
    return f"{said or f'Improve {parts.program} of {name}.'}\n\n{called}"


def _mapped(parts: _Parts) -> list[str]:
    stages = parts.seen.stages
    lines = [
        f"{parts.program} is the workspace, "
        + ("all of it editable" if parts.editable == parts.program else f"editable between its {_REGION} marks"),
        f"{parts.evaluator} is the judge, unchanged; it calls {', '.join(parts.called)}",
        f"the metric is {parts.metric}, higher is better, {parts.why_metric}",
        f"limits.wall is {parts.wall_s:g}s"
        + ("" if "timeout" in parts.rules else f", since the config names no evaluator.timeout ({_TIMEOUT_S:g}s)"),
    ]
    if parts.thresholds is not None:
        lines.append(f"{len(stages)} stages with the thresholds {', '.join(map(str, parts.thresholds)) or 'none'}")
    elif stages:
        lines.append("the stages are not run: evaluator.cascade_evaluation is false")
    if packages := sorted(parts.judge_needs.packages | parts.program_needs.packages):
        lines.append(f"packages by their imports: {', '.join(packages)}")
    if parts.why_noisy:
        lines.append(f'certify.rule is "noisy", since {parts.why_noisy}')
    return lines


def _left_out(parts: _Parts, beside: Sequence[str]) -> list[str]:
    lines = []
    keys = [name for name in parts.config if name not in _MAPPED]
    keys += ["evaluator.use_llm_feedback"] if parts.rules.get("use_llm_feedback") is True else []
    if keys:
        lines.append(f"settings of {parts.config_name}: {', '.join(map(str, keys))}")
    configs = [name for name in parts.source.at_top("config*.y*ml") if name != parts.config_name]
    if configs:
        lines.append(f"{', '.join(configs)}: {parts.config_name} was taken; --config chooses another")
    others = [name for name in beside if name not in configs]
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        lines.append(f"files that neither side names: {', '.join(others[:_SHOWN])}{more}")
    lines += [f"the package of {it}" for it in (*parts.judge_needs.not_found, *parts.program_needs.not_found)]
    return lines


def _findings(parts: _Parts) -> list[str]:
    lines = list(parts.seen.findings)
    if graded := asks_itself(parts.functions):
        lines.append(f"{parts.evaluator} asks the program itself with {', '.join(graded)}: it can say yes to all")
    if parts.classes:
        lines.append(f"objects of {', '.join(parts.classes)} stay with the candidate: all that they say is its word")
    if others := [word for word in parts.seen.starts if word != "python"]:
        lines.append(f"{parts.evaluator} starts {', '.join(others)}: it must be in the judge's image ([judge.image])")
    if parts.thresholds:
        lines.append("a candidate that stops at a stage has that stage's score, as in OpenEvolve")
    return lines
