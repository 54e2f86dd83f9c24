"""What `check` finds in tasks that are well, and in those that are not. The programs really run."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.change import Tree
from orchestrator.domain.metric import Goal, Metric, Ranking
from orchestrator.examine.cheating import Bar, Fate, Tried
from orchestrator.examine.checkup import FAILURE
from orchestrator.examine.dependence import tell_dependence
from orchestrator.examine.findings import Findings, Row, Section, Sign
from orchestrator.examine.gold import copies_of_gold
from orchestrator.examine.probes import measured
from orchestrator.judge.adversaries import Oracle
from orchestrator.loop.backstop import walls_of_search
from orchestrator.loop.judge_modes import judge_mode_of
from orchestrator.loop.money import worst_of_search
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.judging.check import examine
from orchestrator.wiring.backends.docker import spare_of
from orchestrator.wiring.beginning import How
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.planning import plan_campaign
from sandbox import DockerConfig, Refused, Unavailable
from tests.orchestrator.views.judging.stage import GOLD, JUDGE, METRIC, SOLVE, Stage, write_task

Judge = Callable[[Mapping[str, bytes]], object]


async def examined(folder: Path, stage: Stage | None = None, *, runs: int = 1, cheats: bool = False) -> Findings:
    findings = Findings()
    async with (stage or Stage()).site() as site:
        await examine(load_task(folder), folder, site, Settings(), findings, runs=runs, cheats=cheats)
    return findings


def rows(findings: Findings, section: Section, sign: Sign | None = None) -> list[Row]:
    return [row for row in findings.rows if row.section is section and sign in (None, row.sign)]


def the_failure(findings: Findings) -> Row:
    (row,) = [row for row in findings.rows if row.sign is Sign.FAIL]
    return row


async def test_a_sound_task(tmp_path: Path) -> None:
    """Every section says that all is well, no cheat wins, the task's folder is as it was (the canary is in the judge's
    bundle, in memory), and what would run a candidate's output inside the judge is warned of, with its line.
    """
    judge = JUDGE + "\n\ndef unused(path):\n    import pickle\n    return pickle.load(open(path, 'rb'))\n"
    folder = write_task(tmp_path / "task", files={"judge/judge.py": judge})
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    findings = await examined(folder, runs=2, cheats=True)
    assert findings.good
    search, loader = [row.text for row in findings.rows if row.sign is Sign.WARN]
    assert loader.startswith(f"judge.py:{judge[: judge.index('pickle.load')].count(chr(10)) + 1} unpickles")
    assert search == (
        "no search can be started: the proposer random needs [parameters] in the task; add them, or use --proposer"
        " operators, which changes code, or inject"
    )
    assert {row.section for row in findings.rows} == set(Section)
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    names = {cheat["name"] for row in rows(findings, Section.CHEATS) for cheat in row.facts["cheats"]}  # type: ignore[attr-defined]
    assert {"no output", "result instead", "NaN", "huge", "zeros", "planted modules"} <= names


async def test_a_baseline_that_crashes(tmp_path: Path) -> None:
    """The trial's log is handed on, the judge is never asked, and nothing more is examined."""
    stage = Stage()
    code = "import sys\nprint('about to fail', file=sys.stderr)\nsys.exit(3)\n"
    findings = await examined(write_task(tmp_path, files={"workspace/solve.py": code}), stage)
    row = the_failure(findings)
    assert row.text == "the baseline does not run: failed: exit code 3"
    assert b"about to fail" in row.log
    assert ("python3", "judge.py") not in stage.jobs
    assert {row.section for row in findings.rows} == {Section.WIRING}


@pytest.mark.parametrize(
    ("judge", "says", "log"),
    [
        ("pass\n", "no result", b""),
        ("publish({'score': 'high'})", "score is not a number", b""),
        ("publish({'score': 0, 'valid': False, 'notes': 'not my day'})", "no solution: not my day", b""),
        ("raise SystemExit('where is the gold?')", "the judge gives no score: judge failed", b"where is the gold?"),
    ],
)
async def test_results_that_are_none(tmp_path: Path, judge: str, says: str, log: bytes) -> None:
    """Each way of not scoring is told in its own words. Here, and only here, the judge's own log is shown."""
    head = "import json, os\ndef publish(x): open(os.environ['BLASTDOOR_RESULT_PATH'], 'w').write(json.dumps(x))\n"
    row = the_failure(await examined(write_task(tmp_path, files={"judge/judge.py": head + judge})))
    assert says in row.text
    assert log in row.log


# A name of what went wrong that has a value is told from one that has none, and from a measure.
WORDS_OF_A_FAILURE = [
    "error: Compilation failed",
    "stdout: ok\nstderr: error: unknown edition 2024",
    "test_results: [{'test_case': 0, 'error': 'R execution failed'}]",
    "error: [Errno 2] No such file or directory: 'rustc'",
    "FileNotFoundError: [Errno 2] it is gone",
    "stderr: /bin/sh: 1: rustc: not found",
    "error[E0658]: edition 2024 is unstable",
    "error: None of the tests passed",
    "errors: ['compilation failed']",
    "error_message: it did not compile",
    "error: 3 of 3 tests failed",
    "{'correct': False}",
    "status: failed",
    "Traceback (most recent call last):",
    "sh: cargo: command not found",
]
OTHER_WORDS = [
    *("error: None", "{'error': None, 'errors': [], 'stderr': ''}", "errors: 0", "mean_error: -2.5e-03 (of 12)"),
    *("max_error = 0.5 ms, error_rate: 12%", "stderr: b''", "stderr: ", "success: True", "passed: 0", "all is well"),
]


def scored(notes: str, score: float) -> dict[str, str]:
    """A judge that says so."""
    answer = json.dumps({"score": score, "notes": notes})
    return {"judge/judge.py": f"import os\nopen(os.environ['BLASTDOOR_RESULT_PATH'], 'w').write({answer!r})\n"}


def test_words_of_a_failure() -> None:
    for notes in (*WORDS_OF_A_FAILURE, *OTHER_WORDS):
        assert any(map(FAILURE.search, notes.splitlines())) is (notes in WORDS_OF_A_FAILURE), notes


@pytest.mark.parametrize(
    ("notes", "score", "goal", "told"),
    [
        ("ok\nerror[E1]: too old", 0, "higher", (Sign.FAIL, "gets the score of a failure: error[E1]: too old")),
        ("all is well", 0, "higher", (Sign.WARN, "scores 0, and the judge says: all is well")),
        ("", 0, "higher", (Sign.WARN, "scores 0")),
        ("error[E1]: too old", 1, "higher", None),
        ("error[E1]: too old", 0, "lower", None),
    ],
)
async def test_a_baseline_with_the_score_of_a_failure(
    tmp_path: Path, notes: str, score: int, goal: str, told: tuple[Sign, str] | None
) -> None:
    """A tool that is too old, say: the judge gives 0, and may say why. A search from there may find nothing better."""
    metric = f'[[metrics]]\nname = "score"\ngoal = "{goal}"\n'
    findings = await examined(write_task(tmp_path, metric, files=scored(notes, score)))
    found = [(row.sign, row.text) for row in findings.rows if "the baseline gets" in row.text or "scores 0" in row.text]
    assert found == ([(told[0], f"the baseline {told[1]}")] if told else [])


@pytest.mark.parametrize(("feature", "warned"), [("size", True), ("score", False)])
async def test_a_feature_that_the_judge_does_not_report(tmp_path: Path, feature: str, warned: bool) -> None:
    """A grid over it would stay empty, and the search would never use it: that is worth a look, not a failure."""
    grid = f"[search.archive.features]\n{feature} = {{low = 0, high = 9, bins = 3}}\n"
    findings = await examined(write_task(tmp_path, METRIC, grid))
    told = [row.text for row in rows(findings, Section.WIRING, Sign.WARN)]
    assert findings.good
    assert (f"search.archive.features: the judge reports no {feature}, only score" in told) is warned


HELDOUT = '[heldout]\nstep = 0.5\njudge = ["python3", "judge.py", "--held"]\n'
GUARD = '[[guards]]\nname = "sound"\ncommand = ["sh", "-c", "echo no; exit 1"]\n'
SPLIT = "import sys\nif '--held' in sys.argv: raise SystemExit('no gold for that')\n" + JUDGE
# What a row says, its advice and its log; and the task that it is about.
FAULTS: dict[str, dict[str, Any]] = {
    "trial.outputs names nothing of what it left: answers.json": {"trial": 'outputs = ["other.json"]'},
    "$BLASTDOOR_OUT": {"files": {"workspace/solve.py": "pass\n"}},
    "the metric speed is declared, but the result has only score": {"more": '[[metrics]]\nname = "speed"\n'},
    "beyond the ceiling": {"metrics": METRIC.replace("-0.01", "-5.0")},
    "no gold for that": {"more": HELDOUT, "files": {"judge/judge.py": SPLIT}},
    "the cheaper target does not score: judge failed": {
        "more": '[tune]\ntrials = 2\njudge = ["python3", "missing.py"]\n'
    },
    "the guard sound does not pass on the baseline: exit code 1": {"more": GUARD},
    "workspace/data/harmless.json": {"files": {"workspace/data/harmless.json": json.dumps(GOLD)}},
    "not one attempt fits": {"more": '[budget]\nusd = "$0.01"\nattempts = 5\n'},
}


@pytest.mark.parametrize("said", FAULTS)
async def test_faults_of_a_task(tmp_path: Path, said: str) -> None:
    """Each is found before a campaign is begun, in one row."""
    given = {"metrics": METRIC, "more": "", **FAULTS[said]}
    folder = write_task(tmp_path, given.pop("metrics"), given.pop("more"), **given)
    row = the_failure(await examined(folder, Stage(usd_per_second=0.01)))
    assert said in f"{row.text}\n{row.advice}\n{row.log.decode()}"


def deaf(_: Mapping[str, bytes]) -> object:
    return {"score": -1.0}


def sound(outputs: Mapping[str, bytes]) -> object:
    """All cheats are no solution."""
    values = json.loads(outputs["answers.json"])["values"]
    return {"score": -1.0, "valid": values == [1.0, 2.0, 3.0]}


def formal(outputs: Mapping[str, bytes]) -> object:
    """What can be read scores, whatever it says."""
    try:
        return {"score": -1.0, "valid": bool(json.loads(outputs["answers.json"]))}
    except (KeyError, ValueError, RecursionError):
        return {"valid": False}


@pytest.mark.parametrize(("judge", "sign"), [(deaf, Sign.FAIL), (formal, Sign.WARN), (sound, None)])
async def test_whether_the_score_depends_on_the_candidate(tmp_path: Path, judge: Judge, sign: Sign | None) -> None:
    """A judge that gives every cheat the baseline's score never looks; one that does so for all that can be read may
    look at the form alone. One that refuses cheats, or scores a few of them alike, is well.
    """
    findings = await examined(write_task(tmp_path), Stage(judge=judge), cheats=True)
    found = [row for row in rows(findings, Section.CHEATS) if "the baseline's score" in row.text]
    assert [row.sign for row in found] == ([sign] if sign else [])
    assert findings.good is (sign is not Sign.FAIL)
    assert all("valid = false" in row.advice for row in found)


ALIKE = [0.4, 0.55, 0.6, 0.35, 0.62, 0.5, 0.45, 0.58, 0.52, 0.41, 0.49]


@pytest.mark.parametrize(
    ("values", "sign"),
    [
        (ALIKE, Sign.FAIL),
        ([*ALIKE[:10], -3.0], Sign.FAIL),
        ([*ALIKE[:8], -3.0, -3.0, -3.0], None),
        ([-3.0] * 11, None),
        ([*ALIKE[:10], None], Sign.WARN),
    ],
    ids=["noise alone", "one outside", "three outside", "all outside", "one refused"],
)
def test_a_judge_that_is_noisy(values: list[float | None], sign: Sign | None) -> None:
    """Scores that differ no more than those of the baseline's own runs are its score; one in ten may be further off."""
    bar = Bar(Ranking((Metric("score"),)), [{"score": it} for it in (0.5, 0.4, 0.6)])
    tried = [
        Tried(Oracle(str(place), {"a": b"x"}, ""), Fate.NO_BETTER, "", values=None if it is None else {"score": it})
        for place, it in enumerate(values)
    ]
    findings = Findings()
    tell_dependence(bar, [*tried, replace(tried[0], fate=Fate.KEPT_OUT)], {"a": b"y"}, findings)
    assert [row.sign for row in findings.rows] == ([sign] if sign else [])
    assert all("as near as its noise tells" in row.text for row in findings.rows)


async def test_a_held_out_split(tmp_path: Path) -> None:
    """It is tried with the baseline, and what that scores there is not told."""
    judge = "import sys\n" + JUDGE.replace("publish(-", "publish(('--held' in sys.argv) * -0.8765 -")
    findings = await examined(write_task(tmp_path, HELDOUT, files={"judge/judge.py": judge}))
    assert findings.good
    assert "8765" not in str(findings.rows)
    assert "the held-out split scores the baseline, too" in [row.text for row in rows(findings, Section.WIRING)]
    assert not [row for row in rows(findings, Section.WIRING, Sign.WARN) if "exactly the same" in row.text]


async def test_a_held_out_split_that_the_judge_ignores(tmp_path: Path) -> None:
    """A split that is judged like the other is no second opinion; that is said without a score."""
    held = '[heldout]\nstep = 0.5\nenv = {SPLIT = "held"}\n'
    findings = await examined(write_task(tmp_path, held))
    (row,) = [row for row in rows(findings, Section.WIRING, Sign.WARN) if "held-out" in row.text]
    assert row.text.startswith("the baseline scores exactly the same on the held-out split")
    assert not any(figure.isdigit() for figure in row.text + row.advice)
    assert not row.facts


@pytest.mark.parametrize("known", [False, True])
async def test_noise_of_the_trial(tmp_path: Path, known: bool) -> None:
    """Scores that differ are told with their spread, with the rule that fits them, and that the outputs differ too. A
    task whose rule is made for noise is not told to change it, but what its repeats cost.
    """
    code = SOLVE.replace("1.0, 2.0", "1.0 + os.getpid() % 1000 / 1e4, 2.0")
    folder = write_task(tmp_path, '[certify]\nrule = "noisy"\n' * known, files={"workspace/solve.py": code})
    findings = await examined(folder, runs=3)
    told = rows(findings, Section.NOISE)
    assert "in 3 runs" in told[0].text
    assert told[-1].text.startswith("the outputs differ")
    assert ('set certify.rule = "noisy", or take the noise out' in [row.advice for row in told]) is not known
    assert any("48 more runs" in row.text for row in rows(findings, Section.COST)) is known


async def test_noise_of_the_judge(tmp_path: Path) -> None:
    """The same outputs with different scores: the judge is at fault."""
    judge = JUDGE.replace("publish(-sum", "import os\n    publish(-os.getpid() % 1000 / 1e4 - sum")
    findings = await examined(write_task(tmp_path, files={"judge/judge.py": judge}), runs=3)
    assert rows(findings, Section.NOISE)[-1].text.endswith("so the noise is the judge's own")


def seeded(outputs: Mapping[str, bytes]) -> object:
    """Believes a result that the candidate left."""
    return json.loads(outputs["result.json"]) if "result.json" in outputs else {"score": -1.0}


def unbounded(outputs: Mapping[str, bytes]) -> object:
    """Has no limits on the numbers that it takes, and breaks on what is no number."""
    values = json.loads(outputs["answers.json"])["values"]
    near = all(value < 1e6 for value in values)
    return {"score": -min(abs(value - 2.6) for value in values) if near else max(values)}


@pytest.mark.parametrize(("judge", "cheat"), [(seeded, "result beside"), (unbounded, "huge")])
async def test_a_cheat_that_wins(tmp_path: Path, judge: Judge, cheat: str) -> None:
    """A judge that falls for a cheat fails the examination, and the cheat is named."""
    findings = await examined(write_task(tmp_path, ""), Stage(judge=judge), cheats=True)
    assert not findings.good
    won = [row.text for row in rows(findings, Section.CHEATS, Sign.FAIL)]
    assert any(text.startswith(f"“{cheat}” beats the baseline") for text in won), won


async def test_a_ceiling_stops_the_cheat(tmp_path: Path) -> None:
    """The same judge with a ceiling: the cheat is flagged, never kept, so it is no failure.

    Nor is a cheat that breaks the judge (T79): candidates pay for it. It is told with the judge's last words.
    """
    metric = '[[metrics]]\nname = "score"\nceiling = 0.0\n'
    findings = await examined(write_task(tmp_path, metric), Stage(judge=unbounded), cheats=True)
    assert findings.good
    assert any(row.text.startswith("beyond the ceiling") for row in rows(findings, Section.CHEATS, Sign.OK))
    (row,) = rows(findings, Section.CHEATS, Sign.NOTE)
    assert row.text.startswith("broke the judge: empty files;")
    assert "judge failed" in row.text
    assert b"JSONDecodeError" in row.log


async def test_a_canary_that_got_out(tmp_path: Path) -> None:
    """T40: a chamber in which the judge's files lie about fails the examination, with the place. Decoys that are not
    found prove that the search saw nothing: that is a warning, never an ok.
    """
    stage = Stage(leaks=True)
    row = the_failure(await examined(write_task(tmp_path / "leaks"), stage))
    assert row.section is Section.GOLD
    assert "leaked/judge/gold/.blastdoor-canary" in row.text
    findings = await examined(write_task(tmp_path / "blind"), stage := Stage(blind=True))
    assert [row.sign for row in rows(findings, Section.GOLD)] == [Sign.OK, Sign.WARN]
    (row,) = rows(findings, Section.CHEATS)
    assert (row.sign, row.text) == (Sign.WARN, "not tried, as you said")
    assert stage.jobs.count(("python3", "judge.py")) == 2, "the baseline, and the canary"
    (row,) = rows(findings, Section.NOISE)
    assert (row.sign, "only run; nothing is known about its spread" in row.text) == (Sign.NOTE, True)


@pytest.mark.parametrize("mode", ["data", "shared"])
@pytest.mark.parametrize("rule", ["strict", "noisy"])
async def test_a_dry_run_says_the_same(tmp_path: Path, mode: str, rule: str) -> None:
    """What an attempt sets aside has one figure and one note, with tuning, build and guard in it, in either mode."""
    more = (
        '[tune]\ntrials = 2\nlimits = {wall = "7s"}\n[parameters]\nfile = "notes.txt"\n[parameters.space]\n'
        'x = {type = "float", low = 0, high = 1}\n[[guards]]\nname = "g"\ncommand = ["true"]\nlimits = {wall = "3s"}\n'
        f'[certify]\nrule = "{rule}"\n'
    )
    folder = write_task(tmp_path, METRIC, more, trial='build = ["true"]', judge=f'mode = "{mode}"')
    task = load_task(folder)
    plan = plan_campaign(folder, How.START, Flags(), Settings())
    async with Stage().site() as site:
        parts = await make_parts(task, snapshot(task, folder), site)
        worst = worst_of_search(parts)
    walls = [it for reserved in walls_of_search(judge_mode_of(task), task) for it in reserved]
    spare = spare_of(DockerConfig()) * len(walls)
    here = parts.door.tariff.spare_s * len(walls)
    assert worst[Account.SECONDS] / 1000 == pytest.approx(plan.attempt_s - spare + here)
    runs = 1 if rule == "noisy" else 2
    # A trial with its judging in each run, one judging more where a judge breaks, two trials of tuning, and the guard.
    assert len(walls) == (2 * runs + 1 + 3 * 2 + 1 if mode == "data" else runs + 2 + 1)
    assert sum(it.builds for it in walls) == (runs + 2 if mode == "data" else 0)
    assert plan.beyond == parts.certify.beyond
    assert ("up to 48 more runs" in plan.beyond) == (rule == "noisy")


SHARED = """import json, os
from pathlib import Path
found = (Path(os.environ["BLASTDOOR_CANDIDATE"]) / "solve.py").read_bytes()
with open(os.environ["BLASTDOOR_RESULT_PATH"], "w") as file:
    json.dump({"score": -1.0 - found.count(b"9") - 5 * (b"values" not in found)}, file)
"""


@pytest.mark.parametrize(
    ("judge", "good"),
    [(SHARED, True), (SHARED.replace("5 *", "0 *"), False), (SHARED.replace("found.count", "0 * found.count"), True)],
    ids=["looks", "looks for what is not there", "tells a ruin"],
)
async def test_a_shared_judge_that_does_not_look(tmp_path: Path, judge: str, good: bool) -> None:
    """Where every editable file may be ruined and the score stays, it does not depend on the candidate: not ready. The
    candidate can forge its score here, and nothing pretends otherwise; whatever the task names of its outputs, the
    result gets through.
    """
    trial = 'outputs = ["answers.json"]'
    folder = write_task(tmp_path, METRIC, trial=trial, judge='mode = "shared"', files={"judge/judge.py": judge})
    findings = await examined(folder, cheats=True)
    told = rows(findings, Section.CHEATS, Sign.FAIL)
    assert findings.good is good is (not told)
    assert all(row.text.endswith("(score = -1): it does not depend on the candidate") for row in told)
    assert all(row.advice.startswith("let the score come from what the candidate did") for row in told)
    warned = "\n".join(row.text for row in findings.rows if row.sign is Sign.WARN)
    assert "forge its score" in warned
    assert "gold lies in the candidate's chamber" in warned


async def test_an_image_that_can_not_be_baked(tmp_path: Path) -> None:
    """It is a row like any other, not the end of the program."""

    def bake(_: object) -> None:
        raise Refused("there is no numpy==99; choose another version")

    row = the_failure(await examined(write_task(tmp_path), Stage(baking=bake)))  # type: ignore[arg-type]
    assert "there is no numpy==99" in row.text


@pytest.mark.parametrize("judging", [False, True])
async def test_an_engine_that_fails_is_no_finding(tmp_path: Path, judging: bool) -> None:
    """It says nothing about the task, nor is it the judge's fault, so it is raised."""
    stage = Stage()

    def gone(_: object) -> object:
        stage.world.cut()
        raise ValueError

    folder = write_task(tmp_path)
    async with stage.site() as site:
        stage.judge = gone if judging else None
        stage.world.answers = judging
        with pytest.raises(Unavailable):
            await examine(load_task(folder), folder, site, Settings(), Findings())
        stage.world.answers = True


def test_figures_and_chance() -> None:
    """Gold that is small is alike by chance; a cheat with the baseline's own answer scores like it, with its luck;
    figures of another form, or none, are no figures.
    """
    gold = Tree.of({"gold/a": "", "gold/b": "x" * 100})
    digests = [hashlib.sha256(file.data).hexdigest() for file in gold.values()]
    assert copies_of_gold(gold, dict(zip(digests, ("a", "b"), strict=True))) == [("gold/b", "b")]
    for goal, sign in ((Goal.HIGHER, 1), (Goal.LOWER, -1)):
        for apart, value in ((0, 1.001), (0.2, 1.5)):
            bar = Bar(Ranking([Metric(goal=goal)]), [{"score": sign * run} for run in (1.0, 1.0 + apart)])
            assert bar.passed({"score": sign * value})
            assert not bar.passed({"score": sign * (1.0 + apart)})
            assert not bar.passed({"score": sign * (1.0 + 1.5 * apart)}), "better than all, by less than they differ"
    assert measured("0m0.000s 0m0.000s\n1m2.500s 0m0.500s\npeak 4096\n") == (63.0, 4096)
    assert measured("0m0.00s 0m0.00s\n0m0.01s 0m0.02s\n") == (0.03, None)
    for told in ("", "peak 99999999999999999999999\n", "rubbish\x00 0m\n"):
        assert measured(told) == (None, None)


async def test_a_model_that_can_not_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `run` would refuse to begin, the task is not fit to be searched; with a key it is."""
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = write_task(tmp_path, METRIC, '[search]\nproposer = "llm"\n')
    assert "there is no key for one" in the_failure(await examined(folder)).text
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert (await examined(folder)).good
