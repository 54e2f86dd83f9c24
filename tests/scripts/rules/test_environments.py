"""Each way to start a process."""

import ast

import pytest

from rules.environments import findings, starts


def test_t62_a_start_needs_a_built_environment() -> None:
    """Without one it is found; one that is built there, or under a name of the module, is not."""
    start = "import subprocess\nsubprocess.run(['x']{})\n"
    assert [line for line, _ in findings("sandbox/x.py", start.format(""))] == [2]
    assert [line for line, _ in findings("sandbox/x.py", start.format(", env=dict(os.environ)"))] == [2]
    assert not list(findings("sandbox/x.py", start.format(", env=child_environment()")))
    named = f"\nENV = child_environment(PIP)\n{start.format(', env=ENV')}"
    assert not list(findings("sandbox/x.py", named))


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess as s\ns.Popen(['x'])",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
        "from subprocess import run\nrun(['x'])",
        "import os\nos.system('x')",
        "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor()",
        "import asyncio.subprocess\nasyncio.subprocess.create_subprocess_exec('x')",
    ],
)
def test_the_scan_finds(code: str) -> None:
    """The search above sees each way to start a process."""
    assert list(starts(ast.parse(code)))


def test_the_scan_leaves_alone() -> None:
    """What only looks like it is none."""
    assert not list(starts(ast.parse("import asyncio\nasyncio.run(x())\nself.run(y)\nimport os\nos.kill(1, 2)")))
