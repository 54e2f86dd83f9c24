"""The task file is read strictly, and whatever is wrong is told in one line with the right number."""

import os
from pathlib import Path

import pytest

from orchestrator.choices import PROPOSERS
from orchestrator.domain.tier import Tier
from orchestrator.registry import listed
from orchestrator.task import Task, TaskError, load_task, reading, write_template
from orchestrator.task.errors import Key
from orchestrator.task.lines import key_lines
from orchestrator.wiring.reading import campaign_folder
from tests.orchestrator.task.conftest import NEXT, Make


def told(folder: Path) -> str:
    """The error of loading, without the path before the file's name."""
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{folder}/", "")


def test_small_task(make: Make) -> None:
    """What is not said has its default; a command in one line is for the shell."""
    task = load_task(make())
    assert isinstance(task, Task)
    assert task.workspace == "workspace"
    assert task.trial.command == ("python3", "solve.py")
    assert task.judge.command == ("sh", "-c", "python3 judge.py")
    assert (task.judge.folder, task.judge.gold, task.judge.mode) == ("judge", None, "data")
    assert [(metric.name, metric.goal) for metric in task.metrics] == [("score", "higher")]
    assert task.warnings == ()


EVERYTHING = """
build = "make"
outputs = ["*.json"]
env = {THREADS = "4"}
workdir = "lib"
loopback = true
steps = 1000

[inputs]
digits = "data/points.csv"

[limits]
wall = "1m30s"
memory = "1GiB"
gpu = "A100:2"

[image]
base = "blastdoor-trial:latest"
pip = ["scikit-learn==1.5.2"]
apt = ["gcc"]
run = ["echo hello > /etc/greeting"]

[[metrics]]
name = "score"
goal = "lower"
weight = 2
binds = ["image", "cpu"]
target = 0.1
ceiling = 0.05
[[metrics]]
name = "seconds"
weight = 0.5

[ranking]
rule = "weighted"

[parameters]
file = "params.json"
[parameters.space]
rows = {type = "int", low = 1, high = 10, step = 3}
rate = {type = "float", low = 1e-4, high = 1, log = true}
kind = {type = "choice", values = ["hex", 1, 1.0, true]}
flag = {type = "bool"}

[tune]
trials = 3
limits = {wall = "5s"}
env = {QUICK = "1"}
judge = ["python3", "judge.py", "--dev"]

[[guards]]
name = "tests"
command = ["python3", "-m", "unittest"]
in = "judge"
limits = {wall = "30s"}
[[guards]]
name = "more"
command = "true"

[budget]
attempts = 40
usd = "$5"
seconds = "2h"
rate = "30/min"

[stall]
propose = "5m"

[search]
proposer = "grid"
width = 4
saturates = ["cpu", "gpu"]
control = "random"
"""


def test_every_section(make: Make) -> None:
    """Every value arrives, in the unit that the program counts in. Tune and guards keep the limits of the trial, a
    guard beside the judge those of the judge.
    """
    judge = '\n[judge]\ncommand = "j"\nlimits = {memory = "2GiB"}\nimage = {pip = ["numpy==2.1.*"]}\n'
    task = load_task(make(replaced=('\n[judge]\ncommand = "python3 judge.py"\n', EVERYTHING + judge)))
    assert task.trial.build == ("sh", "-c", "make")
    assert (task.trial.outputs, task.trial.env, task.trial.workdir) == (("*.json",), {"THREADS": "4"}, "lib")
    assert (task.limits.wall, task.limits.memory, str(task.limits.gpu)) == (90.0, 1 << 30, "A100:2")
    assert task.judge.image.pip == ("numpy==2.1.*",)
    assert [metric.weight for metric in task.metrics] == [2.0, 0.5]
    assert task.parameters
    assert list(task.parameters.space) == ["flag", "kind", "rate", "rows"]
    assert (task.budget.usd, task.budget.seconds, task.budget.rate) == (5.0, 7200.0, 0.5)
    assert (task.stall.propose, task.stall.after) == (300.0, 3)
    assert (task.search.proposer, task.search.control, task.search.saturates) == ("grid", "random", ("cpu", "gpu"))
    assert task.tune
    assert task.tune.limits
    assert (task.tune.limits.wall, task.tune.limits.memory) == (5.0, 1 << 30)
    guards = [(guard.place, guard.limits.wall, guard.limits.memory) for guard in task.guards]
    assert guards == [("judge", 30.0, 2 << 30), ("chamber", 90.0, 1 << 30)]
    assert Task.from_canonical(task.canonical()) == task


BAD_KEYS = [
    ("[limits]\nwal = 3", 1, "limits.wal: unknown key; did you mean wall?"),
    ("[limit]\nwall = 3", 0, "limit: unknown key; did you mean limits?"),
    ("[[metrics]]\n[[metrics]]\nname = 'a'\ngaol = 'up'", 3, "metrics[1].gaol: unknown key; did you mean goal?"),
    ("workdir = '.'\n", 0, "judge.workdir: unknown key; known are command, folder, gold, mode, "
     "looks, env, limits, image"),
    ("[judge.image]\npips = []", 1, "judge.image.pips: unknown key; did you mean pip?"),
    ("[limits]\ngpu = {kind = 'a', cuont = 1}", 1, "limits.gpu.cuont: unknown key; did you mean count?"),
    ("[parameters]\nfile = 'params.json'\n[parameters.space]\nlow = {type = 'int', low = 1, hihg = 2}", 3,
     "parameters.space.low.hihg: unknown key; did you mean high?"),
    ("[parameters]\nfile = 'params.json'\n[parameters.space]\na = {type = 'bool', low = 1}", 3,
     "parameters.space.a.low: unknown key; known are when, type"),
    ("[[guards]]\nname = 'a'\ncommand = 'b'\nplace = 'judge'", 3, "guards[0].place: unknown key; known are name, "
     "command, in, limits"),
    ("warnings = []", 0, "judge.warnings: unknown key; known are command, folder, gold, mode, looks, "
     "env, limits, image"),
    ('[search]\n"wi\\u001b[2Jdth" = 1', 1, 'search."wi\\x1b[2Jdth": unknown key; did you mean width?'),
]  # fmt: skip


@pytest.mark.parametrize(("more", "line", "message"), BAD_KEYS)
def test_unknown_keys(make: Make, more: str, line: int, message: str) -> None:
    """A key that nobody knows is never ignored: its line, its name and the nearest right one are told."""
    assert told(make(more)) == f"blastdoor.toml:{NEXT + line}: {message}"


BAD_VALUES = [
    ("[limits]\nwall = 'long'", 1, "limits.wall: 'long' is not a duration; write it like 90s or 1h30m"),
    ("[limits]\nwall = '0s'", 1, "limits.wall: must be more than 0s, not 0s"),
    ("[limits]\nwall = inf", 1, "limits.wall: must be a finite number, not inf"),
    ("[limits]\nwall = '30d'", 1, "limits.wall: must be at most 7d, not 30d"),
    ("[limits]\nmemory = '1KiB'", 1, "limits.memory: must be at least 16MiB, not 1KiB"),
    ("[limits]\nmemory = 1.5", 1, 'limits.memory: must be a size like "512MiB", not 1.5'),
    ("[limits]\nwall = true", 1, 'limits.wall: must be a duration like "90s", not true'),
    ("[limits]\npids = '12'", 1, 'limits.pids: must be a whole number, not "12"'),
    ("[limits]\npids = 1_000_000", 1, "limits.pids: must be at most 100,000, not 1,000,000"),
    ("[limits]\ncpus = nan", 1, "limits.cpus: must be a finite number, not nan"),
    ("[limits]\ngpu = 'A100:x'", 1, "limits.gpu: 'A100:x' is not a GPU request; write it like A100:8"),
    ("limits = 5", 0, "judge.limits: must be a table, not 5"),
    ("mode = 'rely'", 0, f'judge.mode: must be {listed([*Tier])}, not "rely"'),
    ("mode = 'dat'", 0, f'judge.mode: must be {listed([*Tier])}, not "dat"'),
    ("env = {BLASTDOOR_MODE = 'x'}", 0, "judge.env.BLASTDOOR_MODE: names that start with BLASTDOOR_ or EVO_ are set by "
     "the chamber; choose another"),
    ("[judge.env]\nA = '1'\nEVO_RESULT_PATH = 'x'", 2, "judge.env.EVO_RESULT_PATH: names that start with BLASTDOOR_ or "
     "EVO_ are set by the chamber; choose another"),
    ("[tune]\nenv = {evo_x = '1'}", 1, "tune.env.evo_x: names that start with BLASTDOOR_ or EVO_ are set by the "
     "chamber; choose another"),
    ("env = {A = 1}", 0, "judge.env.A: must be text in quotes, not 1"),
    ("env = {'A B' = '1'}", 0, 'judge.env."A B": "A B" is not a variable; use letters, digits and _'),
    ("[[metrics]]\ngoal = 'up'", 1, 'metrics[0].goal: must be "higher" or "lower", not "up"'),
    ("[[metrics]]\ntarget = 3\nceiling = 2", 0, "metrics[0]: the target 3 is beyond the ceiling 2; change one of them"),
    ("[[metrics]]\ngoal = 'lower'\ntarget = 1\nceiling = 2.5", 0,
     "metrics[0]: the target 1 is beyond the ceiling 2.5; change one of them"),
    ("[[metrics]]\ntarget = inf", 1, "metrics[0].target: must be a finite number, not inf"),
    ("[[metrics]]\nweight = 0", 1, "metrics[0].weight: must be more than 0, not 0"),
    ("[[metrics]]\nbinds = ['imge']", 1, 'metrics[0].binds: "imge" is no field of a fingerprint; known are cpu, cores, '
     "memory, kernel, gpu, gpu_count, gpu_memory, gpu_driver, cuda, backend, limits, steps, image, inputs, judge, "
     "gold, pool"),
    ("[ranking]\nrule = 'best'", 1, 'ranking.rule: must be "lexicographic", "weighted" or "pareto", not "best"'),
    ("[tune]\ntrials = 3", 0, "tune: is not cheaper than a trial; give one of command, limits, env, inputs, judge"),
    ("[tune]\ntrials = 0\ncommand = 'x'", 1, "tune.trials: must be at least 1, not 0"),
    ("[[guards]]\nname = 'a'", 0, "guards[0].command: is missing; add it"),
    ("[[guards]]\nname = 'a'\ncommand = []", 2, "guards[0].command: is too short; the least is 1"),
    ("[[guards]]\nname = 'a'\ncommand = ['-x']", 2, 'guards[0].command: "-x" is not a program; name one first'),
    ("[[guards]]\nname = 'a'\ncommand = ' '", 2, "guards[0].command: is empty; write a command or leave the key out"),
    ("[[guards]]\nname = 'a'\ncommand = 5", 2, 'guards[0].command: must be a list of words, ["python3", "solve.py"], '
     "or one line for the shell"),
    ("[[guards]]\nname = 'a'\ncommand = ['a', 1]", 2, "guards[0].command[1]: must be text in quotes, not 1"),
    ("[[guards]]\nname = 'a'\ncommand = 'b'\nin = 'host'", 3, 'guards[0].in: must be "chamber" or "judge", not "host"'),
    ("[budget]\nusd = 'five'", 1, 'budget.usd: "five" is not a sum of money; write it like "$5" or "$0.50"'),
    ("[budget]\nusd = -1", 1, "budget.usd: must be at least $0, not $-1"),
    ("[budget]\nrate = 30", 1, 'budget.rate: 30 is not a rate; write it like "30/min", "2/s" or "100/h"'),
    ("[budget]\nwall = 2020-01-01", 1, "budget.wall: is a date; no key takes one, so write text in quotes"),
    ("[budget]\ntokens = 0x" + "f" * 5000, 1, "budget.tokens: is too large a number; write a smaller one"),
    ("[search]\nsaturates = ['disk']", 1, 'search.saturates[0]: must be "gpu", "memory", "port", "database", "api" or '
     '"cpu", not "disk"'),
    ("[search]\nproposer = 'gpt'", 1,
     f'search.proposer: must be {listed([*PROPOSERS.built_in])}, not "gpt"; did you mean "gp"?'),
    ("[inputs]\n'../x' = 'data'", 1, 'inputs."../x": "../x" is not a name; use letters, digits, ., _ and -, with a '
     "letter or digit first"),
    ("[image]\npip = ['-r x']", 1, 'image.pip[0]: "-r x" looks like an option; name the thing itself'),
    ("[image]\napt = ['gcc;ls']", 1, 'image.apt[0]: "gcc;ls" is not a package of Debian; write it like gcc or '
     "gcc=4:12.2.0-3"),
    ("[image]\nbase = '-x'", 1, 'image.base: "-x" is not the name of an image; write it like blastdoor-trial:latest'),
    ("[image]\napt = 'gcc'", 1, 'image.apt: must be a list in brackets, not "gcc"'),
]  # fmt: skip


@pytest.mark.parametrize(("more", "line", "message"), BAD_VALUES)
def test_bad_values(make: Make, more: str, line: int, message: str) -> None:
    """A value that cannot be is told with its line, its key, and its bound in the unit that people write."""
    assert told(make(more)) == f"blastdoor.toml:{NEXT + line}: {message}"


PARAMETERS = [
    ("{type = 'int', low = 3, high = 3}", "a: low (3) must be below high (3)"),
    ("{type = 'float', low = 2, high = 1.5}", "a: low (2) must be below high (1.5)"),
    (
        "{type = 'float', low = 0, high = 1, log = true}",
        "a: log needs a low above 0, not 0; raise low or leave out log",
    ),
    ("{type = 'float', low = -inf, high = 1}", "a.low: must be a finite number, not -inf"),
    ("{type = 'int', low = 1.5, high = 3}", "a.low: must be a whole number, not 1.5"),
    ("{type = 'int', low = 1}", "a.high: is missing; add it"),
    ("{type = 'int', low = 1, high = 9, step = 0}", "a.step: must be at least 1, not 0"),
    ("{type = 'choice', values = []}", "a.values: is too short; the least is 1"),
    ("{type = 'choice', values = [1, 'x', 1]}", "a: values has 1 twice; remove one"),
    ("{type = 'choice', values = [[1]]}", "a.values[0]: must be text, a finite number, true or false"),
    ("{low = 1, high = 2}", "a.type: is missing; write what the parameter is: int, float, choice or bool"),
    ("{type = 'integer'}", 'a.type: must be one of "int", "float", "choice", "bool", not "integer"'),
    ("5", "a: must be a table, not 5"),
]


@pytest.mark.parametrize(("parameter", "message"), PARAMETERS)
def test_bad_parameters(make: Make, parameter: str, message: str) -> None:
    """A parameter without a range, or without a type, is told with its line."""
    folder = make(f"[parameters]\nfile = 'params.json'\n[parameters.space]\na = {parameter}\n")
    assert told(folder) == f"blastdoor.toml:{NEXT + 3}: parameters.space.{message}"


HEADS = [
    (('name = "sample"\n', ""), 1, "name: is missing; add it"),
    (('name = "sample"', 'name = "Big Name"'), 1, 'name: "Big Name" is not a name; use up to 64 small letters, digits '
     "and -"),
    (('command = ["python3", "solve.py"]\n', ""), 5, "trial.command: is missing; add it"),
    (("statement", "statment"), 2, "statment: unknown key; did you mean statement?"),
    (('"Do it."', '""'), 2, "statement: is too short; the least is 1"),
    (('["solve.py", "params.json"]', "[]"), 3, "editable: is too short; the least is 1"),
    (('"params.json"', '"../x"'), 3, "editable[1]: ../x: unsafe name; write a plain relative path or glob"),
    (('"params.json"', '"a**"'), 3, "editable[1]: a**: ** stands alone between slashes; write src/**/name or src/*"),
    (("[trial]\n", "workspace = 5\n[trial]\n"), 5, "workspace: must be text in quotes, not 5"),
    (("[trial]\n", "workspace = {repositry = 'x'}\n[trial]\n"), 5, "workspace.repositry: unknown key; did you mean "
     "repository?"),
    (("[trial]\n", "workspace = {revision = 'x'}\n[trial]\n"), 5, "workspace.repository: is missing; add it"),
    (("[trial]\n", "workspace = {repository = 'x', revision = '--upload-pack=x'}\n[trial]\n"), 5,
     'workspace.revision: "--upload-pack=x" looks like an option; name the thing itself'),
    (("[trial]\n", "[trial]\nsteps = 0\n"), 6, "trial.steps: must be at least 1, not 0"),
]  # fmt: skip


@pytest.mark.parametrize(("replaced", "line", "message"), HEADS)
def test_bad_heads(make: Make, replaced: tuple[str, str], line: int, message: str) -> None:
    """What every task must have is told by the line where it should stand, a misspelt one as misspelt."""
    assert told(make(replaced=replaced)) == f"blastdoor.toml:{line}: {message}"


@pytest.mark.parametrize("workdir", ["../x", "a/../../x", "/proc/self/fd/8", "/"])
def test_t10_workdir_leaves_the_folder(make: Make, workdir: str) -> None:
    """A working folder outside of the workspace, or on a descriptor, is refused."""
    message = told(make(replaced=("[trial]\n", f'[trial]\nworkdir = "{workdir}"\n')))
    assert message.startswith(f'blastdoor.toml:6: trial.workdir: "{workdir}" leaves the folder; name a place inside it')


def test_syntax(make: Make) -> None:
    """An error of the syntax keeps the parser's line."""
    assert told(make("x = \n")) == f"blastdoor.toml:{NEXT}: is not TOML: Invalid value at column 5; correct it"
    assert told(make("\nx")).startswith(f"blastdoor.toml:{NEXT + 1}: is not TOML: ")
    assert told(make("command = 1\n")).startswith(f"blastdoor.toml:{NEXT}: is not TOML: Cannot overwrite a value")
    assert "is not TOML" in told(make("x = 1" + "0" * 5000))


def test_no_file(make: Make) -> None:
    """What is not there is told with what to do."""
    folder = make()
    (folder / "blastdoor.toml").unlink()
    assert told(folder) == "blastdoor.toml: is not there; write one with: blastdoor init"
    (folder / "blastdoor.toml").mkdir()
    assert told(folder) == "blastdoor.toml: is not there; write one with: blastdoor init"
    with pytest.raises(TaskError, match="nowhere: is not a folder"):
        load_task(folder / "nowhere")


def test_encodings(make: Make) -> None:
    """A file in another encoding is refused with the line of the first odd byte; one that begins with a byte order
    mark, as some editors write it, is read like any other.
    """
    folder = make()
    file, plain = folder / "blastdoor.toml", load_task(folder)
    written = file.read_bytes()
    file.write_bytes(b"\xef\xbb\xbf" + written)
    assert load_task(folder) == plain
    file.write_bytes(written + b"# caf\xe9\n")
    assert told(folder) == f"blastdoor.toml:{NEXT}: is not UTF-8; save it as UTF-8"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("x = " + "[" * 150 + "]" * 150, ":"),
        ("x = " + "[" * 5000 + "]" * 5000, ":"),
        # TOML takes them deeper than JSON, as which the values are looked at.
        ("[limits]\na = " + "{b = [1," * 100 + "1" + "]}" * 100, ": is nested too deeply; write it flatter"),
        ("[limits]\na = " + "{b = [1," * 150 + "1" + "]}" * 150, ": is nested too deeply; write it flatter"),
        ("#" * (1 << 20), ": has more than 1MiB; put large texts into files"),
    ],
    ids=["lists", "deep lists", "tables", "deep tables", "large"],
)
def test_too_deep_and_too_large(make: Make, more: str, says: str) -> None:
    """A file that would exhaust a parser is an error like any other; one over its cap is not parsed."""
    assert told(make(more)).startswith(f"blastdoor.toml{says}")


def test_a_folder_that_is_no_text(make: Make, tmp_path: Path) -> None:
    """A name that is not UTF-8 gets one line, before anything is made in the folder."""
    odd = make().rename(tmp_path / os.fsdecode(b"caf\xe9"))
    for read in (load_task, write_template, campaign_folder):
        with pytest.raises(TaskError, match=r"caf.*: its name is not UTF-8; rename the folder"):
            read(odd)
    assert sorted(path.name for path in odd.iterdir()) == sorted(path.name for path in make().iterdir())


def test_t101_many_warnings_are_placed_in_one_reading(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stranger's task makes us notice costs one look for lines, however much it is."""
    looked: list[str] = []

    def counted(text: str) -> dict[Key, int]:
        looked.append(text)
        return key_lines(text)

    monkeypatch.setattr(reading, "key_lines", counted)
    globs = ", ".join(f'"a{at}"' for at in range(1000))
    task = load_task(make(replaced=("name = ", f"exclude = [{globs}]\nname = ")))
    assert len(task.warnings) == 1000
    assert len(looked) == 1


def test_t101_globs_have_a_bound(make: Make) -> None:
    """Each is held against each file."""
    globs = ", ".join(f'"a{at}"' for at in range(1001))
    assert "exclude: is too long; the most is 1000" in told(make(replaced=("name = ", f"exclude = [{globs}]\nname = ")))
