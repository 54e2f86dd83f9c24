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


def test_workspace_is_missing(make: Make) -> None:
    """Candidates must have something to start from."""
    folder = make(replaced=("[trial]", "workspace = 'wrkspace'\n[trial]"))
    assert told(folder) == (
        "blastdoor.toml:5: workspace: wrkspace is not a folder; put there what candidates start from"
    )


def test_repository_is_missing(make: Make) -> None:
    """A repository that is not there is told when the task is read."""
    folder = make(replaced=("[trial]", "workspace = {repository = 'repo'}\n[trial]"))
    assert told(folder) == "blastdoor.toml:5: workspace.repository: repo is not a folder; name a repository"


def test_judge_is_missing(make: Make) -> None:
    """There is no search without a judge."""
    assert told(make("folder = 'jugde'")) == (
        f"blastdoor.toml:{NEXT}: judge.folder: jugde is not a folder; put the judge there"
    )


def test_gold_is_missing(make: Make) -> None:
    """Gold that was named must be there; the usual place may be empty."""
    assert told(make("gold = 'judge/glod'")) == (
        f"blastdoor.toml:{NEXT}: judge.gold: judge/glod is missing; put the gold there or correct the name"
    )
    folder = make()
    (folder / "judge/gold/answers.json").unlink()
    (folder / "judge/gold").rmdir()
    assert load_task(folder).judge.gold is None


@pytest.mark.parametrize("gold", ["data", "judge", "."])
def test_gold_is_a_part_of_the_judge(make: Make, gold: str) -> None:
    """Gold is what lies beneath the judge's folder: nothing else reaches the judge's chamber."""
    assert "is not beneath the judge's folder judge; move it there" in told(make(f"gold = '{gold}'"))


@pytest.mark.parametrize(
    ("judge", "other"), [("workspace", ""), ("workspace/lib", ', or set exclude = ["lib"]')], ids=["all", "a part"]
)
def test_judge_inside_the_workspace(make: Make, judge: str, other: str) -> None:
    """What lies in the workspace is seen by candidates, so the judge may not, unless it is left out."""
    text = f"judge.folder: {judge} lies inside the workspace, where candidates see it; move it out{other}"
    assert told(make(f"folder = '{judge}'")) == f"blastdoor.toml:{NEXT}: {text}"


def test_workspace_around_everything(make: Make) -> None:
    """A task folder that is its own workspace would show its judge."""
    folder = make(replaced=("[trial]", "workspace = '.'\n[trial]"))
    assert told(folder) == (
        "blastdoor.toml:9: judge.folder: judge lies inside the workspace, where candidates see it; move it out, or set "
        'exclude = ["judge"]'
    )


def test_workspace_inside_the_judge(make: Make) -> None:
    """Nor may the workspace be a part of what is secret."""
    folder = make(replaced=("[trial]", "workspace = 'judge/gold'\n[trial]"))
    assert told(folder) == "blastdoor.toml:5: workspace: judge/gold lies inside the judge's folder; move it out"


@pytest.mark.parametrize("playbook", ["judge", "judge/gold", ".", "link"])
def test_playbook_and_judge_lie_apart(make: Make, playbook: str) -> None:
    """All of a playbook goes to a provider: nothing of the judge may be in it, by whatever name."""
    folder = make(replaced=("[trial]", f"playbook = '{playbook}'\n[trial]"))
    (folder / "link").symlink_to(folder / "judge" / "gold")
    assert "lie in each other, and agents read it; move it" in told(folder)


def test_playbook_is_missing(make: Make) -> None:
    """One that is named must be there; the usual place need not."""
    folder = make(replaced=("[trial]", "playbook = 'playbok'\n[trial]"))
    assert told(folder) == (
        "blastdoor.toml:5: playbook: playbok is not a folder; put the playbook there, or take the key out"
    )


def test_judge_inside_the_workspace_by_a_link(make: Make) -> None:
    """It is the place on the disk that counts, not its name."""
    folder = make("folder = 'elsewhere'")
    (folder / "elsewhere").symlink_to(folder / "workspace/lib")
    assert "elsewhere lies inside the workspace" in told(folder)


def test_gold_by_a_link(make: Make) -> None:
    """Gold that is really elsewhere is not beneath the judge's folder."""
    folder = make("gold = 'judge/linked'")
    (folder / "judge/linked").symlink_to(folder / "data")
    assert "judge/linked is not beneath the judge's folder" in told(folder)


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


def test_input_by_a_link(make: Make) -> None:
    """A link as an input is followed to see where it leads."""
    folder = make("[inputs]\na = 'innocent'")
    (folder / "innocent").symlink_to(folder / "judge/gold/answers.json")
    assert told(folder).startswith(f"blastdoor.toml:{NEXT + 1}: inputs.a: innocent and the judge's folder")


def test_input_of_our_own_records(make: Make) -> None:
    """What earlier runs left holds verdicts: no candidate may read it."""
    folder = make("[inputs]\na = '.blastdoor'")
    (folder / ".blastdoor").mkdir()
    assert "inputs.a: .blastdoor and what runs left (.blastdoor) lie in each other" in told(folder)


def test_input_is_missing(make: Make) -> None:
    """An input that is not there is told with its line."""
    assert told(make("[inputs]\na = 'dta'")) == (
        f"blastdoor.toml:{NEXT + 1}: inputs.a: dta is missing; put the data there or correct the name"
    )


def test_tune_replaces_inputs_that_are_there(make: Make) -> None:
    """A tune input of an unknown name is a typo: nothing would read it."""
    assert told(make("[inputs]\na = 'data'\n[tune]\ninputs = {b = 'data'}")) == (
        f"blastdoor.toml:{NEXT + 3}: tune.inputs.b: replaces no input; use a name of [inputs]"
    )


def edited(make: Make, names: str, hidden: str = "[]") -> Path:
    return make(replaced=('["solve.py", "params.json"]', f"{names}\nhidden = {hidden}"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lib", '"lib" is a folder; write lib/** for all that is in it'),
        ("solve.py/x", '"solve.py/x" cannot be there beside the file solve.py; correct the name'),
        ("Solve.py", '"Solve.py" cannot be there beside the file solve.py; correct the name'),
    ],
)
def test_editable_names_that_can_not_be(make: Make, name: str, message: str) -> None:
    """An exact name must be a file, or one that a change could create."""
    assert told(edited(make, f'["params.json", "{name}"]')) == f"blastdoor.toml:3: editable[1]: {message}"


def test_editable_and_hidden(make: Make) -> None:
    """A file that is both is hidden, so it could never be edited."""
    assert told(edited(make, '["solve.py"]', '["solve.py"]')) == (
        'blastdoor.toml:3: editable[0]: "solve.py" is hidden too, and hidden wins; take it out of one of them'
    )


def test_hidden_must_hide_something(make: Make) -> None:
    """A misspelt hidden file would be shown: that is an error, not a warning."""
    assert told(edited(make, '["solve.py"]', '["parms.json"]')) == (
        'blastdoor.toml:4: hidden[0]: "parms.json" is not in the workspace, so nothing is hidden; '
        "did you mean params.json?"
    )
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


def test_weights_without_effect(make: Make) -> None:
    """A weight that is not looked at is said to be so."""
    (warning,) = load_task(make("[[metrics]]\nweight = 2\n")).warnings
    assert warning.endswith(
        f'{NEXT + 1}: metrics[0].weight: has no effect; it counts only with ranking.rule = "weighted"'
    )


def test_before_without_effect(make: Make) -> None:
    """A weighted sum and Pareto know no order of metrics."""
    (warning,) = load_task(make("[ranking]\nrule = 'pareto'\n[[metrics]]\nbefore = true\n")).warnings
    assert warning.endswith('metrics[0].before: has no effect; it counts only with ranking.rule = "lexicographic"')


def test_noisy_needs_one_order(make: Make) -> None:
    """Pareto leaves some scores without an order, so there are no ranks to test with."""
    assert told(make("[ranking]\nrule = 'pareto'\n[certify]\nrule = 'noisy'")) == (
        f'blastdoor.toml:{NEXT + 3}: certify.rule: "noisy" needs scores in one order, which "pareto" does not give; '
        'use another ranking.rule, or "strict"'
    )


def test_repeats_that_can_prove_nothing(make: Make) -> None:
    """Too few measurements would let nothing through, however good: more are made, and that is said."""
    (warning,) = load_task(make("[certify]\nrule = 'noisy'\nrepeats = 4\nchampion = 3")).warnings
    told = "certify.repeats: 4 cannot prove anything at an error of 0.05; 6 are used"
    assert warning.endswith(f"blastdoor.toml:{NEXT + 2}: {told}")
    assert not load_task(make("[certify]\nrule = 'noisy'\nrepeats = 5")).warnings


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


@pytest.mark.parametrize("key", ["proposer", "control"])
def test_search_without_a_space(make: Make, key: str) -> None:
    """Grid and random need something to draw from; a flag may name another, so this is a warning."""
    other = ", or leave the control out" if key == "control" else ""
    (warning,) = load_task(make(f"[search]\n{key} = 'random'")).warnings
    assert warning.endswith(f'{NEXT + 1}: search.{key}: "random" needs a space to search; add [parameters]{other}')


def test_what_people_bring_needs_no_space(make: Make) -> None:
    """A search without [parameters] can still judge changes that people inject."""
    assert load_task(make("[search]\nproposer = 'inject'")).parameters is None


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
