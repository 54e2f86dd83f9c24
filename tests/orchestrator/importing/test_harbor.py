"""What becomes of a task of Harbor, and what is said of it. No code of the task is run."""

from pathlib import Path

import pytest

from orchestrator.importing import Imported, ImportRequest
from orchestrator.importing.harbor import read
from orchestrator.task import TaskError
from orchestrator.views.cli import cli
from tests.clicking import runner
from tests.orchestrator.importing.harbor_tasks import CHECKS, DOCKERFILE, FILES, SCRIPT, TASK, write
from tests.orchestrator.importing.openevolve_tasks import task_of


def imported(tmp_path: Path, changed: dict[str, str | None] | None = None, program: str | None = None) -> Imported:
    return read(ImportRequest(write(tmp_path / "there", changed), "small", program=program))


def test_a_whole_task(tmp_path: Path) -> None:
    """Statement, limits, packages and files come from the task; its tests are copied byte for byte. A search must not
    see the reference solution; a person who checks the task starts from it.
    """
    found = imported(tmp_path)
    task = task_of(tmp_path, found)
    assert task.judge.mode == "data"
    assert (task.limits.wall, task.judge.limits.wall, task.limits.memory) == (30, 60, 1 << 30)
    assert task.statement.startswith("Write the sum of /app/data/numbers.txt to /app/sum.txt.\n\nThe files of /app ")
    assert (task.image.apt, task.image.pip) == (("bc",), ("numpy==2.2.6", "pandas"))
    assert task.judge.image.pip == ("pytest==8.4.1", "pytest-json-ctrf==0.3.5")
    assert found.files["judge/tests/test.sh"] == SCRIPT.encode()
    names = {name for name in found.files if name.startswith("workspace/")}
    assert names == {"workspace/data/numbers.txt", "workspace/solve.sh"}
    assert [(it.name, it.goal) for it in task.metrics] == [("reward", "higher")]
    assert b"awk" not in b"".join(found.files.values())
    asked = imported(tmp_path, program="solution/solve.sh")
    assert asked.files["workspace/solve.sh"] == FILES["solution/solve.sh"].encode()


@pytest.mark.parametrize(
    ("why", "name", "text"),
    [
        ("imports subprocess", "tests/test_outputs.py", "import subprocess\n" + CHECKS),
        ("imports importlib", "tests/test_outputs.py", "from importlib import import_module\n" + CHECKS),
        ("uses os.system", "tests/test_outputs.py", "import os\nos.system('/app/run')\n" + CHECKS),
        ("imports app", "tests/test_outputs.py", "from app.main import solve\n" + CHECKS),
        ("imports socket", "tests/test_outputs.py", "import socket\n" + CHECKS),
        ("changes where modules", "tests/test_outputs.py", "import sys\nsys.path.insert(0, '/app')\n" + CHECKS),
        ("imports pickle", "tests/test_outputs.py", "import pickle\npickle.load(open('/app/x', 'rb'))\n" + CHECKS),
        ("uses exec", "tests/test_outputs.py", "exec(open('/app/x').read())\n" + CHECKS),
        ("starts node", "tests/test.sh", SCRIPT + "node /app/main.js\n"),
        ("starts /app/run", "tests/test.sh", SCRIPT + "/app/run\n"),
        ("starts if python3 /app/x.py", "tests/test.sh", SCRIPT + "if python3 /app/x.py; then echo 1; fi\n"),
        ("starts sh", "tests/test.sh", SCRIPT + "cat /app/x | sh\n"),
        ("sets PYTHONPATH", "tests/test.sh", SCRIPT + "PYTHONPATH=/app pytest /tests/test_outputs.py\n"),
        ("starts uvx", "tests/test.sh", SCRIPT.replace("/tests/test_outputs.py", "/app")),
        ("starts /app/run within", "tests/test.sh", SCRIPT + 'echo "$(/app/run)" > /logs/verifier/reward.txt\n'),
        ("starts /app/run within", "tests/test.sh", SCRIPT + "SCORE=$(/app/run)\n"),
        ("not read: '`'", "tests/test.sh", SCRIPT + "SCORE=`/app/run`\n"),
        ("reads commands", "tests/test.sh", SCRIPT + "source /app/env\n"),
        ("sets export PATH", "tests/test.sh", SCRIPT + "export PATH=/app/bin:$PATH\n"),
        ("may run anything", "tests/more.sh", "/app/run\n"),
        ("the tests get PYTHONPATH", "environment/Dockerfile", DOCKERFILE + "ENV PYTHONPATH=/app\n"),
    ],
)
def test_tests_that_run_what_a_candidate_wrote(tmp_path: Path, why: str, name: str, text: str) -> None:
    """They share a chamber with it, the tier says so, and the line says where it was seen."""
    found = imported(tmp_path, {name: text})
    task = task_of(tmp_path, found)
    assert task.judge.mode == "shared"
    assert why in found.findings[0]
    assert "tier shared" in found.findings[0]
    assert set(task.image.pip) >= {"numpy==2.2.6", "pytest==8.4.1"}


@pytest.mark.parametrize("looks", ["/srv/reference/log.csv", "/srv/reference", "/srv/"])
def test_tests_that_look_at_what_the_dockerfile_copies(tmp_path: Path, looks: str) -> None:
    """It lies where they look, in the judge's chamber too, and no candidate can have changed it."""
    files: dict[str, str | None] = {
        "environment/Dockerfile": f"{DOCKERFILE}\nCOPY log.csv /srv/reference/log.csv\n",
        "environment/log.csv": "ann,3\n",
        "tests/test_outputs.py": f"{CHECKS}A = {looks!r}\n",
    }
    task = task_of(tmp_path, imported(tmp_path, files))
    assert task.judge.mode == "data"
    assert any("/srv/reference/log.csv" in line for line in task.judge.image.run)


# Whatever may start a program or load code, by whatever name.
RUNS = """
import asyncio; asyncio.create_subprocess_exec('python3', '/app/main.py')
from os import system as run
import os; f = os.system; f('/app/run')
import os; getattr(os, 'sys' + 'tem')('/app/run')
import os as o; o.system('/app/run')
import pathlib; pathlib.os.system('/app/run')
import random; random._os.popen('/app/run')
from random import _os
from .. import app
import tarfile; tarfile.open('/app/x').extract('conftest.py', '/tests')
import pytest; pytest.main(['/app/tests'])
import unittest; unittest.TestLoader().discover('/app')
import site; site.addsitedir('/app')
import torch; torch.load('/app/x.pt')
import numpy as np; f = np.load; f('/app/x.npy', allow_pickle=True)
import pandas as pd; pd.DataFrame().query(open('/app/x').read())
import ctypes
import runpy
import sympy
pytest_plugins = ['app']
def pytest_collect_file(path): ...
def test_x(pytester): ...
().__class__.__base__.__subclasses__()
"""
# What is not understood, or lets the candidate steer what is started.
STEERED = r"""
sleep 1 & /app/server
uv tool run pytest /app/tests
uv tool install /app/x
cd /app; export PATH=bin:$PATH; grep x y
PATH=$(pwd)/bin
PATH+=:/app/bin
cat /app/x | python3 - /tests/y
python3 -c "import solution" /tests/x
python3 -m solution /tests/x
python3 /tests/../app/x.py
pytest /tests/$(cat /app/x)
pytest /tests/x.py -p solution
pytest -c /app/pytest.ini /tests/x.py
pytest --rootdir /app /tests/x.py
/app/bin/pytest /tests/x.py
echo a#b; /app/run
echo 1 # said\n/app/run
f() { /app/run; }; f
for x in 1; do /app/run; done
bash <<EOF\n/app/run\nEOF
diff <(/app/run) /tests/expected
SCORE=$(cat /app/score); echo $((SCORE * 2))
SCORE=$(cat /app/score); if [[ "$SCORE" -eq 1 ]]; then echo 1; fi
SCORE=$(cat /app/score); if [ $SCORE -eq 1 ]; then echo 1; fi
SCORE=$(cat /app/score); if [ -n "$SCORE" -a "$SCORE" = 1 ]; then echo 1; fi
CODE=$?; CODE=$(cat /app/score); if [ $CODE -eq 1 ]; then echo 1; fi
cat /app/x > /tests/test_outputs.py
cat /app/x | tee /tests/conftest.py
TEST_DIR=/app; pytest $TEST_DIR/x.py
HOME=/app; source $HOME/.local/bin/env
eval $(cat /app/x)
trap /app/run EXIT
curl -L x.org; sh
python3 -m pip install --no-build-isolation /app
pip install -e .
echo 'not ended
"""


@pytest.mark.parametrize("line", RUNS.strip().splitlines())
def test_python_that_is_not_known_to_only_read(tmp_path: Path, line: str) -> None:
    """It costs the tier."""
    found = imported(tmp_path, {"tests/test_outputs.py": f"{line}\n{CHECKS}"})
    assert "tests/test_outputs.py:" in found.findings[0]
    assert "tier shared" in found.findings[0]


@pytest.mark.parametrize("line", STEERED.strip().splitlines())
def test_a_script_that_is_not_known_to_only_look(tmp_path: Path, line: str) -> None:
    """So does a script with such a line."""
    found = imported(tmp_path, {"tests/test.sh": f"{SCRIPT}\n" + line.replace("\\n", "\n") + "\n"})
    assert "tests/test.sh " in found.findings[0]
    assert "tier shared" in found.findings[0]


@pytest.mark.parametrize(
    "changed",
    [
        {"tests/test.sh": SCRIPT.replace("uvx", 'export PATH="$HOME/.local/bin:$PATH"\nuvx')},
        {"tests/test.sh": SCRIPT.replace("uvx", "cd /app\nset -euo pipefail\nuvx")},
        {"tests/test.sh": SCRIPT.replace("uvx", 'if [ "$PWD" = "/" ]; then\n  echo "no"; exit 1\nfi\nuvx')},
        {"tests/test.sh": SCRIPT.replace("if [ $? -eq", "CODE=$?\nif [ $CODE -eq")},
        {"environment/Dockerfile": DOCKERFILE + "ENV TEST_DIR=/tests\n"},
        {"tests/test.sh": "python3 -u /tests/test_outputs.py /app/sum.txt > /logs/verifier/reward.txt 2>&1\n"},
        {"tests/test.sh": "pytest $TEST_DIR/test_outputs.py -rA -v || echo 0 | tee /logs/verifier/reward.txt\n"},
        {"tests/test.sh": 'N=$(grep -c x /app/a)\n[ "$N" -eq 1 ] && echo 1 > /logs/verifier/reward.txt\n'},
        {"tests/test_outputs.py": "import os, json, csv\nimport numpy as np\nfrom os.path import exists\n" + CHECKS},
        {"tests/test_outputs.py": "import os, re\nassert os.path.exists('/app/x')\nX = re.compile('')\n" + CHECKS},
        {"tests/test_outputs.py": CHECKS + "\nclass TestIt:\n    def test_it(self):\n        assert self._x is None\n"},
        {"environment/Dockerfile": DOCKERFILE + "ENV PYTHONUNBUFFERED=1\n"},
    ],
)
def test_tests_that_only_look(tmp_path: Path, changed: dict[str, str | None]) -> None:
    """What ordinary tests have does not cost the tier."""
    found = imported(tmp_path, changed)
    assert "tier data" in found.findings[0], found.findings


CONFIG = {
    "long": ("#" * ((1 << 20) + 1), "has more than 1 MiB; leave it out of the folder"),
    "deep": (f"a = {'[' * 5000}", "is nested too deep to be read; make it flatter"),
    "no UTF-8": ("a = '\udcff'", "is not UTF-8; save it as UTF-8"),
}


@pytest.mark.parametrize("what", CONFIG)
def test_settings_that_cannot_be_read(tmp_path: Path, what: str) -> None:
    """The one line says what is wrong with them, and nothing else."""
    text, why = CONFIG[what]
    source = write(tmp_path / "there", {"task.toml": ""})
    (source / "task.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TaskError) as refused:
        read(ImportRequest(source, "small"))
    assert str(refused.value) == f"{source / 'task.toml'}: {why}"


@pytest.mark.parametrize(
    ("why", "changed"),
    [
        ("has no task.toml", {"task.toml": None}),
        ("has no tests/test.sh", {"tests/test.sh": None}),
        ("has no environment/Dockerfile", {"environment/Dockerfile": None}),
        ("is not TOML", {"task.toml": "a = [\n"}),
        ("several containers", {"environment/docker-compose.yaml": "services: {}\n"}),
        ("several steps", {"task.toml": TASK + "\n[[steps]]\nname = 'one'\n"}),
        ("several steps", {"task.toml": TASK + "\n[[steps]]\nname = 'one'\n", "instruction.md": None}),
        ("is for Windows", {"task.toml": TASK + 'os = "windows"\n'}),
        ("needs servers", {"task.toml": TASK + "mcp_servers = [{name = 'x'}]\n"}),
        ("more than one stage", {"environment/Dockerfile": DOCKERFILE + "FROM scratch\n"}),
        ("copies --from=build", {"environment/Dockerfile": DOCKERFILE + "COPY --from=build /a /app/a\n"}),
        ("copies --from=x.org", {"environment/Dockerfile": DOCKERFILE + "COPY --from=x.org/astral-sh/uv /uv /bin/\n"}),
        ("copies https://", {"environment/Dockerfile": DOCKERFILE + "ADD https://x.org/a.tar /app/\n"}),
        ("which is not there", {"environment/Dockerfile": DOCKERFILE + "COPY missing /app/\n"}),
        ("copy it beneath /app", {"environment/Dockerfile": DOCKERFILE + "COPY data /tmp/data\n"}),
        ("copy it beneath /app", {"environment/Dockerfile": DOCKERFILE + "COPY data /data/$(reboot)\n"}),
        ("works in /, which", {"environment/Dockerfile": DOCKERFILE.replace("WORKDIR /app", "WORKDIR /")}),
        ("use letters", {"environment/Dockerfile": DOCKERFILE.replace("WORKDIR /app", "WORKDIR /app;reboot")}),
        ("looks at /etc/nginx.conf", {"tests/test_outputs.py": CHECKS + "A = '/etc/nginx.conf'\n"}),
        ("has a syntax error", {"tests/test_outputs.py": "def\n"}),
    ],
)
def test_what_cannot_run(tmp_path: Path, why: str, changed: dict[str, str | None]) -> None:
    """One line, exit code 2, and nothing is written."""
    source = write(tmp_path / "there", changed)
    result = runner().invoke(cli, ["import", "harbor", str(source), str(tmp_path / "here")])
    assert result.exit_code == 2
    assert why in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "here").exists()


def test_lines_of_a_stranger_are_not_run_while_baking(tmp_path: Path) -> None:
    """Packages are taken over by name; any other line is told, for a person to decide on."""
    found = imported(tmp_path, {"environment/Dockerfile": DOCKERFILE + "RUN make all && ./configure\nUSER agent\n"})
    task = task_of(tmp_path, found)
    assert not any("make" in line or "configure" in line for line in task.image.run)
    assert any("RUN make all: write it as image.run" in line for line in found.left_out)


@pytest.mark.parametrize("image", ["ghcr.io/astral-sh/uv:0.8.15", "astral/uv", "ghcr.io/astral-sh/uv@sha256:0a1b"])
def test_an_installer_from_its_own_image(tmp_path: Path, image: str) -> None:
    """The installer is left out and told; what it installs is in the image."""
    lines = f"COPY --from={image} /uv /uvx /bin/\nRUN uv pip install --system xlrd==2.0.1\n"
    found = imported(tmp_path, {"environment/Dockerfile": DOCKERFILE + lines})
    assert "xlrd==2.0.1" in task_of(tmp_path, found).image.pip
    assert [line for line in found.left_out if "COPY --from=" in line and "what uv installs" in line]


def test_variables_are_made_of_those_before_them(tmp_path: Path) -> None:
    """One that is made of what the base image sets is left out: a PATH with the text $PATH in it finds no program. A
    PATH of the candidate's folder costs the tier.
    """
    lines = 'ENV ROOT=/opt/venv MODE=fast\nENV PLACE="${ROOT}/lib" PATH="$ROOT/bin:$PATH"\n'
    found = imported(tmp_path, {"environment/Dockerfile": DOCKERFILE + lines})
    task = task_of(tmp_path, found)
    assert task.trial.env == {"ROOT": "/opt/venv", "MODE": "fast", "PLACE": "/opt/venv/lib"}
    assert "ENV PATH of environment/Dockerfile: it names PATH of the base image" in found.left_out
    assert "PATH" not in found.files["judge/judge.py"].decode()
    assert task.judge.mode == "data"
    lines = "ENV HERE=/app\nENV PATH=$HERE/bin:/usr/bin\n"
    found = imported(tmp_path, {"environment/Dockerfile": DOCKERFILE + lines})
    assert "the tests get PATH" in found.findings[0]
    assert "tier shared" in found.findings[0]


def test_tests_with_a_container_of_their_own(tmp_path: Path) -> None:
    """What their Dockerfile installs is in the judge's image, and not in the candidate's."""
    lines = "FROM python:3.13-slim\nRUN apt-get install -y jq && pip install pytest==8.4.1\nCOPY . /tests/\n"
    found = imported(tmp_path, {"tests/Dockerfile": lines, "tests/test.sh": "pytest /tests/test_outputs.py\n"})
    task = task_of(tmp_path, found)
    assert (task.judge.image.apt, task.judge.image.pip) == (("jq",), ("pytest==8.4.1",))
    assert (task.image.apt, task.image.pip) == (("bc",), ("numpy==2.2.6", "pandas"))


def test_files_beside_the_working_folder_are_inputs(tmp_path: Path) -> None:
    """They are read-only, and found where the Dockerfile puts them, by candidate and tests."""
    found = imported(tmp_path, {"environment/Dockerfile": DOCKERFILE + "COPY data/numbers.txt /data/rows/\n"})
    task = task_of(tmp_path, found)
    assert found.files["inputs/files/data/rows/numbers.txt"] == FILES["environment/data/numbers.txt"].encode()
    line = "mkdir -p /data/rows && ln -sfn /inputs/files/data/rows/numbers.txt /data/rows/numbers.txt"
    assert line in task.image.run
    assert line in task.judge.image.run
    assert set(task.inputs) == {"files"}


def test_a_working_folder_inside(tmp_path: Path) -> None:
    """The folder at the top is the workspace, and the commands run in the inner one."""
    dockerfile = "FROM python:3.13-slim\nWORKDIR /srv/site/src\nCOPY data/numbers.txt ./n.txt\n"
    tests = CHECKS.replace("/app", "/srv/site")
    found = imported(tmp_path, {"environment/Dockerfile": dockerfile, "tests/test_outputs.py": tests})
    task = task_of(tmp_path, found)
    assert "workspace/src/n.txt" in found.files
    assert "cd src && bash /work/src/solve.sh" in str(task.trial.command)
    assert "root='/srv/site', workdir='/srv/site/src'" in found.files["judge/judge.py"].decode()
