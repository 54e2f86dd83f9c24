"""What is said without an engine: by `init`, by a dry run, which leaves nothing behind, and where one never answers."""

import json
import os
import signal
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from orchestrator.views.cli import cli
from sandbox import Refused
from tests.clicking import runner
from tests.orchestrator.views.judging.stage import write_task
from tests.started import Started


def blastdoor(*words: str | Path) -> Result:
    return runner().invoke(cli, [str(word) for word in words])


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """As `init` writes it."""
    assert blastdoor("init", tmp_path / "t").exit_code == 0
    return tmp_path / "t"


def told(*words: str | Path) -> Any:
    ran = blastdoor(*words, "--json")
    assert ran.exception is None, ran.output
    return json.loads(ran.output)


def test_init_once(tmp_path: Path) -> None:
    """It writes a task and names its files; a folder that holds something is left alone."""
    assert str(tmp_path / "t" / "blastdoor.toml") in told("init", tmp_path / "t")["files"]
    again = blastdoor("init", tmp_path / "t")
    assert (again.exit_code, "not an empty folder" in again.output) == (2, True)


def test_dry_run(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value with its place, the worst case, and no campaign. What a processor's hour costs is a setting; without
    one, one's own machine costs nothing.
    """
    plan = told("run", task, "--dry-run", "--attempts", "7", "--width", "2")
    assert (plan["options"]["attempts"], plan["sources"]["attempts"], plan["sources"]["wall"]) == (7, "flag", "task")
    assert (plan["wall_s"], plan["attempt_usd"]) == (pytest.approx(7 * plan["attempt_s"] / 2), 0)
    assert not (task / ".blastdoor").exists()
    assert "7  (flag)" in blastdoor("run", task, "--dry-run", "--attempts", "7").output
    monkeypatch.setenv("BLASTDOOR_USD_PER_HOUR", "$3.6")
    plan = told("run", task, "--dry-run")
    assert plan["attempt_usd"] == pytest.approx(plan["attempt_s"] * 0.001)


def test_a_dry_run_tells_the_price(task: Path) -> None:
    """Where it would run, what a second costs, what a trial sets aside at worst, and what the judge runs on."""
    here = told("run", task, "--dry-run")["site"]
    assert here["judge"] == here["backend"] == "docker/runc"
    rented = told("run", task, "--dry-run", "--backend", "modal", "--gpu", "A10")
    site = rented["site"]
    assert (site["backend"], site["judge"]) == ("modal/A10", "docker/runc")
    assert site["usd_per_second"] > 0.0003
    # Opening and ending are paid for too; judges cost nothing, so an attempt is its trial and its replay. Whichever of
    # them breaks off is the last, so there is one control job.
    assert site["trial_usd"] < rented["attempt_usd"] < 2 * site["trial_usd"]
    assert site["trial_usd"] > site["usd_per_second"] * 360
    said = blastdoor("run", task, "--dry-run", "--backend", "modal", "--gpu", "A10").output
    assert "candidates run on modal/A10, at $0.0003" in said
    assert "the judge runs on docker/runc, which costs nothing" in said
    unknown = blastdoor("run", task, "--dry-run", "--backend", "skypilot", "--infra", "aws").output
    assert "at a price that is asked for when it begins" in unknown
    assert (unknown.count("dollars not known yet"), "$" in unknown) == (2, False)
    rented = told("run", task, "--dry-run", "--backend", "skypilot", "--infra", "aws")
    assert rented["usd"] is rented["attempt_usd"] is rented["site"]["trial_usd"] is None


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--backend", "skypilot", "--infra", "kubernetes/foo"], "no chamber is rented at kubernetes"),
        (["--backend", "skypilot", "--infra", "runpod"], "no chamber is rented at runpod"),
        (["--backend", "skypilot", "--infra", "nosuch/cloud"], "the place 'nosuch/cloud' is not known here"),
        (["--backend", "modal", "--gpu", "A10:9"], "at most 4 GPUs of kind A10"),
        (["--backend", "skypilot", "--infra", "aws", "--gpu", "any"], "needs the kind of its GPU"),
        (["--backend", "modal", "--usd", "0.01"], "--usd of $0.01 is not enough for one attempt on modal"),
    ],
)
def test_a_dry_run_refuses_places_sizes_and_caps(task: Path, words: list[str], line: str) -> None:
    """What no provider would give, or we would not take, has no plan."""
    assert line in str(blastdoor("run", task, "--dry-run", *words).exception)


@pytest.mark.parametrize(
    ("there", "missing"),
    [(["rsync"], "ssh"), (["ssh"], "rsync"), ([], "ssh, rsync")],
    ids=["no ssh", "no rsync", "neither"],
)
def test_programs_that_skypilot_needs(
    tmp_path: Path, task: Path, monkeypatch: pytest.MonkeyPatch, there: list[str], missing: str
) -> None:
    """A machine without a program by which rented ones are reached rents nothing and says what to install."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in there:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("sandbox.backends.skypilot.backend.installed", lambda: pytest.fail("SkyPilot was asked"))
    for words in (["run", task], ["doctor"]):
        ran = blastdoor(*words, "--backend", "skypilot", "--infra", "aws")
        assert isinstance(ran.exception, Refused)  # exit code 2
        assert str(ran.exception) == (
            f"SkyPilot reaches what it rents by ssh and rsync, and this machine has no {missing}; install it first"
            " (on Debian: apt-get install openssh-client rsync)"
        )
    assert not (task / ".blastdoor").exists()


def test_a_dry_run_knows_what_a_place_can() -> None:
    """A judge that calls needs a backend that carries frames: a plan has the capabilities of the real one."""
    folder = Path(__file__).parents[4] / "examples" / "speedup"
    ran = blastdoor("run", folder, "--dry-run", "--backend", "skypilot", "--infra", "aws")
    assert 'judge.mode is "relay"' in str(ran.exception)
    assert blastdoor("run", folder, "--dry-run", "--backend", "modal").exit_code == 0


def test_a_dry_run_names_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom it would ask, for how much, and where both come from; nothing where nobody is asked."""
    folder = write_task(tmp_path, '[search]\nproposer = "llm"\n[model]\nusd = "$0.20"\n')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "one that nobody is asked with")
    [line] = told("run", folder, "--dry-run")["models"]
    assert line == "model claude-opus-5-5 (default), $0.20 an attempt (task)"
    assert f"{line}\n" in blastdoor("run", folder, "--dry-run").output
    assert told("run", folder, "--dry-run", "--proposer", "operators")["models"] == []


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    """A proposer that the task has no space for is refused where it counts, and only there."""
    folder = write_task(tmp_path, '[search]\nproposer = "random"\n')
    assert told("run", folder, "--dry-run", "--proposer", "operators")["options"]["proposer"] == "operators"
    assert "the proposer random needs [parameters]" in str(blastdoor("run", folder, "--dry-run").exception)
    folder = write_task(tmp_path, '[search]\nproposer = "operators"\ncontrol = "random"\n')
    assert "the control random draws points" in str(blastdoor("run", folder, "--dry-run").exception)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run", "--usd", "lots"], "lots"),
        (["run", "--wall", "soon"], "is not a duration"),
        (["run", "--rate", "3"], "3"),
        (["run", "--attempts", "0"], "0"),
        (["run", "--from", "1.2"], "--from needs --new-run"),
        (["run", "--proposer", "magic"], "magic"),
        (["shell", "1.1", "--json"], "-c LINE"),  # a conversation has no end to print
    ],
)
def test_flags_that_make_no_sense(task: Path, words: list[str], line: str) -> None:
    """One line that names what is wrong, exit code 2, nothing started."""
    ran = blastdoor(*words, task)
    assert (ran.exit_code, line in ran.output) == (2, True)
    assert not (task / ".blastdoor").exists()


def test_a_typo_in_the_task_is_told_before_an_engine_is_looked_for(task: Path) -> None:
    """With the key, the line and the nearest right key."""
    file = task / "blastdoor.toml"
    file.write_text(file.read_text().replace("editable =", "editabel ="))
    ran = runner(env={"DOCKER_HOST": "unix:///nonexistent"}).invoke(cli, ["run", str(task)])
    assert "editable" in str(ran.exception)
    assert "editabel" in str(ran.exception)


@pytest.mark.parametrize(
    ("words", "variables", "line"),
    [
        ([], {}, "there is no key for one"),
        ([], {"ANTHROPIC_API_KEY": "k", "BLASTDOOR_MODELS": '["claude-foo"]'}, "model.models: no price is known"),
        (["--usd", "0.01"], {"ANTHROPIC_API_KEY": "k"}, "--usd of $0.01 is not enough"),
    ],
)
def test_a_dry_run_refuses_what_a_run_would(
    task: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, str], line: str
) -> None:
    """No price is told for what cannot be asked."""
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert line in str(blastdoor("run", task, "--dry-run", "--proposer", "llm", *words).exception)


def ended_by(number: int, folder: Path, *words: str | Path) -> list[str]:
    """What a command says on stderr that gets a signal while the engine, which does not answer, is asked."""
    place = str(folder / "engine")
    with socket.socket(socket.AF_UNIX) as engine, tempfile.TemporaryFile() as stderr:
        engine.bind(place)
        engine.listen()
        env = {**os.environ, "DOCKER_HOST": f"unix://{place}", "BLASTDOOR_DOCKER_HOST": f"unix://{place}"}
        with Started(*words, env=env, stderr=stderr) as process:
            asked, _ = engine.accept()
            with asked:
                process.send_signal(number)
                assert process.wait() == 130
        stderr.seek(0)
        return stderr.read().decode().splitlines()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_a_campaign_is_open(tmp_path: Path, number: int) -> None:
    """One line and exit code 130; nothing is on record."""
    folder = write_task(tmp_path / "t")
    [line] = ended_by(number, tmp_path, "run", folder, "--proposer", "operators")
    assert line == "interrupted before it began (Ctrl-C again ends at once); run it again"
    assert not (folder / ".blastdoor").exists()


@pytest.mark.parametrize("command", ["check", "audit", "doctor", "exec"])
def test_ctrl_c_where_an_engine_does_not_answer(tmp_path: Path, command: str) -> None:
    """It ends while a thread still waits for the engine, which may be minutes."""
    words = {"doctor": [], "exec": ["--", "true"]}.get(command, [write_task(tmp_path / "t")])
    assert ended_by(signal.SIGINT, tmp_path, command, *words)[-1] == "blastdoor: interrupted"
