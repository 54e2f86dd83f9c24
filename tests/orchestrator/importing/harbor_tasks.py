"""A small task in the format of Harbor, written for these tests."""

from collections.abc import Mapping
from pathlib import Path

TASK = """
version = "1.0"

[verifier]
timeout_sec = 60.0

[agent]
timeout_sec = 30.0

[environment]
cpus = 1
memory = "1G"
"""
DOCKERFILE = """
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends \\
    # what the agent counts with
    bc \\
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir 'numpy==2.2.6' pandas
WORKDIR /app
COPY data/ /app/data/
"""
SCRIPT = """#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
uvx \\
  -p 3.13 \\
  -w pytest==8.4.1 \\
  -w pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
CHECKS = """
from collections.abc import Mapping
from pathlib import Path


def test_there():
    assert Path("/app/sum.txt").exists()


def test_sum():
    assert Path("/app/sum.txt").read_text().strip() == "42"
"""
FILES = {
    "task.toml": TASK,
    "instruction.md": "Write the sum of /app/data/numbers.txt to /app/sum.txt.\n",
    "environment/Dockerfile": DOCKERFILE,
    "environment/data/numbers.txt": "1\n2\n39\n",
    "tests/test.sh": SCRIPT,
    "tests/test_outputs.py": CHECKS,
    "solution/solve.sh": "awk '{ s += $1 } END { print s }' data/numbers.txt > sum.txt\n",
}


def write(folder: Path, changed: Mapping[str, str | None] | None = None) -> Path:
    """The task with other files, by their names; None leaves one out."""
    for name, text in {**FILES, **(changed or {})}.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder
