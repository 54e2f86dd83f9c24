"""What becomes of a task of OpenEvolve, and what is said of it. No code of the task is run."""

import ast
import json
import os
from pathlib import Path

import pytest
from click.testing import Result

from orchestrator.choices import IMPORTERS
from orchestrator.examine.baseline import TwoRuns
from orchestrator.importing import Imported, ImportRequest
from orchestrator.importing.openevolve import read
from orchestrator.importing.source import Source
from orchestrator.task import TaskError, load_task
from orchestrator.views.cli import cli
from tests.clicking import runner
from tests.orchestrator.importing.openevolve_tasks import CONFIG, EVALUATOR, PROGRAM, task_of, write


def imported(tmp_path: Path, *, metric: str | None = None, **changed: str | None) -> Imported:
    return read(ImportRequest(write(tmp_path / "there", **changed), "small", metric=metric))


def command(*words: str | Path) -> Result:
    return runner().invoke(cli, ["import", *map(str, words)])


def test_a_whole_task(tmp_path: Path) -> None:
    """Statement, limits, metric, region and attempts come from the files; the evaluator is copied byte for byte."""
    found = imported(tmp_path)
    task = task_of(tmp_path, found)
    assert found.files["judge/evaluator.py"] == EVALUATOR.encode()
    assert found.files["workspace/initial_program.py"] == PROGRAM.encode()
    assert task.statement.startswith("Let solve(x) be large.\nDo not cheat.\n\nA judge in another chamber calls ")
    assert (task.limits.wall, task.judge.limits.wall, task.judge.mode, task.budget.attempts) == (20, 20, "relay", 7)
    assert [(it.name, it.goal) for it in task.metrics] == [("combined_score", "higher")]
    assert task.editable == ("initial_program.py:EVOLVE-BLOCK",)
    assert "functions=['helper', 'solve']" not in found.files["judge/judge.py"].decode()
    assert "functions=['solve']" in found.files["judge/judge.py"].decode()
    assert task.certify.rule == "strict"


def test_nothing_is_run(tmp_path: Path) -> None:
    """Reading never imports or executes what is read, neither Python nor YAML."""
    mark = tmp_path / "ran"
    run = f"\nimport os\nos.system('touch {mark}')\n"
    imported(tmp_path, evaluator__py=EVALUATOR + run, initial_program__py=PROGRAM + run)
    with pytest.raises(TaskError, match="is not YAML"):
        imported(tmp_path, config__yaml=f"{CONFIG}trick: !!python/object/apply:os.system ['touch {mark}']\n")
    assert not mark.exists()


def test_packages_and_files_follow_the_imports(tmp_path: Path) -> None:
    """Each side gets the packages and files that it imports or names; versions come from the folder's own list."""
    evaluator = "import sklearn.metrics\nimport tools\nfrom openevolve.evaluation_result import EvaluationResult\n"
    program = 'import numpy as np\ntry:\n    import no_such_one\nexcept ImportError:\n    pass\nDATA = "rows.csv"\n'
    found = imported(
        tmp_path,
        evaluator__py=evaluator + EVALUATOR,
        initial_program__py=program + PROGRAM,
        tools__py='import yaml\nGOLD = "gold"\n',
        requirements__txt="numpy >= 1.26\nscikit_learn==1.5.2 # why\n-e .\n",
        **{"gold/a__txt": "1", "rows__csv": "2", "notes__md": "x"},
    )
    task = task_of(tmp_path, found)
    assert task.image.pip == ("numpy>=1.26",)
    assert task.judge.image.pip == ("pyyaml", "scikit-learn==1.5.2")
    judges = {"blastdoor.toml", "judge/judge.py", "judge/evaluator.py", "judge/tools.py", "judge/gold/a.txt"}
    assert set(found.files) == judges | {"workspace/initial_program.py", "workspace/rows.csv"}
    left = "\n".join(found.left_out)
    assert "no_such_one" in left
    assert "notes.md" in left


STAGES = (
    "\n\ndef evaluate_stage1(program_path):\n    return {}\n\n\ndef evaluate_stage2(program_path):\n    return {}\n"
)


@pytest.mark.parametrize(
    ("evaluator", "wall", "driver"),
    [
        ("  cascade_thresholds: [0.4, 1]\n", 40, "thresholds=[0.4, 1.0]"),
        ("", 40, "thresholds=[0.5, 0.75, 0.9]"),
        ("  cascade_evaluation: false\n", 20, "functions"),
    ],
)
def test_stages(tmp_path: Path, evaluator: str, wall: float, driver: str) -> None:
    """Stages keep their thresholds, and each has the whole time-out; where the config wants none, they are not run."""
    found = imported(tmp_path, evaluator__py=EVALUATOR + STAGES, config__yaml=CONFIG + evaluator)
    task, text = task_of(tmp_path, found), found.files["judge/judge.py"].decode()
    assert task.limits.wall == wall
    assert driver in text
    assert ("thresholds" in text) == ("thresholds" in driver)
    assert [it.name for it in task.metrics if it.before] == (["stages"] if "thresholds" in driver else [])


OBJECTS = """
from dataclasses import dataclass

LIMIT = 3
N: int = 4
OTHER = 5

@dataclass
class Tour:
    order: list
    length: float

class Base:
    def __init__(self, seed):
        self.seed = seed

class Solver(Base):
    def run(self, points):
        return Tour(points, 1.0)
    def is_solution(self, it):
        return True

class Unused:
    def run(self, points): ...

class Model:
    def __call__(self, x):
        return x

def build(seed):
    return make(Solver, seed)

def make(kind, seed):
    return kind(seed)

def closed(n):
    def fitted(x):
        return x
    return fitted

def model(n):
    return Model()

def sort(n):
    return sorted([n], key=lambda x: x)[0]

best = build
"""
# What an evaluator asks of that program, and what its judge's driver is told.
USES = {
    "program.Solver(1).is_solution(program.Solver(1))": "functions=[],\n        classes=['Solver'],",
    "measured(program.build(3))": "functions=['build'],\n        classes=['Tour', 'Base', 'Solver'],"
    "\n        fields=['Tour.length', 'Base.seed', 'Solver.seed'],\n        bases={'Solver': ['Base']},",
    "program.closed(3)(20)": "functions=['closed'],\n        classes=['function'],",
    "program.model(3)(20)": "functions=['model'],\n        classes=['Model'],",
    "program.sort(3)": "functions=['sort'],\n    )",
    "program.best(3)": "functions=['best'],",
    "program.sort(program.LIMIT + getattr(program, 'N'))": "constants=['LIMIT', 'N'],",
}


@pytest.mark.parametrize("use", USES)
def test_what_the_driver_is_told(tmp_path: Path, use: str) -> None:
    """Functions, classes whose objects are used, what they are made of and what is read of them, what can be called
    itself, other names of a function, and constants but those that the evaluator has itself.
    """
    evaluator = EVALUATOR.replace("program.solve(20)", use) + "\nOTHER = 7\n"
    evaluator += "def measured(it):\n    return it.run([1]).length + it.seed\n" * ("measured" in use)
    found = imported(tmp_path, initial_program__py=OBJECTS, evaluator__py=evaluator)
    assert USES[use] in found.files["judge/judge.py"].decode()
    findings = "\n".join(found.findings)
    assert ("asks the program itself with is_solution: it can say yes to all" in findings) == ("is_solution" in use)
    assert ("that the program gives stay with the candidate" in findings) == ("classes=" in USES[use])


@pytest.mark.parametrize(
    "returned",
    [
        "dict(combined_score=program.solve(20), note='all')",
        "vars(Report(program.solve(20)))\n\n@dataclass\nclass Report:\n    combined_score: float\n    worst: float\n",
    ],
)
def test_the_metric_is_read_wherever_it_is_named(tmp_path: Path, returned: str) -> None:
    """In a call of dict, and in a dataclass."""
    evaluator = f"def evaluate(program_path):\n    program = load(program_path)\n    return {returned}\n"
    found = imported(tmp_path, evaluator__py=evaluator)
    assert "metric='combined_score'" in found.files["judge/judge.py"].decode()


def test_another_metric_is_said(tmp_path: Path) -> None:
    """Without combined_score, the metric that was chosen is told with the reason; several without a clear one are not
    averaged but refused.
    """
    found = imported(tmp_path, evaluator__py=EVALUATOR.replace("combined_score", "accuracy"))
    assert any(
        "the metric is accuracy, higher is better, since there is no combined_score" in it for it in found.mapped
    )
    unclear = EVALUATOR.replace("combined_score", "width")
    with pytest.raises(TaskError, match=r"returns no combined_score; choose one of what it returns \(width, calls\)"):
        imported(tmp_path, evaluator__py=unclear)
    assert task_of(tmp_path, imported(tmp_path, metric="width", evaluator__py=unclear)).metrics[0].name == "width"


FINDINGS = {
    "looks at the program's text": "    len(open(program_path).read())\n",
    "looks at a clock": "    import time; time.perf_counter()\n",
    "runs on the way": "    import datetime; datetime.datetime.now()\n",
    "draws with a fixed seed": "    import random; random.seed(3)\n",
    "looks for files outside": "    from pathlib import Path; Path.home()\n",
    "starts gcc": "    import subprocess; subprocess.run(['gcc', '--version'])\n",
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_findings(tmp_path: Path, finding: str) -> None:
    """What a stub or a chamber changes for an evaluator is told, with the line where it stands."""
    start = "def evaluate(program_path):\n"
    found = imported(tmp_path, evaluator__py=EVALUATOR.replace(start, start + FINDINGS[finding]))
    told = [line for line in found.findings if finding in line]
    assert len(told) == 1
    assert told[0].startswith("evaluator.py")
    assert not [line for line in imported(tmp_path, evaluator__py=EVALUATOR).findings if finding in line]


@pytest.mark.parametrize("name", ["a\nb.csv", "a\x1b[2Jb.csv", "a\u202eb.csv", "in\ner/b.csv"])
def test_names_with_characters_that_nobody_sees(tmp_path: Path, name: str) -> None:
    """A name that could begin a line of its own where it is told is refused; one that is no text is left out."""
    source = write(tmp_path / "there")
    (source / os.fsdecode(b"\xff.csv")).write_text("1")
    assert Source.of(source).names == ("config.yaml", "evaluator.py", "initial_program.py")
    with pytest.raises(TaskError, match="has a character that nobody sees; rename the file"):
        Source.of(write(source, **{name: "1"}))


def test_a_name_stays_a_name_in_the_driver(tmp_path: Path) -> None:
    """Quotes and rare characters in the evaluator's name reach the driver's call and end no text of the driver."""
    name = "\"\"\"''' + exit() # \U0001f6aa.py"
    source = write(tmp_path / "there", evaluator__py=None)
    (source / name).write_text(EVALUATOR)
    found = read(ImportRequest(source, "small", evaluator=name))
    tree = ast.parse(found.files["judge/judge.py"])
    calls = [it for it in ast.walk(tree) if isinstance(it, ast.Call)]
    assert len(calls) == 1
    assert {it.arg: ast.literal_eval(it.value) for it in calls[0].keywords}["evaluator"] == name


def test_a_random_program_is_noisy(tmp_path: Path) -> None:
    """Where scores differ from run to run, repeats decide."""
    found = imported(tmp_path, initial_program__py="import random\n" + PROGRAM.replace("+ 1", "+ random.random()"))
    assert task_of(tmp_path, found).certify.rule == "noisy"


NO_CALL = "def evaluate(p):\n    return {'score': 1.0}\n"
DEEP = "a: " + "[" * 5000 + "]" * 5000
ODD = "is not YAML that can be read; mend it"
LONG = "config.yaml: has a value of more than 1,000 characters that is no text"
ODD_VALUES = [
    ("a: !!bool foo", ODD),
    ("a: !!timestamp foo", ODD),
    ('a: !!int ""', ODD),
    ('a: !!float ""', ODD),
    ("a: 2020-13-13", ODD),
    ("a: !<%0Aa> b", r"could not determine a constructor for the tag '\\na'"),
    ("a: 1" + ":1" * 1000, LONG),
    ("? 0x" + "f" * 5000 + "\n: 1", LONG),
    ("a: !!int '" + "1" * 1001 + "'", LONG),
    ("a: ! 1" + ":1" * 1000, LONG),
    ("evaluator: {cascade_thresholds: [0x" + "f" * 400 + "]}", "each must be a finite number"),
    ("evaluator: {cascade_thresholds: [.inf]}", "each must be a finite number"),
    ("evaluator: {cascade_thresholds: [0.5, .nan]}", "each must be a finite number"),
]


@pytest.mark.parametrize(("config", "why"), ODD_VALUES)
def test_odd_values_of_a_config(tmp_path: Path, config: str, why: str) -> None:
    """Whatever the YAML library makes of a value, what a person gets is one line."""
    with pytest.raises(TaskError, match=why) as caught:
        imported(tmp_path, evaluator__py=EVALUATOR + STAGES, config__yaml=config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a " * 1000 + "b", "|\n    " + "1" * 2000, '"' + "1" * 2000 + '"'])
def test_long_texts_of_a_config(tmp_path: Path, text: str) -> None:
    """A text may be long, in whatever way it is written, and a large number may stand where nobody looks."""
    found = imported(tmp_path, config__yaml=f"prompt:\n  system_message: {text}\n? 0x{'f' * 900}\n: 1\n")
    assert len(task_of(tmp_path, found).statement) > 2000


REFUSED: dict[str, dict[str, str | None]] = {
    "has no evaluator.py; name the evaluator with --evaluator": {"evaluator__py": None},
    "has no initial_program.* or init_program.*; name the program": {"initial_program__py": None},
    "has two programs, initial_program.py and initial_program.rs": {"initial_program__rs": "fn main() {}"},
    "evaluator.py: has a syntax error": {"evaluator__py": "def evaluate(:\n"},
    "initial_program.py: has a syntax error": {"initial_program__py": "def solve(:\n"},
    "initial_program.py: is not UTF-8": {"initial_program__py": "\udcff"},
    "imports strange_one, and no package is known for it": {"evaluator__py": "import strange_one\n" + EVALUATOR},
    "imports openevolve.api, and only EvaluationResult": {"evaluator__py": "import openevolve.api\n" + EVALUATOR},
    "defines no evaluate(program_path)": {"evaluator__py": EVALUATOR.replace("def evaluate", "def rate")},
    "names none of the functions of initial_program.py (helper, solve)": {"evaluator__py": NO_CALL},
    "starts julia for initial_program.jl, and no Debian package is known": {
        "initial_program__py": None,
        "initial_program__jl": "1 + 1",
        "evaluator__py": "import subprocess\ndef evaluate(path):\n    subprocess.run(['julia', path])\n",
    },
    "cannot be cut at its marks": {"initial_program__py": PROGRAM.replace("# EVOLVE-BLOCK-END", "")},
    "config.yaml: has an alias": {"config__yaml": "a: &x [1]\nb: [*x, *x]\n"},
    "config.yaml:2: is not YAML": {"config__yaml": "a: [1\n"},
    "config.yaml: is no table": {"config__yaml": "- 1\n"},
    "config.yaml: is nested more than 32 deep": {"config__yaml": DEEP},
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_bad_input(tmp_path: Path, why: str) -> None:
    """One line that says what to do, exit code 2, and nothing is left behind."""
    changed = dict(REFUSED[why])
    source = write(tmp_path / "there", **{name: text for name, text in changed.items() if text != "\udcff"})
    if "\udcff" in changed.values():
        (source / "initial_program.py").write_bytes(b"\xff\n")
    (tmp_path / "at").mkdir()
    ran = command("openevolve", source, tmp_path / "at" / "here")
    assert (ran.exit_code, why in ran.stderr) == (2, True), ran.stderr
    assert not list((tmp_path / "at").iterdir())


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells what it mapped, the tier and the next commands; without FOLDER the task has the source's name."""
    source = write(tmp_path / "there")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    ran = command("openevolve", source)
    assert ran.exit_code == 0, ran.stderr
    assert "there is a task of the tier relay" in ran.stdout
    assert "blastdoor check there" in ran.stdout
    assert load_task(tmp_path / "cwd" / "there").name == "there"
    again = command("openevolve", source)
    assert (again.exit_code, "exists and is not an empty folder" in again.stderr) == (2, True)
    told = json.loads(command("--json", "openevolve", source, tmp_path / "cwd" / "other").stdout)
    assert (told["tier"], told["findings"]) == ("relay", [])


def test_words_of_the_command(tmp_path: Path) -> None:
    """A format that nobody brings, a package in another form and a source that is no folder are refused."""
    source, here = write(tmp_path / "there"), tmp_path / "here"
    for words, why in {
        ("openevolv", source, here): 'did you mean "openevolve"?',
        ("openevolve", tmp_path / "nowhere", here): "is no folder",
        ("openevolve", source, here, "--package", "x"): "write it as IMPORT=NAME",
        ("openevolve", source, here, "--program", "gone.py"): "gone.py: is not there",
    }.items():
        ran = command(*words)
        assert (ran.exit_code, why in ran.stderr) == (2, True), ran.stderr
    write(source, evaluator__py="import strange_one\n" + EVALUATOR)
    ran = command("openevolve", source, here, "--package", "strange_one=strange-one")
    assert ran.exit_code == 0, ran.stderr
    assert load_task(here).judge.image.pip == ("strange-one",)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in the folder could lead to anything of this machine; it is as if it were not there."""
    source = write(tmp_path / "there", evaluator__py=None)
    (tmp_path / "secret").write_text(EVALUATOR)
    (source / "evaluator.py").symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError, match=r"has no evaluator.py"):
        read(ImportRequest(source, "small"))


def test_an_importer_of_another_package(tmp_path: Path) -> None:
    """What another package reads is written like ours; what it does wrong is told as its own."""
    source = write(tmp_path / "there")

    def broken(_: ImportRequest) -> Imported:
        raise KeyError("statement")

    for number, (importer, why) in enumerate(
        [(read, ""), (broken, 'the importer "mine" failed (KeyError'), (lambda _: {}, "gave back no Imported")]
    ):
        with IMPORTERS.lend("mine", importer):
            ran = command("mine", source, tmp_path / f"here{number}")
        assert (ran.exit_code, why in ran.stderr) == (2 if why else 0, True), ran.stderr
    assert load_task(tmp_path / "here0").name == "here0"
    assert not (tmp_path / "here1").exists()


STARTS = """
import subprocess, sys

def evaluate(path):
    command = [{word}, path]
    subprocess.run(command)
    return {{"combined_score": 1}}
"""
READS = "def evaluate(path):\n    return {'combined_score': len(open(path).read())}\n"


def test_a_program_that_is_started(tmp_path: Path) -> None:
    """Its toolchain is baked into the candidate's image, and the judge has stand-ins for it."""
    evaluator = STARTS.format(word="'Rscript'") + "CODE = 'x <- jsonlite::toJSON(1)'\n"
    program = "library(MASS)\nstats::sd(1)\n"
    found = imported(tmp_path, initial_program__py=None, initial_program__r=program, evaluator__py=evaluator)
    task = task_of(tmp_path, found)
    assert task.image.apt == ("r-base-core", "r-cran-mass", "r-cran-jsonlite")
    assert task.judge.mode == "relay"
    assert task.trial.command == ("python3", "-m", "blastdoor_programs", "initial_program.r")
    assert "program='initial_program.r'" in found.files["judge/judge.py"].decode()
    assert "tools=['Rscript']" in found.files["judge/judge.py"].decode()
    assert "starts initial_program.r with Rscript" in task.statement


def test_a_python_program_that_is_started(tmp_path: Path) -> None:
    """One whose functions nobody calls is started as a script. No name keeps a pickle out of what it leaves, so the
    import says where the tier does not hold.
    """
    started = STARTS.format(word="sys.executable")
    found = imported(tmp_path, evaluator__py=started)
    assert task_of(tmp_path, found).trial.command == ("python3", "-m", "blastdoor_programs", "initial_program.py")
    assert "tools=[]" in found.files["judge/judge.py"].decode()
    assert not any("unpickles" in line for line in found.findings)
    found = imported(tmp_path, evaluator__py=f"import pickle\n{started}A = pickle.load(open('x', 'rb'))\n")
    assert any("unpickles" in line and "the tier relay does not hold" in line for line in found.findings)


def test_a_file_that_is_only_read(tmp_path: Path) -> None:
    """It is harvested as bytes, and judged after its chamber is gone."""
    found = imported(tmp_path, initial_program__py=None, initial_program__txt="Be brief.", evaluator__py=READS)
    task = task_of(tmp_path, found)
    assert task.judge.mode == "data"
    assert "reads='initial_program.txt'" in found.files["judge/judge.py"].decode()


@pytest.mark.parametrize(
    ("runs", "draws", "rule", "line"),
    [
        (TwoRuns((1.5, 1.5)), False, "strict", 'certify.rule is "strict": two runs of the baseline gave 1.5 and 1.5'),
        (TwoRuns((1.5, 1.5)), True, "noisy", 'certify.rule stays "noisy", by reading, though two runs'),
        (TwoRuns((1.5, 1.25)), False, "noisy", 'certify.rule is "noisy": two runs of the baseline gave 1.5 and 1.25'),
        (TwoRuns((1.5, 1.25)), True, "noisy", 'certify.rule is "noisy": two runs of the baseline gave 1.5 and 1.25'),
        (TwoRuns(why="no engine"), True, "noisy", "certify.rule is by reading: no engine"),
    ],
)
def test_two_runs_may_add_the_noise_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: TwoRuns, draws: bool, rule: str, line: str
) -> None:
    """They never take it away: an evaluator that draws may give the same coarse score twice."""

    async def scored(_: object) -> TwoRuns:
        return runs

    monkeypatch.setattr("orchestrator.views.running.import_task.score_twice", scored)
    source = write(tmp_path / "there", evaluator__py="import random\nrandom.random()\n" * draws + EVALUATOR)
    ran = command("openevolve", "--measure", source, tmp_path / "here")
    assert ran.exit_code == 0, ran.output
    assert line in ran.output
    assert ran.output.count("certify.rule") == 1
    assert load_task(tmp_path / "here").certify.rule == rule


def test_measuring_spends_no_money_untold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no budget, so what is rented is refused, and nothing is written."""
    monkeypatch.setenv("BLASTDOOR_BACKEND", "modal")
    source = write(tmp_path / "there")
    ran = command("openevolve", "--measure", source, tmp_path / "here")
    assert (ran.exit_code, "import --measure has no budget" in ran.stderr) == (2, True), ran.output
    assert not (tmp_path / "here").exists()
    assert command("openevolve", source, tmp_path / "here").exit_code == 0
