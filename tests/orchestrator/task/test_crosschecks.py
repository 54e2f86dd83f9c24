"""Sections that do not fit each other, and places that do not fit the folder."""

from pathlib import Path

import pytest

from orchestrator.task import Task, TaskError, load_task
from tests.orchestrator.task.conftest import NEXT, Make

PARAMETERS = "[parameters]\nfile = '{file}'\n[parameters.space]\nflag = {{type = 'bool'}}\n"


def told(folder: Path) -> str:
    """The error of loading, without the folder's path."""
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "FOLDER")


TRIAL = "[trial]"
INSIDE = "lies inside the workspace, where candidates see it; move it out"
# What is appended to the task, what stands before [trial], the line, and what is said of it.
PLACES = [
    ("", "workspace = 'wrkspace'", 5, "workspace: wrkspace is not a folder; put there what candidates start from"),
    ("", "workspace = {repository = 'repo'}", 5, "workspace.repository: repo is not a folder; name a repository"),
    ("folder = 'jugde'", "", NEXT, "judge.folder: jugde is not a folder; put the judge there"),
    (
        "gold = 'judge/glod'",
        "",
        NEXT,
        "judge.gold: judge/glod is missing; put the gold there or correct the name",
    ),
    ("folder = 'workspace'", "", NEXT, f"judge.folder: workspace {INSIDE}"),
    ("folder = 'workspace/lib'", "", NEXT, f'judge.folder: workspace/lib {INSIDE}, or set exclude = ["lib"]'),
    ("", "workspace = '.'", 9, f'judge.folder: judge {INSIDE}, or set exclude = ["judge"]'),
    ("", "workspace = 'judge/gold'", 5, "workspace: judge/gold lies inside the judge's folder; move it out"),
    (
        "",
        "playbook = 'playbok'",
        5,
        "playbook: playbok is not a folder; put the playbook there, or take the key out",
    ),
    (
        "[inputs]\na = 'dta'",
        "",
        NEXT + 1,
        "inputs.a: dta is missing; put the data there or correct the name",
    ),
    (
        "[inputs]\na = 'data'\n[tune]\ninputs = {b = 'data'}",
        "",
        NEXT + 3,
        "tune.inputs.b: replaces no input; use a name of [inputs]",
    ),
]


@pytest.mark.parametrize(("more", "before", "line", "message"), PLACES)
def test_places_that_can_not_be(make: Make, more: str, before: str, line: int, message: str) -> None:
    """What is named must be there, and workspace, judge and playbook must not show each other to candidates."""
    folder = make(more, replaced=(TRIAL, f"{before}\n{TRIAL}")) if before else make(more)
    assert told(folder) == f"blastdoor.toml:{line}: {message}"


def test_the_usual_gold_may_be_missing(make: Make) -> None:
    """Only gold that was named must be there."""
    folder = make()
    (folder / "judge/gold/answers.json").unlink()
    (folder / "judge/gold").rmdir()
    assert load_task(folder).judge.gold is None


@pytest.mark.parametrize("gold", ["data", "judge", "."])
def test_gold_is_a_part_of_the_judge(make: Make, gold: str) -> None:
    """Gold is what lies beneath the judge's folder: nothing else reaches the judge's chamber."""
    assert "is not beneath the judge's folder judge; move it there" in told(make(f"gold = '{gold}'"))


@pytest.mark.parametrize("playbook", ["judge", "judge/gold", ".", "link"])
def test_playbook_and_judge_lie_apart(make: Make, playbook: str) -> None:
    """All of a playbook goes to a provider: nothing of the judge may be in it, by whatever name."""
    folder = make(replaced=("[trial]", f"playbook = '{playbook}'\n[trial]"))
    (folder / "link").symlink_to(folder / "judge" / "gold")
    assert "lie in each other, and agents read it; move it" in told(folder)


@pytest.mark.parametrize(
    ("more", "link", "leads_to", "message"),
    [
        ("folder = 'elsewhere'", "elsewhere", "workspace/lib", "elsewhere lies inside the workspace"),
        ("gold = 'judge/linked'", "judge/linked", "data", "judge/linked is not beneath the judge's folder"),
        (
            "[inputs]\na = 'innocent'",
            "innocent",
            "judge/gold/answers.json",
            f"blastdoor.toml:{NEXT + 1}: inputs.a: innocent and the judge's folder",
        ),
    ],
)
def test_places_by_a_link(make: Make, more: str, link: str, leads_to: str, message: str) -> None:
    """It is the place on the disk that counts, not its name."""
    folder = make(more)
    (folder / link).symlink_to(folder / leads_to)
    assert message in told(folder)


def test_t65_link_in_the_workspace(make: Make) -> None:
    """A link in the workspace could lead to the gold: it is refused before anything is read."""
    folder = make()
    (folder / "workspace/lib/answers").symlink_to(folder / "judge/gold")
    assert told(folder) == (
        "blastdoor.toml:1: workspace: workspace/lib/answers is a link; put what it points to in its place"
    )


def test_repository_around_the_judge(make: Make) -> None:
    """Of a repository, the part that is taken may not hold the judge."""
    around = "workspace = {repository = '.'}\n[trial]"
    assert "judge lies inside the workspace" in told(make(replaced=("[trial]", around)))
    by_its_folder = "workspace = {repository = '.git'}\n[trial]"
    folder = make(replaced=("[trial]", by_its_folder))
    (folder / ".git").mkdir()
    assert "judge lies inside the workspace" in told(folder)
    beside = "workspace = {repository = '.', folder = 'workspace'}\n[trial]"
    assert load_task(make(replaced=("[trial]", beside))).warnings == ()


@pytest.mark.parametrize("path", ["judge", "judge/gold", "judge/gold/answers.json", "judge/judge.py", ".", ".."])
def test_input_shows_the_judge(make: Make, path: str) -> None:
    """Candidates see inputs, so they may neither hold nor be a part of judge and gold."""
    assert told(make(f"[inputs]\na = 'data'\nb = '{path}'")).startswith(f"blastdoor.toml:{NEXT + 2}: inputs.b: ")
    quick = f"[inputs]\na = 'data'\n[tune]\ninputs = {{a = '{path}'}}"
    message = told(make(quick))
    assert message.startswith(f"blastdoor.toml:{NEXT + 3}: tune.inputs.a: ")
    assert message.endswith("lie in each other; candidates see inputs, so keep them apart")


def test_input_of_our_own_records(make: Make) -> None:
    """What earlier runs left holds verdicts: no candidate may read it."""
    folder = make("[inputs]\na = '.blastdoor'")
    (folder / ".blastdoor").mkdir()
    assert "inputs.a: .blastdoor and what runs left (.blastdoor) lie in each other" in told(folder)


def edited(make: Make, names: str, hidden: str = "[]") -> Path:
    return make(replaced=('["solve.py", "params.json"]', f"{names}\nhidden = {hidden}"))


@pytest.mark.parametrize(
    ("names", "hidden", "line", "message"),
    [
        ('["params.json", "lib"]', "[]", 3, 'editable[1]: "lib" is a folder; write lib/** for all that is in it'),
        (
            '["params.json", "solve.py/x"]',
            "[]",
            3,
            'editable[1]: "solve.py/x" cannot be there beside the file solve.py; correct the name',
        ),
        (
            '["params.json", "Solve.py"]',
            "[]",
            3,
            'editable[1]: "Solve.py" cannot be there beside the file solve.py; correct the name',
        ),
        (
            '["solve.py"]',
            '["solve.py"]',
            3,
            'editable[0]: "solve.py" is hidden too, and hidden wins; take it out of one of them',
        ),
        (
            '["solve.py"]',
            '["parms.json"]',
            4,
            'hidden[0]: "parms.json" is not in the workspace, so nothing is hidden; did you mean params.json?',
        ),
    ],
)
def test_names_that_can_not_be(make: Make, names: str, hidden: str, line: int, message: str) -> None:
    """An exact name is a file, or one that a change could create; hidden wins, so a misspelt one is an error."""
    assert told(edited(make, names, hidden)) == f"blastdoor.toml:{line}: {message}"
    assert load_task(edited(make, '["solve.py"]', '["lib", "params.json"]')).warnings == ()


def test_warnings(make: Make) -> None:
    """What may be meant is no error, but it is said."""
    task = load_task(edited(make, '["slove.py", "src/*.py", "**"]', '["*.txt"]'))
    assert [line.partition("blastdoor.toml:")[2] for line in task.warnings] == [
        '3: editable[0]: "slove.py" is not in the workspace; a change may create it; did you mean solve.py?',
        '3: editable[1]: "src/*.py" matches no file of the workspace',
        '4: hidden[0]: "*.txt" matches no file of the workspace',
    ]
    assert Task.from_canonical(task.canonical()) == task


def test_files_of_tools_do_not_count(make: Make) -> None:
    """What tools leave in a workspace is no part of it."""
    folder = make(replaced=('"params.json"', '"__pycache__/*"'))
    (folder / "workspace/__pycache__").mkdir()
    (folder / "workspace/__pycache__/solve.cpython-311.pyc").write_bytes(b"")
    assert "matches no file" in load_task(folder).warnings[0]


@pytest.mark.parametrize("file", ["other.json", "lib/tool.py"])
def test_parameters_file_is_not_editable(make: Make, file: str) -> None:
    """A proposer may write only what an agent may."""
    assert told(make(PARAMETERS.format(file=file))) == (
        f'blastdoor.toml:{NEXT + 1}: parameters.file: "{file}" cannot be written (not editable); add it to editable'
    )


def test_names_twice(make: Make) -> None:
    """Metrics and guards are told apart by their names."""
    assert told(make("[[metrics]]\nname = 'a'\n[[metrics]]\nname = 'b'\n[[metrics]]\nname = 'a'")) == (
        f'blastdoor.toml:{NEXT + 5}: metrics[2].name: "a" is there twice; rename one'
    )
    assert told(make("[[guards]]\nname = 'a'\ncommand = 'x'\n[[guards]]\nname = 'a'\ncommand = 'y'")) == (
        f'blastdoor.toml:{NEXT + 4}: guards[1].name: "a" is there twice; rename one'
    )


def test_weighted_without_weights(make: Make) -> None:
    """A weighted sum needs every weight to be meant."""
    metrics = "[ranking]\nrule = 'weighted'\n[[metrics]]\nname = 'a'\nweight = 1\n[[metrics]]\nname = 'b'"
    assert told(make(metrics)) == (
        f'blastdoor.toml:{NEXT + 5}: metrics[1]: has no weight, but ranking.rule is "weighted"; give every metric one'
    )
    assert load_task(make(f"{metrics}\nweight = 2\n")).warnings == ()


@pytest.mark.parametrize(
    ("more", "warning"),
    [
        (
            "[[metrics]]\nweight = 2\n",
            f'{NEXT + 1}: metrics[0].weight: has no effect; it counts only with ranking.rule = "weighted"',
        ),
        (
            "[ranking]\nrule = 'pareto'\n[[metrics]]\nbefore = true\n",
            f'{NEXT + 3}: metrics[0].before: has no effect; it counts only with ranking.rule = "lexicographic"',
        ),
        (
            "[certify]\nrule = 'noisy'\nrepeats = 4\nchampion = 3",
            f"{NEXT + 2}: certify.repeats: 4 cannot prove anything at an error of 0.05; 6 are used",
        ),
        ("[certify]\nrule = 'noisy'\nrepeats = 5", ""),
        (
            "[search]\nproposer = 'random'",
            f'{NEXT + 1}: search.proposer: "random" needs a space to search; add [parameters]',
        ),
        (
            "[search]\ncontrol = 'random'",
            f'{NEXT + 1}: search.control: "random" needs a space to search; add [parameters], or leave the control out',
        ),
        ("[search]\nproposer = 'inject'", ""),
    ],
)
def test_what_is_only_doubted(make: Make, more: str, warning: str) -> None:
    """What has no effect as it stands may still be meant: it is said, and nothing is refused."""
    found = [line.partition("blastdoor.toml:")[2] for line in load_task(make(more)).warnings]
    assert found == ([warning] if warning else [])


def test_noisy_needs_one_order(make: Make) -> None:
    """Pareto leaves some scores without an order, so there are no ranks to test with."""
    assert told(make("[ranking]\nrule = 'pareto'\n[certify]\nrule = 'noisy'")) == (
        f'blastdoor.toml:{NEXT + 3}: certify.rule: "noisy" needs scores in one order, which "pareto" does not give; '
        'use another ranking.rule, or "strict"'
    )


@pytest.mark.parametrize("key", ["error", "repeats", "champion"])
def test_certify_without_effect(make: Make, key: str) -> None:
    """What counts only for noisy scores is said to have no effect on strict ones."""
    value = 0.01 if key == "error" else 30
    (warning,) = load_task(make(f"[certify]\n{key} = {value}\n")).warnings
    assert warning.endswith(f'{NEXT + 1}: certify.{key}: has no effect; it counts only with certify.rule = "noisy"')
    assert load_task(make(f"[certify]\nrule = 'noisy'\n{key} = {value}\n")).warnings == ()


@pytest.mark.parametrize("metric", ["name = 'points'\ntiming = true", "name = 'p95_ms'", "name = 'solveTime'"])
def test_t100_repeats_decide_for_a_time(make: Make, metric: str) -> None:
    """T100: without a word of the task's, also where it says that one run is enough; another rule has to be named, and
    is doubted. It is stored like one that was named.
    """
    task = load_task(make(f"mode = 'relay'\n[[metrics]]\n{metric}\n[certify]\nreplay = false\n"))
    assert (task.certify.rule, task.certify.certify().replays) == ("noisy", False)
    assert task.rule_by_default.startswith('certify.rule is "noisy", since ')
    assert task.warnings[0].endswith('certify.replay: has no effect; it counts only with certify.rule = "strict"')
    stored = Task.from_canonical(task.canonical())
    assert (stored, stored.rule_by_default) == (task, "")
    named = load_task(make(f"mode = 'relay'\n[[metrics]]\n{metric}\n[certify]\nrule = 'strict'\n"))
    assert (named.certify.rule, named.rule_by_default) == ("strict", "")
    (warning,) = named.warnings
    assert warning.endswith("is a time, so luck is kept; take it out, and repeats in turn decide")


@pytest.mark.parametrize("name", ["score", "points", "steps", "second_best", "bonus", "campus"])
def test_what_is_no_time(make: Make, name: str) -> None:
    """A control: other scores are the same when they are taken again, and one more run decides."""
    task = load_task(make(f"[[metrics]]\nname = '{name}'\n"))
    assert (task.certify.rule, task.rule_by_default, task.warnings) == ("strict", "", ())


def test_a_time_without_one_order(make: Make) -> None:
    """Who has Pareto order times has to name the rule that takes them as they come."""
    metrics = "[[metrics]]\nname = 'seconds'\n[[metrics]]\nname = 'size'\n[ranking]\nrule = 'pareto'\n"
    assert "since seconds is a time" in told(make(metrics))
    assert load_task(make(f"{metrics}[certify]\nrule = 'strict'\n")).certify.rule == "strict"


def test_timing_without_relay(make: Make) -> None:
    """A time is only measured where the judge calls the candidate; elsewhere a judge has nothing to measure."""
    metrics = "[[metrics]]\nname = 'seconds'\ntiming = true\n"
    assert told(make(metrics)) == (
        f"blastdoor.toml:{NEXT + 2}: metrics[0].timing: is measured where the judge calls the candidate; "
        'set judge.mode = "relay", or take it out'
    )
    task = load_task(make(f"mode = 'relay'\n{metrics}"))
    assert (task.judge.mode, task.metrics[0].metric().timing, task.warnings) == ("relay", True, ())


def test_outputs_with_relay(make: Make) -> None:
    """Nothing is harvested where the judge calls, and that is said."""
    folder = make("mode = 'relay'\n", replaced=("[judge]", "outputs = ['x.json']\n[judge]"))
    (warning,) = load_task(folder).warnings
    assert warning.endswith('trial.outputs: has no effect; with judge.mode = "relay" nothing is harvested')
