"""Runs an evaluator that wants the path of a program, while the program is in another chamber. Standard library only,
Python 3.9 up. What is special to one system is in a module of its own (blastdoor_openevolve, blastdoor_shinka).

The path that the evaluator gets is that of a stub (blastdoor_stub). Evaluators catch every error and answer with a
score of 0, so what went wrong is noticed here: an evaluator that called nobody, or whose arguments cannot be sent, is a
judge that broke, not a bad candidate. One that called the candidate and then raised an error, or had something that
cannot be sent, could not cope with what it was told: the candidate has no score, and a judge that broke would be one
that it can break at will.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import numbers
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from blastdoor_door import Door, EvaluatorBroke, Seen
from blastdoor_judge import BadOutput, judging, outputs, publish
from blastdoor_relay import NoFunction, relay
from blastdoor_source import Reads, read, shown, watched
from blastdoor_stub import opened, opened_programs

__all__ = ["EvaluatorBroke", "Outcome", "lend", "loaded", "run_evaluator"]

FUNCTION = "function"
MAX_ARTIFACT = 400
MAX_TEXT = 300


def run_evaluator(
    run: Callable[[str, str, Outcome], None],
    *,
    evaluator: str,
    metric: str,
    functions: Sequence[str] = (),
    classes: Sequence[str] = (),
    constants: Sequence[str] = (),
    enums: Sequence[str] = (),
    fields: Sequence[str] = (),
    tuples: Mapping[str, Sequence[str]] | None = None,
    coroutines: Sequence[str] = (),
    bases: Mapping[str, Sequence[str]] | None = None,
    program: str = "",
    tools: Sequence[str] = (),
    reads: str = "",
    looks: str = "",
    stub_text: bool = False,
    missing: str = "",
    goal: str = "higher",
    home: str = "",
) -> None:
    """Let `run`, which is given the evaluator's path and the stub's, fill the outcome, and publish that.

    `functions` are those of the program that it calls, `classes` those that it makes objects of, `constants` other
    names of it that it reads, `enums` the enumerations in files that both have, `fields` what it reads of objects
    without a call (`Class.name`), `tuples` classes of named tuples with their fields, `coroutines` what it awaits,
    `bases` the classes that others of them are made of.
    Where it starts the program instead, `program` is its file and `tools` are what it starts for that. Where it only
    reads, `reads` is the file among the outputs; where it calls and looks at the text as well, `looks` is the file,
    and `stub_text` says that it may find the stub's.
    `goal` says which scores are better, "higher" or "lower". `home` is a folder of the judge's that the evaluator has
    for its home. `missing` says what was not there for it when it was imported, beside whatever went wrong then.
    """
    if home:
        os.environ["HOME"] = str(Path(home).resolve())
    sys.excepthook = partial(_tell, evaluator)
    if reads:
        _run_on_file(run, evaluator, reads, Outcome(metric, goal))
        return
    with contextlib.ExitStack() as stack:
        candidate = stack.enter_context(relay(exact=True, classes=classes, enums=enums, tuples=tuples))
        stack.enter_context(_telling(missing))
        folder, beside = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        # Functions that the program makes are objects, too, and no name of its own.
        offered = [it for it in classes if it != FUNCTION]
        names = ["start", "wait"] if program else [*functions, *offered]
        door = Door(candidate, names, Seen(constants, enums, fields, tuples or {}, coroutines, classes, bases or {}))
        found = Outcome(metric, goal)
        entered = opened_programs(door, folder, beside, tools, program) if program else opened(door, folder)
        with entered as path:
            text = read(looks) if looks else ""
            watching = not (stub_text or program)
            read_by = stack.enter_context(watched(path, evaluator, lambda: door.asked)) if watching else None
            try:
                if looks:
                    stack.enter_context(shown(path, text))
                run(evaluator, path, found)
            except BaseException as error:  # it may exit, and may be cancelled
                _refuse_unsendable(door)
                _refuse_blind(read_by, looks, door, names)
                told = door.told_of(error)
                if told and any(error is it for it, _ in door.raised):
                    raise BadOutput(told) from error  # the candidate's own, which the evaluator let pass
                own = _told(error, evaluator)
                if not door.asked:
                    _refuse_missing(candidate.functions, names)
                    raise EvaluatorBroke(own) from error
                raise BadOutput("; ".join(filter(None, [told, own]))) from error
        _refuse_blind(read_by, looks, door, names)
        _refuse_silence(door, candidate.functions, names, found)
        found.publish(door)


@contextlib.contextmanager
def _telling(missing: str) -> Iterator[None]:
    try:
        yield
    except (BadOutput, EvaluatorBroke) as error:
        if not missing:
            raise
        kind = EvaluatorBroke if isinstance(error, EvaluatorBroke) else BadOutput
        raise kind(f"{error}; {missing}") from error


def _tell(evaluator: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One line to act on, where a traceback would show our own code alone."""
    if issubclass(kind, EvaluatorBroke):
        sys.stderr.write(f"{evaluator}: {error}\n")
    else:
        sys.__excepthook__(kind, error, trace)


@judging()  # type: ignore[untyped-decorator]  # the helper beside it has no types where this is checked
def _run_on_file(run: Callable[[str, str, Outcome], None], evaluator: str, reads: str, found: Outcome) -> None:
    """In data mode: the program is one of the outputs, and is not run by anybody."""
    path = outputs() / reads
    if not path.is_file():
        raise BadOutput(f"there is no {reads}")
    try:
        run(evaluator, str(path), found)
    except BaseException as error:
        raise BadOutput(_told(error, evaluator)) from error
    found.publish()


def _told(error: BaseException, evaluator: str) -> str:
    """One line on an error of the evaluator; the story from its own first line on goes to the log."""
    if isinstance(error, EvaluatorBroke):
        return str(error)
    folder = Path(evaluator).resolve().parent
    steps = [(it, Path(it.tb_frame.f_code.co_filename)) for it in _steps(error)]
    # Our own modules lie beside it.
    own = [(it, path) for it, path in steps if folder in path.parents and not path.name.startswith("blastdoor_")]
    traceback.print_exception(type(error), error, own[0][0] if own else error.__traceback__)
    words = " ".join(_short(error.args[0] if len(error.args) == 1 else str(error)).split())
    at = f" ({own[-1][1].relative_to(folder)}:{own[-1][0].tb_lineno})" if own else ""
    return f"the evaluator raised {type(error).__name__}{f': {words}' if words else ''}{at}"


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step:
        yield step
        step = step.tb_next


def loaded(name: str) -> ModuleType:
    """The evaluator as a module; its folder is where it imports from."""
    path = Path(name).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("evaluation_module", path)
    if spec is None or spec.loader is None:
        raise EvaluatorBroke(f"{name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluation_module"] = module
    spec.loader.exec_module(module)
    return module


def lend(name: str, **contents: Any) -> None:
    """A module of this dotted name with these contents, where the package is not installed: what an evaluator needs of
    its own system, and no more.
    """
    package, _, rest = name.partition(".")
    if package not in sys.modules and importlib.util.find_spec(package) is None:
        outer, inner = ModuleType(package), ModuleType(name)
        outer.__path__ = []
        vars(inner).update(contents)
        setattr(outer, rest, inner)
        sys.modules.update({package: outer, name: inner})


class Outcome:
    """What the evaluator returned, stage by stage: a later number replaces an earlier one of its name."""

    def __init__(self, metric: str, goal: str = "higher") -> None:
        self.metric = metric
        self.goal = goal
        self.numbers: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.notes: list[str] = []
        self.incorrect = ""
        self.tasks: dict[str, float] | None = None

    def take(self, metrics: Mapping[str, Any], artifacts: Any = None) -> dict[str, float]:
        """What an evaluator said; its own numbers are given back."""
        own = {str(name): _float(it) for name, it in metrics.items() if _is_number(it)}
        self.numbers.update(own)
        self.texts.update((str(name), _short(it)) for name, it in metrics.items() if isinstance(it, str))
        error = metrics.get("error")
        if error is True or (isinstance(error, (BaseException, list, tuple, dict)) and error):
            self.texts["error"] = _short(error)
        if isinstance(artifacts, Mapping):
            self.notes += [f"{name}: {_short(it, MAX_ARTIFACT)}" for name, it in artifacts.items()]
        return own

    def publish(self, door: Door | None = None) -> None:
        score = self.numbers.get(self.metric)
        error = self.texts.get("error", "")
        if self.incorrect:
            raise BadOutput(f"the evaluator says: {_short(self.incorrect)}")
        if score is None or not math.isfinite(score):
            told = "; ".join(filter(None, [error, *self.notes[-1:]])) or f"it gave: {', '.join(self.numbers) or 'none'}"
            raise BadOutput(f"the evaluator gave no {'' if score is None else 'finite '}{self.metric} ({told})")
        # What evaluators answer where they failed is 0, and where lower is better that may be the best score of all.
        if error and (score <= 0 or self.goal == "lower"):
            raise BadOutput(f"the evaluator gave {score:g} with the error: {error}")
        if wrong := [name for name, it in (self.tasks or {}).items() if not _is_finite(it)]:
            raise BadOutput(f"the evaluator gave no finite number for the task {_short(wrong[0])}")
        others = {name: value for name, value in self.numbers.items() if math.isfinite(value)}
        # The contract keeps this name for the score itself.
        others = {
            ("evaluator_score" if name == "score" and value != score else name): value for name, value in others.items()
        }
        failed = ""
        if door and door.failures:
            failed = f"{len(door.failures)} of {door.calls} calls failed, the first: {door.failures[0]}"
        said = (f"{name}: {text}" for name, text in self.texts.items())
        publish(score, metrics=others, tasks=self.tasks, notes="\n".join(filter(None, [failed, *self.notes, *said])))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(_float(value))


def _float(value: Any) -> float:
    """Infinite where it is too large for a float: a candidate may answer with any integer."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _short(value: Any, limit: int = MAX_TEXT) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:
        text = "an integer, or with one, that is too long to be told"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _refuse_unsendable(door: Door) -> None:
    if door.unsendable:
        why, told = door.unsendable
        raise (BadOutput if told else EvaluatorBroke)(
            f"an argument of the evaluator cannot be sent to the candidate: {why}; let it pass plain values"
        )


def _refuse_blind(reads: Reads | None, looks: str, door: Door, names: Sequence[str]) -> None:
    """A check of the stub's text says the same of every program. One that is made only after the candidate was asked
    may be made for its answers, or for what it lacks, and then it must not look like a judge that broke.
    """
    if reads and reads.found and not reads.ran:
        place, asked = reads.found[0]
        if not asked:
            _refuse_missing(door.candidate.functions, names)
        how = "let it read with open()" if looks else "import it again, leave the check to a guard"
        raise (BadOutput if asked else EvaluatorBroke)(
            f"{place} reads the program's text, and finds a stub's: {how}, or import it with --stub-text"
        )


def _refuse_missing(offered: Sequence[str], wanted: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in offered]:
        raise NoFunction(f"the program has no function {missing[0]}; it has: {', '.join(offered) or 'none'}")


def _refuse_silence(door: Door, offered: Sequence[str], wanted: Sequence[str], found: Outcome) -> None:
    """An evaluator that catches everything looks well whatever happened to it."""
    _refuse_unsendable(door)
    told = found.incorrect or found.texts.get("error", "") or "; ".join(found.notes)
    if not door.calls:
        _refuse_missing(offered, wanted)
        raise EvaluatorBroke(
            f"the evaluator neither called nor started the program{f' ({told})' if told else ''}; see whether its files"
            " and packages are there ([judge.image], import --place)"
        )
    if len(door.failures) == door.calls:
        raise BadOutput(f"every call failed, the first with: {door.failures[0]}")
