"""A campaign whose changes come from a model, from the command line, in real chambers, and all that can be wrong."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_campaign import ENVIRONMENT
from tests.messages import MessagesServer, Reply, Text
from tests.started import WITH_MODELS, completed

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

_FILES = {
    "blastdoor.toml": """name = "count"
statement = "Write the largest number that you can to answer.txt."
editable = ["answer.py"]
trial = {command = "python3 answer.py", outputs = ["answer.txt"]}
limits = {wall = "20s", memory = "64MiB"}

[judge]
command = "sh judge.sh"
limits = {wall = "20s", memory = "64MiB"}

[model]
models = ["claude-sonnet-5-5"]
""",
    "workspace/answer.py": """import os

VALUE = 1
open(os.environ["BLASTDOOR_OUT"] + "/answer.txt", "w").write(str(VALUE))
""",
    "workspace/setup.py": "# nobody may change this\n",
    "judge/judge.sh": """value=$(tr -cd 0-9 < ../outputs/answer.txt)
echo "{\\"score\\": $value}" > "$BLASTDOOR_RESULT_PATH"
""",
}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def change(value: int, before: int = 1, path: str = "answer.py") -> str:
    block = f"{path}\n<<<<<<< SEARCH\nVALUE = {before}\n=======\nVALUE = {value}\n>>>>>>> REPLACE\n"
    return f"=== change: count to {value}\n{block}"


def run(server: MessagesServer, *words: str | Path, key: str | None = None) -> subprocess.CompletedProcess[str]:
    mine = {"BLASTDOOR_API_URL": server.url, "ANTHROPIC_API_KEY": server.key if key is None else key}
    return completed(*words, warm=WITH_MODELS, env={**ENVIRONMENT, **mine})


def told(server: MessagesServer, *words: str | Path) -> Any:
    ran = run(server, *words, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_model_improves_a_task(task: Path, messages_server: MessagesServer) -> None:
    """Three changes in one call are three attempts; the best is kept, every dollar is on record, the key nowhere."""
    messages_server.play(Reply((Text(change(5) + change(9) + change(7)),)))
    ran = run(messages_server, "run", task, "--proposer", "llm", "--attempts", "3", "--usd", "1")
    assert ran.returncode == 0, ran.stderr
    assert len(messages_server.requests) == 1
    best = told(messages_server, "show", "best", task)
    assert '"score": 9' in json.dumps(best)
    status = told(messages_server, "status", task)
    assert 0 < status["accounts"]["usd"]["used"] < 1_000_000
    for path in (path for path in (task / ".blastdoor").rglob("*") if path.is_file()):
        assert messages_server.key.encode() not in path.read_bytes(), path
    assert messages_server.key not in ran.stdout + ran.stderr


def test_a_change_that_does_not_apply_is_told_back_once(task: Path, messages_server: MessagesServer) -> None:
    """Within the same attempt; the second answer is taken."""
    messages_server.play(Reply((Text(change(5, before=4)),)), Reply((Text(change(5)),)))
    ran = run(messages_server, "run", task, "--proposer", "llm", "--attempts", "1")
    assert ran.returncode == 0, ran.stderr
    second = json.dumps(messages_server.bodies[1]["messages"])
    assert "answer.py" in second
    assert told(messages_server, "status", task)["best"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (["I would count higher."] * 2, "no change"),
        ([change(5, path="setup.py")] * 2, "not editable: setup.py"),
    ],
)
def test_an_answer_that_is_no_change(
    task: Path, messages_server: MessagesServer, answers: list[str], words: str
) -> None:
    """Prose, or a change to the wrong file: asked twice, then an attempt that ended invalid, and the run goes on."""
    messages_server.play(*(Reply((Text(answer),)) for answer in answers), Reply((Text(change(3)),)))
    ran = run(messages_server, "run", task, "--proposer", "llm", "--attempts", "2")
    assert ran.returncode == 0, ran.stderr
    assert words in ran.stderr
    assert "score=3" in ran.stdout


def test_a_refused_key(task: Path, messages_server: MessagesServer) -> None:
    """One line, exit code 2, nothing charged."""
    ran = run(messages_server, "run", task, "--proposer", "llm", key="sk-ant-api03-wrong")
    assert ran.returncode == 2
    last = ran.stderr.strip().splitlines()[-1]
    assert "refuses the key" in last
    assert "nothing was charged" in last
    assert "sk-ant-api03-wrong" not in ran.stderr
    assert told(messages_server, "status", task)["accounts"]["usd"]["used"] == 0


@pytest.mark.parametrize(
    ("words", "key", "expected"),
    [
        (["--proposer", "llm"], "", "there is no key"),
        (["--proposer", "llm", "--usd", "0"], None, "raise --usd"),
    ],
)
def test_what_is_missing(
    task: Path, messages_server: MessagesServer, words: list[str], key: str | None, expected: str
) -> None:
    """Said in one line before anything is asked."""
    ran = run(messages_server, "run", task, *words, key=key)
    assert ran.returncode == 2
    assert expected in ran.stderr.strip().splitlines()[-1]
    assert not messages_server.requests


def test_an_unknown_model(task: Path, messages_server: MessagesServer) -> None:
    """It has no price, so it is asked nothing."""
    text = (task / "blastdoor.toml").read_text().replace("claude-sonnet-5-5", "claude-nobody-9")
    (task / "blastdoor.toml").write_text(text)
    ran = run(messages_server, "run", task, "--proposer", "llm")
    assert ran.returncode == 2
    assert "claude-nobody-9" in ran.stderr.strip().splitlines()[-1]
    assert not messages_server.requests


def test_a_secret_in_the_workspace(task: Path, messages_server: MessagesServer) -> None:
    """Neither a prompt nor a message of ours shows it."""
    secret = "AKIA" + "Z7QX2M4N8B5V1C3L"
    (task / "workspace" / "config.py").write_text(f'KEY = "{secret}"\n')
    ran = run(messages_server, "run", task, "--proposer", "llm")
    assert ran.returncode == 2
    assert "config.py" in ran.stderr.strip().splitlines()[-1]
    assert secret not in ran.stderr
    assert not messages_server.requests


def test_nothing_of_ours_reaches_a_chamber(task: Path, messages_server: MessagesServer) -> None:
    """The key is in our own environment, and not in that of the code that runs (T62)."""
    spy = (
        "=== change: look around\nanswer.py\n<<<<<<< SEARCH\nVALUE = 1\n=======\nprint(dict(os.environ))\n"
        "VALUE = 2\n>>>>>>> REPLACE\n"
    )
    messages_server.play(Reply((Text(spy),)))
    ran = run(messages_server, "run", task, "--proposer", "llm", "--attempts", "1")
    assert ran.returncode == 0, ran.stderr
    logged = run(messages_server, "logs", "1.1", task)
    assert "BLASTDOOR_OUT" in logged.stdout
    assert messages_server.key not in logged.stdout
    assert "ANTHROPIC" not in logged.stdout
