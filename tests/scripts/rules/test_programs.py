"""Every program that we start on a machine is known, with the package that brings it, before a test needs it."""

import subprocess
from pathlib import Path

import pytest

import distribution
from orchestrator.machine import programs
from rules.programs import OTHERS, called_by_python, called_by_shell, recipes
from sandbox.backends.skypilot.ssh import PROGRAMS as OF_SKYPILOT

REPOSITORY = Path(__file__).parents[3]
SCRIPTS = (".ci/run", "deploy/campaign", "deploy/ci/gate.sh", "scripts/build-images", "scripts/run-tests")


@pytest.mark.parametrize("script", [*SCRIPTS, "scripts/with-engine", "Makefile"])
def test_shells_start_known_programs(script: str) -> None:
    """So is what our shell scripts and make run."""
    text = (REPOSITORY / script).read_text()
    found = called_by_shell(recipes(text) if script == "Makefile" else text)
    assert found - set(distribution.PACKAGES) - OTHERS == set()


@pytest.mark.parametrize(
    "source",
    [
        'subprocess.run(["frobnicate", "-x"])',
        'subprocess.Popen(("frobnicate",))',
        'command = ["frobnicate", *words]\nsubprocess.run(command + ["x"], check=True)',
        'def f():\n    command = [program("tar") or "frobnicate"]\n    subprocess.check_output(command)',
        'async def f():\n    await asyncio.create_subprocess_exec("frobnicate", "x")',
        'if shutil.which("frobnicate"): pass',
        'NAMES = ("tar", "frobnicate")\nfound = [name for name in NAMES if shutil.which(name)]',
        'require("tar", "frobnicate", log=log)',
        'class A:\n    def f(self):\n        os.execvp("frobnicate", ["x"])',
    ],
)
def test_the_scan_reads_python(source: str) -> None:
    """A program is found however it is started."""
    assert "frobnicate" in called_by_python(source)


def test_the_scan_keeps_functions_apart() -> None:
    """A name of another function is another name, and a word that is not started is none."""
    source = 'def f():\n    words = ["not", "started"]\ndef g(words):\n    subprocess.run(words)\n'
    assert called_by_python(source) == set()


@pytest.mark.parametrize(
    "script",
    [
        "frobnicate -x",
        "if ! frobnicate; then exit 1; fi",
        'found="$(frobnicate a)"',
        "echo x | frobnicate",
        "true &&\\\n  frobnicate",
        "exec frobnicate it's",
        "case $x in\n1) frobnicate ;;\nesac",
    ],
)
def test_the_scan_reads_shells(script: str) -> None:
    """A program is found wherever a command may stand."""
    assert "frobnicate" in called_by_shell(script)


def test_the_scan_leaves_words_alone() -> None:
    """Arguments, quoted words, comments, functions and what the shell knows itself are no programs."""
    script = "# frobnicate\nf() {\n  echo frobnicate 'frobnicate; frobnicate' \"frobnicate\"\n}\nf frobnicate\n"
    assert called_by_shell(script) == set()


def test_what_tests_need_is_known() -> None:
    """Each program that is looked for at the start has a package; what SkyPilot needs of its user is one of them."""
    for names in distribution.NEEDED.values():
        assert set(names) <= set(distribution.PACKAGES)
        assert set(OF_SKYPILOT) <= set(names)
    assert [distribution.PACKAGES[name] for name in OF_SKYPILOT] == ["openssh-client", "rsync"]


@pytest.mark.parametrize("target", ["unit", "test", "thorough"])
def test_looked_for_at_the_start(target: str) -> None:
    """make looks for the programs before anything else of a target is done, the tests above all."""
    command = ["make", "--dry-run", "--always-make", target, "PYTHON=python3"]
    planned = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    looked = [at for at, line in enumerate(planned) if "scripts/distribution.py" in line]
    tested = [at for at, line in enumerate(planned) if "pytest" in line or "run-tests" in line or "mypy" in line]
    assert len(looked) == 1
    assert looked[0] < min(tested)


@pytest.mark.parametrize("group", ["unit", "test"])
def test_one_line_says_what_to_install(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing may be installed, one line names what is missing and how to get it, and the exit code says so."""
    monkeypatch.setattr(programs, "program", lambda name: None if name == "rsync" else f"/usr/bin/{name}")
    monkeypatch.setattr(programs, "may_install", lambda: False)
    assert distribution.main([group]) == 1
    assert capsys.readouterr().err == (
        "missing: rsync. Install it (on Debian: apt-get install rsync), or run this as root on Debian or Ubuntu.\n"
    )


def test_nothing_to_do_where_all_is_there(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A machine that has everything is asked nothing and told nothing."""
    monkeypatch.setattr(programs, "program", lambda name: f"/usr/bin/{name}")
    assert distribution.main(["test"]) == 0
    assert "".join(capfd.readouterr()) == ""
