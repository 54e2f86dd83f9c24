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


def told(*words: str | Path) -> Any:
    ran = blastdoor(*words, "--json")
    assert ran.exception is None, ran.output
    return json.loads(ran.output)


def test_init_once(tmp_path: Path) -> None:
    """It writes a task and names its files; a folder that holds something is left alone."""
    assert str(tmp_path / "t" / "blastdoor.toml") in told("init", tmp_path / "t")["files"]
    again = blastdoor("init", tmp_path / "t")
    assert again.exit_code == 2
    assert "not an empty folder" in again.output


def test_dry_run(tmp_path: Path) -> None:
    """Every value with its place, the worst case, and no campaign."""
    blastdoor("init", tmp_path / "t")
    plan = told("run", tmp_path / "t", "--dry-run", "--attempts", "7", "--width", "2")
    assert (plan["options"]["attempts"], plan["sources"]["attempts"]) == (7, "flag")
    assert plan["sources"]["wall"] == "task"
    assert plan["wall_s"] == pytest.approx(7 * plan["attempt_s"] / 2)
    assert not (tmp_path / "t" / ".blastdoor").exists()
    assert "7  (flag)" in blastdoor("run", tmp_path / "t", "--dry-run", "--attempts", "7").output


def test_a_dry_run_tells_the_price(tmp_path: Path) -> None:
    """Where it would run, what a second costs, what a trial sets aside at worst, and what the judge runs on."""
    blastdoor("init", tmp_path / "t")
    folder = tmp_path / "t"
    here = told("run", folder, "--dry-run")
    assert here["site"]["judge"] == here["site"]["backend"] == "docker/runc"
    assert here["attempt_usd"] == 0
    rented = told("run", folder, "--dry-run", "--backend", "modal", "--gpu", "A10")
    assert (rented["site"]["backend"], rented["site"]["judge"]) == ("modal/A10", "docker/runc")
    assert rented["site"]["usd_per_second"] > 0.0003
    # Opening and ending are paid for too; judges cost nothing, so an attempt is its trial and its replay. Whichever of
    # them breaks off is the last, so there is one control job.
    assert rented["site"]["trial_usd"] < rented["attempt_usd"] < 2 * rented["site"]["trial_usd"]
    assert rented["site"]["trial_usd"] > rented["site"]["usd_per_second"] * 360
    said = blastdoor("run", folder, "--dry-run", "--backend", "modal", "--gpu", "A10").output
    assert "candidates run on modal/A10, at $0.0003" in said
    assert "the judge runs on docker/runc, which costs nothing" in said
    unknown = blastdoor("run", folder, "--dry-run", "--backend", "skypilot", "--infra", "aws").output
    assert "at a price that is asked for when it begins" in unknown
    assert unknown.count("dollars not known yet") == 2
    assert "$" not in unknown
    rented = told("run", folder, "--dry-run", "--backend", "skypilot", "--infra", "aws")
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
def test_a_dry_run_refuses_places_sizes_and_caps(tmp_path: Path, words: list[str], line: str) -> None:
    """What no provider would give, or we would not take, has no plan."""
    blastdoor("init", tmp_path / "t")
    assert line in str(blastdoor("run", tmp_path / "t", "--dry-run", *words).exception)


@pytest.mark.parametrize(
    ("there", "missing"),
    [(["rsync"], "ssh"), (["ssh"], "rsync"), ([], "ssh, rsync")],
    ids=["no ssh", "no rsync", "neither"],
)
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_programs_that_skypilot_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, there: list[str], missing: str
) -> None:
    """A machine without a program by which rented ones are reached rents nothing and says what to install."""
    blastdoor("init", tmp_path / "t")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in there:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr("sandbox.backends.skypilot.backend._installed", lambda: pytest.fail("SkyPilot was asked"))
    words = [tmp_path / "t"] if command == "run" else []
    ran = blastdoor(command, *words, "--backend", "skypilot", "--infra", "aws")
    assert isinstance(ran.exception, Refused)  # exit code 2
    assert str(ran.exception) == (
        f"SkyPilot reaches what it rents by ssh and rsync, and this machine has no {missing}; install it first"
        " (on Debian: apt-get install openssh-client rsync)"
    )
    assert not (tmp_path / "t" / ".blastdoor").exists()


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


def test_a_price_makes_dollars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a processor's hour costs is a setting; without one, one's own machine costs nothing."""
    blastdoor("init", tmp_path / "t")
    assert told("run", tmp_path / "t", "--dry-run")["attempt_usd"] == 0
    monkeypatch.setenv("BLASTDOOR_USD_PER_HOUR", "$3.6")
    plan = told("run", tmp_path / "t", "--dry-run")
    assert plan["attempt_usd"] == pytest.approx(plan["attempt_s"] * 0.001)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--usd", "lots"], "lots"),
        (["--wall", "soon"], "is not a duration"),
        (["--rate", "3"], "3"),
        (["--attempts", "0"], "0"),
        (["--from", "1.2"], "--from needs --new-run"),
        (["--proposer", "magic"], "magic"),
    ],
)
def test_flags_that_make_no_sense(tmp_path: Path, words: list[str], line: str) -> None:
    """One line that names what is wrong, exit code 2, nothing started."""
    blastdoor("init", tmp_path / "t")
    ran = blastdoor("run", tmp_path / "t", *words)
    assert ran.exit_code == 2
    assert line in ran.output
    assert not (tmp_path / "t" / ".blastdoor").exists()


def test_a_typo_in_the_task_is_told_before_an_engine_is_looked_for(tmp_path: Path) -> None:
    """With the key, the line and the nearest right key."""
    blastdoor("init", tmp_path / "t")
    file = tmp_path / "t" / "blastdoor.toml"
    file.write_text(file.read_text().replace("editable =", "editabel ="))
    ran = runner(env={"DOCKER_HOST": "unix:///nonexistent"}).invoke(cli, ["run", str(tmp_path / "t")])
    assert "editable" in str(ran.exception)
    assert "editabel" in str(ran.exception)


def test_json_of_a_shell_needs_a_line(tmp_path: Path) -> None:
    """A conversation has no end to print."""
    ran = blastdoor("shell", "1.1", tmp_path, "--json")
    assert ran.exit_code == 2
    assert "-c LINE" in ran.output


@pytest.mark.parametrize(
    ("words", "variables", "line"),
    [
        ([], {}, "there is no key for one"),
        ([], {"ANTHROPIC_API_KEY": "k", "BLASTDOOR_MODELS": '["claude-foo"]'}, "model.models: no price is known"),
        (["--usd", "0.01"], {"ANTHROPIC_API_KEY": "k"}, "--usd of $0.01 is not enough"),
    ],
)
def test_a_dry_run_refuses_what_a_run_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, str], line: str
) -> None:
    """No price is told for what cannot be asked."""
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    blastdoor("init", tmp_path / "t")
    assert line in str(blastdoor("run", tmp_path / "t", "--dry-run", "--proposer", "llm", *words).exception)


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
