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


SPY = """=== change: look around
answer.py
<<<<<<< SEARCH
import os
=======
import os
print(dict(os.environ))
>>>>>>> REPLACE
"""


def test_a_model_improves_a_task(task: Path, messages_server: MessagesServer) -> None:
    """A change that does not apply is told back once, within its attempt; three changes in one call are three attempts;
    prose, and a change to the wrong file, end one as invalid, and the run goes on. The best is kept, every dollar is on
    record, and the key is nowhere, nor anything of ours in a chamber (T62).
    """
    three = change(5) + change(9) + change(7)
    said = [change(5, before=4), three, "Higher, I would say.", change(5, path="setup.py"), SPY]
    messages_server.play(*(Reply((Text(text),)) for text in said))
    ran = run(messages_server, "run", task, "--proposer", "llm", "--attempts", "5", "--usd", "1", "--width", "1")
    assert ran.returncode == 0, ran.stderr
    assert len(messages_server.requests) == 5
    assert "answer.py" in json.dumps(messages_server.bodies[1]["messages"])
    assert "no change" in json.dumps(messages_server.bodies[3]["messages"])
    assert "not editable: setup.py" in ran.stderr
    assert '"score": 9' in json.dumps(told(messages_server, "show", "best", task))
    assert 0 < told(messages_server, "status", task)["accounts"]["usd"]["used"] < 1_000_000
    spied = run(messages_server, "logs", "1.2.2", task).stdout
    assert "BLASTDOOR_OUT" in spied
    assert "ANTHROPIC" not in spied
    assert messages_server.key not in ran.stdout + ran.stderr + spied
    for path in (path for path in (task / ".blastdoor").rglob("*") if path.is_file()):
        assert messages_server.key.encode() not in path.read_bytes(), path


def test_a_refused_key(task: Path, messages_server: MessagesServer) -> None:
    """One line, exit code 2, nothing charged."""
    ran = run(messages_server, "run", task, "--proposer", "llm", key="sk-ant-api03-wrong")
    assert ran.returncode == 2
    last = ran.stderr.strip().splitlines()[-1]
    assert "refuses the key" in last
    assert "nothing was charged" in last
    assert "sk-ant-api03-wrong" not in ran.stderr
    assert told(messages_server, "status", task)["accounts"]["usd"]["used"] == 0


SECRET = "AKIA" + "Z7QX2M4N8B5V1C3L"


@pytest.mark.parametrize(
    ("words", "key", "model", "config", "expected"),
    [
        ((), "", "claude-sonnet-5-5", "", "there is no key"),
        (("--usd", "0"), None, "claude-sonnet-5-5", "", "raise --usd"),
        ((), None, "claude-nobody-9", "", "claude-nobody-9"),
        ((), None, "claude-sonnet-5-5", f'KEY = "{SECRET}"\n', "config.py"),
    ],
    ids=["no key", "no money", "a model without a price", "a secret in the workspace"],
)
def test_what_is_said_before_anything_is_asked(
    task: Path,
    messages_server: MessagesServer,
    words: tuple[str, ...],
    key: str | None,
    model: str,
    config: str,
    expected: str,
) -> None:
    """In one line, which shows no secret."""
    text = (task / "blastdoor.toml").read_text().replace("claude-sonnet-5-5", model)
    (task / "blastdoor.toml").write_text(text)
    (task / "workspace" / "config.py").write_text(config)
    ran = run(messages_server, "run", task, "--proposer", "llm", *words, key=key)
    assert ran.returncode == 2
    assert expected in ran.stderr.strip().splitlines()[-1]
    assert SECRET not in ran.stderr
    assert not messages_server.requests
