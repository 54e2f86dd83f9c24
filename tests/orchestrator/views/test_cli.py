"""Bad input gets one line that says what to do and a documented exit code; no engine is needed to say so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.choices import PROPOSERS
from orchestrator.registry import listed
from orchestrator.settings import Settings
from orchestrator.views.chamber import attack
from orchestrator.views.cli import main
from orchestrator.views.commands import COMMANDS, load
from orchestrator.views.exits import Exit
from orchestrator.wiring.choice import SiteChoice
from sandbox import Refused
from tests.crash.test_written_before import unpacked


@pytest.fixture
def blastdoor(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> "Blastdoor":
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.chdir(tmp_path)
    return Blastdoor(monkeypatch, capfd)


class Blastdoor:
    """Runs a command line; gives back its exit code and what it wrote on stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capfd = capfd
        self.stdout = ""

    def __call__(self, *words: str) -> tuple[int, str]:
        self._monkeypatch.setattr(sys, "argv", ["blastdoor", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        self.stdout, stderr = self._capfd.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, stderr


def test_ctrl_c_is_told(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever command it ends, one line says so, and the exit code is 130."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.views.commands.load", interrupted)
    monkeypatch.setattr("os._exit", sys.exit)
    code, stderr = blastdoor("init", "task")
    assert (code, stderr.strip()) == (Exit.INTERRUPTED, "blastdoor: interrupted")


def test_a_fault_of_our_own_is_no_answer(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's exit code for it would say that a gate rejects."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("by \x1b[31m\u202ezero")

    monkeypatch.setattr("orchestrator.views.commands.load", broken)
    code, stderr = blastdoor("gate", "--diff", "x")
    assert code == Exit.BAD_INPUT
    assert stderr.splitlines()[-1] == "blastdoor: a fault of our own, ZeroDivisionError: by \\x1b[31m\\u202ezero"
    assert "\x1b" not in stderr
    assert "Traceback" in stderr


def test_ctrl_c_while_a_module_is_loaded(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded by half fails in its own way, and so may what explains faults."""

    def half(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise TypeError("mapped to multiple choices")

    monkeypatch.setattr("orchestrator.views.commands.load", half)
    monkeypatch.setattr("os._exit", sys.exit)
    assert blastdoor("init", "task") == (Exit.INTERRUPTED, "blastdoor: interrupted\n")


def test_what_explains_faults_is_broken_itself(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("orchestrator.views.commands.load", broken)
    monkeypatch.setitem(sys.modules, "orchestrator.views.failing", None)
    code, stderr = blastdoor("init", "task")
    assert (code, "ZeroDivisionError: by zero" in stderr.splitlines()[-1]) == (Exit.BAD_INPUT, True)


def test_whatever_is_quoted_is_one_bounded_line(blastdoor: Blastdoor) -> None:
    """Also what a library for command lines quotes."""
    for word in ("1" * 5000, "\x1b[31m\u202e", "a\nb" * 900):
        for words in (["show", word, "."], ["show", word, word, word], ["show", f"--{word}"]):
            code, stderr = blastdoor(*words)
            assert code == Exit.BAD_INPUT
            assert stderr.count("\n") == 1
            assert stderr.rstrip("\n").isprintable()
            assert len(stderr) < 2000


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    """A gate that cannot read, or say, anything is no rejection; and no file takes the number of a closed stream."""
    words = "import sys; from orchestrator.views.cli import main; sys.argv[0] = 'blastdoor'; main()"
    shell = f'"$0" -c "$1" gate --diff - "$2" {closed}'
    done = subprocess.run(["sh", "-c", shell, sys.executable, words, str(tmp_path)], check=False, capture_output=True)
    assert done.returncode == Exit.BAD_INPUT
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(name: str) -> None:
    """Under its own name, and what it is for fits on its line of the help."""
    command = load(name)
    assert command.name == name
    assert command.help
    assert 20 < len(COMMANDS[name].help) <= 60


def test_help_loads_no_command() -> None:
    """Nor anything that a command works with: a user who asks for help does not wait for an engine's library."""
    code = (
        "import sys\nfrom orchestrator.views.cli import cli\ncli.main(['--help'], standalone_mode=False)\n"
        "print([it for it in ('docker', 'pydantic', 'sqlalchemy', 'rich', 'asyncio', 'sandbox') if it in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_status_loads_what_it_shows_and_no_more(tmp_path: Path) -> None:
    """No loop, no model of a task, nothing that learns or applies, and no library for engines, databases, git, logs or
    pictures: it costs what it reads.
    """
    folder = unpacked("finished", tmp_path)
    heavy = (
        "docker",
        "psycopg",
        "pygit2",
        "orchestrator.domain.events",
        "structlog",
        "rich",
        "asyncio",
        "orchestrator.loop",
        "orchestrator.task.model",
        "orchestrator.change.applying",
        "orchestrator.meta",
        "orchestrator.population",
        "logging",
    )
    code = (
        "import sys\nfrom orchestrator.views.cli import cli\n"
        f"cli.main(['status', {str(folder)!r}], standalone_mode=False)\n"
        f"print([it for it in {heavy} if it in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("task")
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("word", "says"), [("stauts", "did you mean status?"), ("xyzzy", "commands are ab, accept, ")])
def test_a_command_that_there_is_not(blastdoor: "Blastdoor", word: str, says: str) -> None:
    """One line with the nearest, or with all of them."""
    code, stderr = blastdoor(word, "--json")
    assert (code, len(stderr.splitlines())) == (Exit.BAD_INPUT, 1)
    assert f"No such command {word!r}; {says}" in stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """The script asks the program, and the program answers."""
    code, _ = blastdoor("completion", shell)
    assert code == Exit.OK
    assert f"_BLASTDOOR_COMPLETE={shell}_complete" in blastdoor.stdout
    monkeypatch.setenv("_BLASTDOOR_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "blastdoor sta")
    monkeypatch.setenv("COMP_CWORD", "sta" if shell == "fish" else "1")
    code, _ = blastdoor()
    assert code == Exit.OK
    assert {"stalls", "status"} <= set(re.split(r"[\s,]", blastdoor.stdout))
    assert "steer" not in blastdoor.stdout


def test_exit_codes_are_as_documented() -> None:
    """The numbers are a promise to scripts."""
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "NOT_GOOD": 1,
        "BAD_INPUT": 2,
        "NO_ENGINE": 3,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--memory", "1", "--", "true"], "memory: must be at least 16MiB"),
        (["--memory", "lots", "--", "true"], "write it like 512MiB"),
        (["--wall", "0", "--", "true"], "wall: must be more than 0"),
        (["--wall", "9d", "--", "true"], "wall: must be at most 604800"),
        (["--wall", "nan", "--", "true"], "write it like 90s"),
        (["--cpus", "nan", "--", "true"], "cpus: must be at most 1024"),
        (["--cpus", "many", "--", "true"], "cpus: "),
        (["--pids", "1", "--", "true"], "pids: must be at least 8"),
        (["--gpu", "A100:x", "--", "true"], "write it like A100:8"),
        (["--runtime", "a b", "--", "true"], "runtime: "),
        (["--image", "-v", "--", "true"], "image: "),
        (["--env", "A-B=1", "--", "true"], "use letters, digits and _"),
        (["--input", "data=nowhere", "--", "true"], "nowhere cannot be copied"),
        (["--in", "nowhere", "--", "true"], "nowhere is not a folder; name an existing one"),
        (["--in", "linked", "--", "true"], "is a link"),
        (["--in", "full", "--bundle-bytes", "1KiB", "--", "true"], "raise bundle_bytes or use an input"),
        (["--out", "full", "--", "true"], "name a new one"),
        (["--out", "full/file", "--", "true"], "full/file"),
        (["--", "--help-me"], "name a program first"),
    ],
)
def test_bad_input_to_exec(blastdoor: "Blastdoor", tmp_path: Path, words: list[str], line: str) -> None:
    """Each mistake gets exactly one line, which names it, and exit code 2; nothing goes to stdout."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_bytes(bytes(2000))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "link").symlink_to("/etc/passwd")
    code, stderr = blastdoor("exec", *words)
    assert code == Exit.BAD_INPUT
    assert len(stderr.splitlines()) == 1, stderr
    assert stderr.startswith("blastdoor: ")
    assert line in stderr
    assert blastdoor.stdout == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["exec"], "COMMAND"),
        (["exec", "--no-such-option", "--", "true"], "--no-such-option"),
        (["exec", "--env", "NOVALUE", "--", "true"], "write NAME=VALUE"),
        (["exec", "--input", "data", "--", "true"], "write NAME=VALUE"),
        (["nonsense"], "nonsense"),
        (["--nope"], "--nope"),
        (["doctor", "--only", "no_such_row"], "rows are"),
        (["attack", "--mutate", "--only", "T18"], "leave --only out"),
    ],
)
def test_bad_command_lines(blastdoor: "Blastdoor", words: list[str], line: str) -> None:
    """A command line that cannot be understood is bad input, too: one line, and where to read more."""
    code, stderr = blastdoor(*words)
    assert code == Exit.BAD_INPUT
    assert len(stderr.splitlines()) == 1, stderr
    assert line in stderr
    assert "--help tells more" in stderr


def test_unknown_variable(blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that looks like a setting and is none is a typo, not the default."""
    monkeypatch.setenv("BLASTDOOR_RUNTIM", "runsc")
    code, stderr = blastdoor("exec", "--", "true")
    assert code == Exit.BAD_INPUT
    assert "BLASTDOOR_RUNTIM is not a setting" in stderr


@pytest.mark.parametrize(
    ("said", "attacked"), [("runc", "runc"), ("crun", "crun"), ("runsc", "runsc"), ("modal", "docker")]
)
def test_attacks_what_the_settings_name(
    said: str, attacked: str, blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever does without a daemon attacks those chambers; what is rented is never attacked unasked."""

    def refuse(_: Settings, chosen: SiteChoice) -> None:
        raise Refused(f"it is {chosen.backend}")

    monkeypatch.setattr(attack, "make_provider", refuse)
    monkeypatch.setenv("BLASTDOOR_BACKEND", said)
    assert blastdoor("attack") == (2, f"blastdoor: it is {attacked}\n")


@pytest.mark.parametrize("words", [["exec", "--", "true"], ["doctor"], ["attack"], ["reap"]])
def test_no_engine(blastdoor: "Blastdoor", words: list[str]) -> None:
    """Without an engine, every command says how to get one, in one line, with exit code 3."""
    code, stderr = blastdoor(*words)
    assert code == Exit.NO_ENGINE
    assert len(stderr.splitlines()) == 1, stderr
    assert "start Docker, set DOCKER_HOST" in stderr


@pytest.mark.parametrize("words", [["exec", "--", "true"], ["doctor"], ["attack"], ["reap"]])
def test_engine_that_can_not_be_used(blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """An address of a kind that we do not speak is bad input."""
    monkeypatch.setenv("DOCKER_HOST", "ssh://me@there")
    code, stderr = blastdoor(*words)
    assert code == Exit.BAD_INPUT
    assert "forward the socket" in stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [("runtme = 1\n", "runtme"), ("warm = 1000\n", "must be at most 256"), ("this is = = not\n", "is not TOML")],
)
def test_bad_settings_file(blastdoor: "Blastdoor", own_settings: Path, text: str, line: str) -> None:
    """A mistake in the settings names the file and the key."""
    own_settings.write_text(text)
    code, stderr = blastdoor("reap")
    assert code == Exit.BAD_INPUT
    assert str(own_settings) in stderr
    assert line in stderr
    assert "Traceback" not in stderr


def test_bad_variable(blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in a variable is bad input as well."""
    monkeypatch.setenv("BLASTDOOR_WARM", "lots")
    code, stderr = blastdoor("reap")
    assert code == Exit.BAD_INPUT
    assert "warm" in stderr


def test_verbose_shows_the_trace(blastdoor: "Blastdoor") -> None:
    """With --verbose an error shows its trace before its line, and the exit code stays the documented one."""
    code, stderr = blastdoor("--verbose", "exec", "--", "true")
    assert code == Exit.NO_ENGINE
    assert "Traceback" in stderr
    assert stderr.splitlines()[-1].startswith("blastdoor: ")


def test_verbose_among_the_candidates_words(blastdoor: "Blastdoor") -> None:
    """A --verbose that belongs to the candidate's command is not ours."""
    code, stderr = blastdoor("exec", "--", "ls", "--verbose")
    assert code == Exit.NO_ENGINE
    assert "Traceback" not in stderr


@pytest.mark.parametrize("words", [["--help"], ["exec", "-h"], ["--version"]])
def test_help_is_no_error(blastdoor: "Blastdoor", words: list[str]) -> None:
    """Whoever asks for help gets it on stdout."""
    code, stderr = blastdoor(*words)
    assert (code, stderr) == (Exit.OK, "")
    assert blastdoor.stdout


def test_a_proposer_that_there_is_not(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names them all."""
    monkeypatch.setenv("BLASTDOOR_PROPOSER", "foo")
    code, line = blastdoor("status")
    assert code == Exit.BAD_INPUT
    assert f'proposer: must be {listed([*PROPOSERS.built_in])}, not "foo"' in line
