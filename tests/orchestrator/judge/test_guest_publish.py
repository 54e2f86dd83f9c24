"""The helper for judges: one result, whole or not at all; and the same in a few lines of shell."""

import ast
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.judge.contract import ResultFault, ResultRefused, parse_result
from orchestrator.judge.guest import blastdoor_judge
from tests.orchestrator.judge.judges import GUEST, Chamber

BOTH = ("BLASTDOOR_RESULT_PATH", "EVO_RESULT_PATH")
SHELLS = [shell for shell in ("dash", "bash", "sh") if shutil.which(shell)]


@pytest.fixture
def chamber(tmp_path: Path) -> Chamber:
    return Chamber(tmp_path)


def test_a_result(chamber: Chamber) -> None:
    """What the helper writes, the contract reads; nothing is left beside it."""
    code = """
import blastdoor_judge as judge
judge.trace("a/b", 0.5, status="passed", log="x" * 50_000)
judge.trace("a_b", 1)
notes = "\\ud800" + "n" * 9000
judge.publish(2, metrics={"loss": 0.5}, tasks={"a": 1}, tasks_meta={"a": {"direction": "lower"}}, notes=notes)
"""
    ran = chamber.run(code)
    assert (ran.code, ran.stdout) == (0, ""), ran.stderr
    result = parse_result(ran.outputs)
    assert (result.score, result.metrics, result.tasks) == (2.0, {"loss": 0.5}, {"a": 1.0})
    assert result.directions == {"a": "lower"}
    assert result.bad_traces == 0
    assert {trace.task_id: trace.score for trace in result.traces} == {"a/b": 0.5, "a_b": 1.0}
    assert len(ran.outputs) == 3


def test_the_other_name(chamber: Chamber) -> None:
    """The path may come under the name of the other ecosystem."""
    path = {"EVO_RESULT_PATH": str(chamber.out / "result.json"), "EVO_TRACES_DIR": str(chamber.out / "traces")}
    code = "import blastdoor_judge as judge\njudge.trace('a', 1)\njudge.publish(1)"
    ran = chamber.run(code, without=("BLASTDOOR_RESULT_PATH", "BLASTDOOR_TRACES_DIR"), env=path)
    assert sorted(ran.outputs) == ["result.json", "traces/task_a.json"]


def test_stdout_without_a_path(chamber: Chamber) -> None:
    """Where no path is set the result goes to stdout, once; traces go nowhere."""
    code = "import blastdoor_judge as judge\njudge.trace('a', 1)\njudge.publish(1.5)\njudge.publish(2)"
    ran = chamber.run(code, without=("BLASTDOOR_RESULT_PATH", "BLASTDOOR_TRACES_DIR"))
    assert ran.code == 1
    assert "AlreadyPublished" in ran.stderr
    assert json.loads(ran.stdout)["score"] == 1.5
    assert ran.outputs == {}


def test_one_of_many_processes(chamber: Chamber) -> None:
    """Of several judges at once exactly one publishes, and nobody twice."""
    code = "import blastdoor_judge, os\nblastdoor_judge.publish(os.getpid())"
    words = [sys.executable, "-c", code]
    crowd = [subprocess.Popen(words, cwd=chamber.judge, env=chamber.env, stderr=subprocess.DEVNULL) for _ in range(6)]
    codes = [each.wait(60) for each in crowd]
    assert sorted(codes) == [0, 1, 1, 1, 1, 1]
    winner = crowd[codes.index(0)]
    assert parse_result(chamber.harvest()).score == winner.pid


KILLED = """
import os, pathlib, signal, blastdoor_judge
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
blastdoor_judge.publish(1)
"""
KILLED_SHELL = """. ./publish.sh; mv() { kill -9 $$; }; publish '{"score": 0.5}'"""


@pytest.mark.parametrize("argv", [[sys.executable, "-c", KILLED], *([it, "-c", KILLED_SHELL] for it in SHELLS)])
def test_killed_between_claim_and_rename(chamber: Chamber, argv: list[str]) -> None:
    """A judge that dies while it publishes leaves an empty claim, which is a failed run and never half a result."""
    ran = chamber.call(argv)
    assert ran.code == -signal.SIGKILL
    with pytest.raises(ResultRefused) as refused:
        parse_result(ran.outputs)
    assert refused.value.code is ResultFault.EMPTY
    assert b'"score": ' in b"".join(ran.outputs.values())


@pytest.mark.parametrize("score", ["float('nan')", "float('inf')", "'1'", "True", "None", "10**400", "[]"])
def test_t38_no_score_but_a_finite_number(chamber: Chamber, score: str) -> None:
    """Refused before anything is claimed, so that the judge can still say that there is no solution."""
    code = f"""
import blastdoor_judge as judge
try:
    judge.publish({score})
except ValueError:
    judge.invalid("no number came out")
"""
    ran = chamber.run(code)
    assert ran.code == 0, ran.stderr
    result = parse_result(ran.outputs)
    assert (result.valid, result.score, result.notes) == (False, None, "no number came out")


def test_bad_output_is_no_solution(chamber: Chamber) -> None:
    """BadOutput becomes a result; any other error stays the judge's own."""
    bad = "from blastdoor_judge import *\nwith judging():\n    load_json('absent.json')"
    ran = chamber.run(bad)
    assert ran.code == 0, ran.stderr
    assert not parse_result(ran.outputs).valid
    (chamber.out / "result.json").unlink()
    ran = chamber.run("from blastdoor_judge import *\n@judging()\ndef judge():\n    1 / 0\njudge()")
    assert ran.code == 1
    assert ran.outputs == {}


def test_the_example_works(chamber: Chamber) -> None:
    """The lines of the helper's own description are a judge."""
    description = blastdoor_judge.__doc__ or ""
    code = "\n".join(line[4:] for line in description.splitlines() if line.startswith("    "))
    (chamber.candidate / "answer.json").write_text("[1, 2.5, 3]")
    ran = chamber.run(code)
    assert ran.code == 0, ran.stderr
    result = parse_result(ran.outputs)
    assert (result.score, result.metrics, len(result.traces)) == (-0.5, {"worst": 0.5}, 3)
    (chamber.out / "result.json").unlink()
    (chamber.candidate / "answer.json").write_text("[1, NaN, 3]")
    assert not parse_result(chamber.run(code).outputs).valid


def test_it_needs_nothing_new() -> None:
    """The helper is one file of Python 3.9 that imports the standard library only."""
    tree = ast.parse((GUEST / "blastdoor_judge.py").read_text(), feature_version=(3, 9))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match | ast.TryStar)]
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def test_it_begins_with_little() -> None:
    """Every judge imports it: what takes long to import and only some use is not among what it brings."""
    code = f"import sys; sys.path.insert(0, {str(GUEST)!r}); import blastdoor_judge; print(*sys.modules)"
    # Without site, where packages that are installed may import whatever they like.
    brought = subprocess.run([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "blastdoor_judge" in brought.split()
    assert not {"csv", "hashlib", "random", "shutil", "tempfile", "typing"} & set(brought.split())


@pytest.mark.parametrize("shell", SHELLS)
def test_any_shell_can_publish(chamber: Chamber, shell: str) -> None:
    """Claimed exclusively, written beside, renamed; a second one fails and changes nothing. Without a path the result
    goes to stdout.
    """
    ran = chamber.call([shell, "-c", """. ./publish.sh; publish '{"score": 0.5}' && publish '{"score": 1}'"""])
    assert (ran.code, "claimed already" in ran.stderr) == (1, True)
    assert list(ran.outputs) == ["result.json"]
    assert parse_result(ran.outputs).score == 0.5
    (chamber.out / "result.json").unlink()
    ran = chamber.call([shell, "-euc", """. ./publish.sh; publish '{"score": 0.5}'"""], without=BOTH)
    assert (ran.code, json.loads(ran.stdout), ran.outputs) == (0, {"score": 0.5}, {})
