"""What tasks of other systems have in common that consist of a program and an evaluator which calls it."""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.change import shown
from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.called import CalledTask, Way, driver_text, how_it_is_used
from orchestrator.importing.looking import looked_at, reads_files, runs_a_text
from orchestrator.importing.objects import FUNCTION, bases_of, classes_of, coroutines_of, fields_of, named_tuples
from orchestrator.importing.packages import Needs, needs_of, versions_of
from orchestrator.importing.placed import HOME, Placed, placed_of, refuse_overlaps
from orchestrator.importing.program import REGION, chosen, editable_entries, package_files, program_tree
from orchestrator.importing.source import Source
from orchestrator.importing.survey import (
    Survey,
    asks_itself,
    draws_at_random,
    enumerations,
    functions_handed_over,
    mentions,
    paths_of,
    survey,
)
from orchestrator.importing.tools import TOOLCHAINS, apt_of, starts_python, tools_of
from orchestrator.importing.unreached import unreached
from orchestrator.judge.unsafe import unsafe_loaders
from orchestrator.task import TaskError

_STATEMENT_CHARACTERS = 20_000
_SHOWN = 6
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Names:
    """How a system calls its files: patterns, the first that is there wins; `entries` are functions of the evaluator
    that get the program's path, the first of which it must have. None where it is a program with a command line.
    """

    evaluator: Sequence[str]
    program: Sequence[str]
    entries: Sequence[str]


@dataclass(frozen=True)
class Wanted:
    """What a system's own settings say of a task; `module` has the driver's `judge`, and `driver` what it is given."""

    origin: str
    module: str
    said: str
    metric: str
    wall_s: float
    memory_mib: int
    attempts: int
    driver: Mapping[str, object]
    goal: str = "higher"
    guard: "Guard | None" = None
    stages: bool = False


@dataclass(frozen=True)
class Guard:
    """A command that must pass for a candidate to be kept, and what it needs beside the candidate's files."""

    command: Sequence[str]
    needs: Needs


@dataclass(frozen=True)
class Found:
    """What was found in the folder, and what it means."""

    source: Source
    program: str
    evaluator: str
    functions: list[str]
    classes: list[str]
    methods: list[str]
    seen: Survey
    judge_needs: Needs
    program_needs: Needs
    why_noisy: str
    editable: Sequence[str]
    way: Way = Way.CALLED
    tools: Sequence[str] = ()
    constants: Sequence[str] = ()
    enums: Sequence[str] = ()
    fields: Sequence[str] = ()
    tuples: Mapping[str, Sequence[str]] | None = None
    coroutines: Sequence[str] = ()
    bases: Mapping[str, Sequence[str]] | None = None
    placed: Sequence[Placed] = ()
    looks: bool = False
    looked: str = ""

    @property
    def called(self) -> list[str]:
        return [*self.functions, *(it for it in self.classes if it != FUNCTION)]

    def imported(self, request: ImportRequest, wanted: Wanted, lines: "Lines") -> Imported:
        if wanted.metric in self.seen.timed and not self.why_noisy:
            why = f"{self.evaluator} looks at a clock, and what that says may be in {wanted.metric}"
            return replace(self, why_noisy=why).imported(request, wanted, lines)
        workspace = _copied(self.source, self.program_needs, self.evaluator)
        workspace |= wanted.guard.needs.files if wanted.guard else set()
        judge = _copied(self.source, self.judge_needs, self.program)
        driver = "judge.py" if "judge.py" not in judge else "run_evaluator.py"
        files = {"blastdoor.toml": self._task(request, wanted, driver).text().encode()}
        files |= {f"workspace/{name}": self.source.read(name) for name in sorted(workspace)}
        own = {name: self.source.read(name) for name in sorted(judge)}
        refuse_overlaps({**own, driver: b""}, self.placed)
        files |= {f"judge/{name}": data for it in self.placed for name, data in it.files().items()}
        files |= {f"judge/{name}": data for name, data in own.items()}
        given: dict[str, object] = {"functions": self.functions, "classes": self.classes or None}
        others = {
            name: getattr(self, name) for name in ("constants", "enums", "fields", "tuples", "coroutines", "bases")
        }
        given |= {name: it for name, it in others.items() if it}
        if self.way is Way.STARTED:
            given = {"program": self.program, "tools": list(self.tools)}
        elif self.way is Way.READ:
            given = {"reads": self.program}
        given |= {"looks": self.program} if self.looks else {}
        given |= {"stub_text": True} if request.stub_text and self.way is Way.CALLED else {}
        given |= {"missing": self._missing()} if self._missing() else {}
        given |= {"home": HOME} if any(it.at.startswith(f"{HOME}/") for it in self.placed) else {}
        files[f"judge/{driver}"] = driver_text(
            wanted.module, self.way, evaluator=self.evaluator, metric=wanted.metric, **given, **wanted.driver
        ).encode()
        taken = workspace.union(judge, lines.read)
        beside = [name for name in self.source.names if name not in taken]
        return Imported(
            files,
            (*self._mapped(), *lines.mapped, *self._mapped_last()),
            (*lines.left_out, *self._left_out(beside)),
            (*self._findings(), *lines.findings),
        )

    def _task(self, request: ImportRequest, wanted: Wanted, driver: str) -> CalledTask:
        versions = versions_of(self.source)
        names = self.called if self.way is Way.CALLED else self.tools
        said = wanted.said.strip()[:_STATEMENT_CHARACTERS] or f"Improve {self.program} of {request.name}."
        return CalledTask(
            origin=wanted.origin,
            name=request.name,
            statement=f"{said}\n\n{how_it_is_used(self.way, names, self.program, wanted.metric, wanted.goal)}",
            program=self.program,
            editable=self.editable,
            metric=wanted.metric,
            driver=driver,
            wall_s=wanted.wall_s,
            memory_mib=wanted.memory_mib,
            program_packages=_together(self.program_needs, wanted.guard).requirements(versions),
            judge_packages=self.judge_needs.requirements(versions),
            why_noisy=self.why_noisy,
            attempts=wanted.attempts,
            goal=wanted.goal,
            guard=wanted.guard.command if wanted.guard else (),
            stages=wanted.stages,
            way=self.way,
            program_apt=self._apt(),
            looks=self.looks,
        )

    def _apt(self) -> list[str]:
        return apt_of(self.tools, [self.source.text(self.evaluator), self.source.text(self.program)])

    def _missing(self) -> str:
        """What it wants from outside of its folder and did not get, so far as that can be told by reading."""
        if not (self.seen.outside and self.judge_needs.not_found):
            return ""
        return (
            f"{self.evaluator}:{self.seen.outside} looks outside of its folder, where nothing was put for"
            f" {self.judge_needs.not_found[0].partition(',')[0]}; import it with --place WHERE=FOLDER"
        )

    def _mapped(self) -> list[str]:
        marked = any(it.endswith(f":{REGION}") for it in self.editable)
        part = f"editable between its {REGION} marks" if marked else "all of it editable"
        others = len(package_files(self.source, self.program)) - 1
        package = f" with {others} other files of its package" if others else ""
        return [
            f"{self.program}{package} is the workspace, {part}",
            f"{self.evaluator} is the judge, unchanged; it {self._does()}",
        ]

    def _does(self) -> str:
        if self.way is Way.READ:
            return "reads the program, which is given to it as a file (tier data)"
        if self.way is Way.STARTED:
            return f"starts {', '.join(self.tools) or 'the program'}, which runs in the candidate's chamber"
        return f"calls {', '.join(self.called)}"

    def _mapped_last(self) -> list[str]:
        lines = [
            f"{it.where} is {it.source.folder}, {len(it.files())} files of it, beside the judge" for it in self.placed
        ]
        packages = [*sorted(self.judge_needs.packages | self.program_needs.packages), *self._apt()]
        lines += [f"packages by what is imported and started: {', '.join(packages)}"] if packages else []
        return [*lines, f'certify.rule is "noisy", since {self.why_noisy}'] if self.why_noisy else lines

    def _left_out(self, beside: Sequence[str]) -> list[str]:
        more = f" and {len(beside) - _SHOWN} more" if len(beside) > _SHOWN else ""
        lines = [f"files that neither side names: {', '.join(beside[:_SHOWN])}{more}"] if beside else []
        return lines + [f"the package of {it}" for it in (*self.judge_needs.not_found, *self.program_needs.not_found)]

    def _findings(self) -> list[str]:
        lines = [*self.seen.findings]
        if self.looked and self.looks:
            lines.append(
                f"{self.evaluator}:{self.looked} looks at the program's text: it finds the candidate's, beside the"
                " judge as data; its size on the disk is that of a stub"
            )
        elif self.looked:
            lines.append(
                f"{self.evaluator}:{self.looked} reads the program's text, and finds that of a stub: a check of the"
                " source says nothing here"
            )
        lines += [missing] if (missing := self._missing()) else []
        if graded := asks_itself([*self.functions, *self.methods]):
            lines.append(f"{self.evaluator} asks the program itself with {', '.join(graded)}: it can say yes to all")
        if handed := functions_handed_over(self.source.python(self.evaluator), self.called):
            lines.append(
                f"{self.evaluator}:{handed}, and no function can be sent to a candidate: no program gets a score"
                " unless the function is the program's own, or what it needs is sent as plain values"
            )
        if self.way is Way.CALLED:
            evaluator, program = self.source.python(self.evaluator), program_tree(self.source, self.program)
            lines += unreached(evaluator, program, (self.evaluator, self.program), self.called)
        if self.constants:
            lines.append(f"{', '.join(self.constants)} of the program: read once, when it is loaded")
        if self.classes:
            kinds = ["functions" if it == FUNCTION else f"objects of {it}" for it in self.classes]
            lines.append(
                f"{', '.join(kinds)} that the program gives stay with the candidate: all that they say is its word"
            )
        if self.way is Way.STARTED:
            lines.append(
                f"{self.evaluator} starts programs: each takes some hundredths of a second more than there, and what"
                " lies in its working folder, or is named to it, goes along and can be read by the candidate; what a"
                " program leaves replaces no file of the evaluator's"
            )
            lines += self._unpickled()
        others = [word for word in self.seen.starts if word != "python" and word not in self.tools]
        if others:
            lines.append(
                f"{self.evaluator} starts {', '.join(others)}: it must be in the judge's image ([judge.image])"
            )
        return lines

    def _unpickled(self) -> list[str]:
        """Files that a program leaves come back under names of its choice, and a pickle needs no name of its own."""
        python = {name: self.source.read(name) for name in sorted(self.judge_needs.files) if name.endswith(".py")}
        return [
            f"{it.path}:{it.line} {it.what}: of a file that the program left, that is the candidate's code beside the"
            " answers, and the tier relay does not hold"
            for it in unsafe_loaders(python)
            if "unpickles" in it.what or "executes" in it.what
        ][:3]


@dataclass(frozen=True)
class Lines:
    """What a system's own settings add to what is told; `read` are files that were read and are not copied."""

    mapped: Sequence[str] = ()
    left_out: Sequence[str] = ()
    findings: Sequence[str] = ()
    read: Sequence[str] = ()


def find(request: ImportRequest, names: Names) -> Found:
    """Raises TaskError where evaluator or program is missing, or they do not belong together."""
    source = Source.of(request.source)
    evaluator = chosen(source, request.evaluator, names.evaluator, "evaluator")
    program = chosen(source, _named_package(source, request.program), names.program, "program")
    tree = source.python(evaluator)
    seen = survey(tree, evaluator, names.entries)
    if names.entries and names.entries[0] not in seen.entries:
        raise TaskError(
            f"{source.folder / evaluator}: defines no {names.entries[0]}(program_path); name the evaluator's file"
        )
    placed = placed_of(request.placed)
    judge_needs = needs_of(source, evaluator, request.packages, placed, outside=bool(seen.outside))
    found = Found(
        source=source,
        program=program,
        evaluator=evaluator,
        functions=[],
        classes=[],
        methods=[],
        seen=seen,
        judge_needs=judge_needs,
        program_needs=Needs(files={program}),
        why_noisy=seen.why_noisy,
        editable=editable_entries(source, program),
        placed=placed,
    )
    called = _as_called(found, request) if program.endswith(".py") else None
    return _looking(called, names, request) if called else _as_started(found, request)


def _looking(found: Found, names: Names, request: ImportRequest) -> Found:
    """With the program's text where the evaluator may look at it. Raises TaskError where it does, and could run it."""
    tree = found.source.python(found.evaluator)
    found = replace(found, looked=looked_at(tree, paths_of(tree, names.entries)))
    if found.way is not Way.CALLED or request.stub_text:
        return found
    why = runs_a_text(trees := _trees(found))
    if found.program.endswith("/__init__.py"):
        why = f"{found.program} is one file of several"
    if not why:
        return replace(found, looks=bool(found.looked) or reads_files([*trees.values()]))
    if not found.looked:
        return found
    raise TaskError(
        f"{found.source.folder / found.evaluator}:{found.looked}: looks at the program's text, and would find a stub's,"
        f" which no change of the program alters ({why}: what can run a text is not given the candidate's); import it"
        " all the same with --stub-text, or leave the check to a guard"
    )


def _trees(found: Found) -> dict[str, ast.Module]:
    """All Python of the judge's side, what is placed beside it, too."""
    sides = [(found.source, "", found.judge_needs.files)]
    sides += [(it.source, f"{it.where}/", it.reached) for it in found.placed]
    return {f"{at}{name}": of.python(name) for of, at, names in sides for name in sorted(names) if name[-3:] == ".py"}


def _as_called(found: Found, request: ImportRequest) -> Found | None:
    """None where the evaluator names no function of the program, and starts it instead."""
    program = program_tree(found.source, found.program)
    needs = needs_of(found.source, found.program, request.packages)
    draws = f"{found.program} draws random numbers" if draws_at_random(program) else ""
    found = replace(found, program_needs=needs, why_noisy=found.why_noisy or draws)
    functions, classes, methods = _called(program, found.seen)
    if functions or classes:
        fields = fields_of(program, classes, found.seen)
        constants = [name for name in _constants(program, found.seen) if name in found.seen.attributes]
        shared = sorted(needs.files & found.judge_needs.files - {found.program, found.evaluator})
        enums = [
            f"{_module(file)}.{name}"
            for file in shared
            if file.endswith(".py")
            for name in enumerations(found.source.python(file))
        ]
        found = replace(found, functions=functions, classes=classes, methods=methods, fields=fields)
        beside = [found.source.python(file) for file in sorted(needs.files - {found.program}) if file.endswith(".py")]
        return replace(
            found,
            constants=constants,
            enums=enums,
            tuples=named_tuples([program, *beside], found.seen),
            coroutines=coroutines_of(program, functions, classes),
            bases=bases_of(program, classes),
        )
    if "python" in found.seen.starts or starts_python(found.source.python(found.evaluator)):
        return replace(found, way=Way.STARTED)
    own = [it.name for it in program.body if isinstance(it, _Definition)]
    raise TaskError(
        f"{found.evaluator} names none of the functions of {found.program} ({', '.join(own[:_SHOWN]) or 'it has none'})"
        " and does not start it; a judge that only reads Python cannot be told from one that runs it: give it a"
        " function to call"
    )


def _as_started(found: Found, request: ImportRequest) -> Found:
    """Raises TaskError for a tool that nobody knows a package for."""
    del request
    trees = [found.source.python(name) for name in sorted(found.judge_needs.files) if name.endswith(".py")]
    tools = tools_of(trees, found.seen.starts)
    known = [it for it in tools if it in TOOLCHAINS]
    if not tools and "python" not in found.seen.starts:
        return replace(found, way=Way.READ)
    if not known:
        raise TaskError(
            f"{found.source.folder / found.evaluator}: starts {shown(tools[0] if tools else 'python')} for"
            f" {found.program}, and no Debian package is known for it; write the task by hand, with an image.base that"
            " has it"
        )
    return replace(found, way=Way.STARTED, tools=known)


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _named_package(source: Source, named: str | None) -> str | None:
    """A folder stands for the package in it."""
    inner = f"{named.rstrip('/')}/__init__.py" if named else ""
    return inner if inner in source.name_set else named


def _called(tree: ast.Module, seen: Survey) -> tuple[list[str], list[str], list[str]]:
    """The functions, the classes and the methods of the program that the evaluator names."""
    own = [it for it in tree.body if isinstance(it, _Definition) and it.name[0] != "_"]
    defined = [it.name for it in own if not isinstance(it, ast.ClassDef)]
    functions = [name for name in [*defined, *_other_names(tree, {*defined})] if name in seen.words]
    classes = classes_of(tree, functions, seen)
    methods = [
        it.name
        for of in own
        if of.name in classes
        for it in ast.walk(of)
        if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef) and it.name in seen.words
    ]
    return functions, classes, methods


def _constants(tree: ast.Module, seen: Survey) -> list[str]:
    """Names that the program gives a value, and that look like no function of its own."""
    found = {
        target.id: None
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and not isinstance(node.value, ast.Lambda)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id[0] != "_"
    }
    defined = {it.name for it in tree.body if isinstance(it, _Definition)} | {*named_tuples([tree], seen)}
    defined |= {*_other_names(tree, defined)}
    return [name for name in found if name not in defined]


def _other_names(tree: ast.Module, defined: Collection[str]) -> list[str]:
    """Of its functions: `solve = best` and `solve = lambda x: x`."""
    named = [it for it in tree.body if isinstance(it, ast.Assign)]
    named = [it for it in named if isinstance(it.value, ast.Lambda) or getattr(it.value, "id", None) in defined]
    return [to.id for it in named for to in it.targets if isinstance(to, ast.Name) and to.id[0] != "_"]


def _together(needs: Needs, guard: Guard | None) -> Needs:
    return Needs(packages=needs.packages | (guard.needs.packages if guard else set()))


def _copied(source: Source, needs: Needs, other: str) -> set[str]:
    """What one side gets: what it imports, and the files and folders that its texts name."""
    meant: set[str] = set()
    for name in needs.files:
        if name.endswith(".py"):
            meant |= mentions(source.python(name))
    named = {name for name in source.names if {name.rpartition("/")[2], name.partition("/")[0]} & meant}
    return needs.files | {name for name in named if name != other}
