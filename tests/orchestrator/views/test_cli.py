"""Bad input gets one line that says what to do and a documented exit code; no engine is needed to say so."""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
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


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def half(*_: object) -> None:
    """What is loaded by half fails in its own way, and so may what explains faults."""
    try:
        raise KeyboardInterrupt
    finally:
        raise TypeError("mapped to multiple choices")


def broken(*_: object) -> None:
    raise ZeroDivisionError("by \x1b[31m\u202ezero")


@pytest.mark.parametrize("load", [interrupted, half])
def test_ctrl_c_is_told(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch, load: Callable[..., None]) -> None:
    """Whatever command it ends, also while a module is loaded, one line says so, and the exit code is 130."""
    monkeypatch.setattr("orchestrator.views.commands.load", load)
    monkeypatch.setattr("os._exit", sys.exit)
    code, stderr = blastdoor("init", "task")
    assert (code, stderr.strip()) == (Exit.INTERRUPTED, "blastdoor: interrupted")


def test_a_fault_of_our_own_is_no_answer(blastdoor: Blastdoor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's exit code for it would say that a gate rejects. It is told also where what explains faults is broken."""
    monkeypatch.setattr("orchestrator.views.commands.load", broken)
    code, stderr = blastdoor("gate", "--diff", "x")
    assert code == Exit.BAD_INPUT
    assert stderr.splitlines()[-1] == "blastdoor: a fault of our own, ZeroDivisionError: by \\x1b[31m\\u202ezero"
    assert "\x1b" not in stderr
    assert "Traceback" in stderr
    monkeypatch.setitem(sys.modules, "orchestrator.views.failing", None)
    code, stderr = blastdoor("init", "task")
    assert (code, "ZeroDivisionError: by " in stderr.splitlines()[-1]) == (Exit.BAD_INPUT, True)


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


def test_every_command_is_there() -> None:
    """Under its own name, and what it is for fits on its line of the help."""
    for name, place in COMMANDS.items():
        command = load(name)
        assert (command.name, bool(command.help), 20 < len(place.help) <= 60) == (name, True, True), name


def loaded_by(words: list[str], heavy: Sequence[str]) -> tuple[str, list[str]]:
    """What a fresh process says, and which of these it has loaded then."""
    code = (
        f"import sys\nfrom orchestrator.views.cli import cli\ncli.main({words!r}, standalone_mode=False)\n"
        f"print(*[it for it in {heavy!r} if it in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *said, last = done.stdout.splitlines()
    return "\n".join(said), last.split()


def test_help_loads_no_command() -> None:
    """Nor anything that a command works with: a user who asks for help does not wait for an engine's library."""
    assert loaded_by(["--help"], ("docker", "pydantic", "sqlalchemy", "rich", "asyncio", "sandbox"))[1] == []


def test_status_loads_what_it_shows_and_no_more(tmp_path: Path) -> None:
    """No loop, no model of a task, nothing that learns or applies, and no library for engines, databases, git, logs or
    pictures: it costs what it reads.
    """
    ours = ("domain.events", "loop", "task.model", "change.applying", "meta", "population")
    heavy = ("docker", "psycopg", "pygit2", "structlog", "rich", "asyncio", "logging")
    said, loaded = loaded_by(
        ["status", str(unpacked("finished", tmp_path))], (*heavy, *(f"orchestrator.{it}" for it in ours))
    )
    assert said.startswith("task")
    assert loaded == []


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


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("BLASTDOOR_RUNTIM", "runsc", "BLASTDOOR_RUNTIM is not a setting"),
        ("BLASTDOOR_WARM", "lots", "warm"),
        ("BLASTDOOR_PROPOSER", "foo", f'proposer: must be {listed([*PROPOSERS.built_in])}, not "foo"'),
        ("DOCKER_HOST", "ssh://me@there", "forward the socket"),
    ],
)
def test_bad_variables(
    blastdoor: "Blastdoor", monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    """A variable that looks like a setting and is none is a typo, not the default; a value that is none, or an address
    of a kind that we do not speak, is bad input as well.
    """
    monkeypatch.setenv(name, value)
    code, stderr = blastdoor("exec", "--", "true")
    assert (code, line in stderr) == (Exit.BAD_INPUT, True), stderr


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


def test_no_engine(blastdoor: "Blastdoor") -> None:
    """Without an engine, every command says how to get one, in one line, with exit code 3."""
    for words in (["exec", "--", "true"], ["doctor"], ["attack"], ["reap"], ["exec", "--", "ls", "--verbose"]):
        code, stderr = blastdoor(*words)
        assert (code, len(stderr.splitlines())) == (Exit.NO_ENGINE, 1), stderr
        assert "start Docker, set DOCKER_HOST" in stderr


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


def test_verbose_shows_the_trace(blastdoor: "Blastdoor") -> None:
    """With --verbose an error shows its trace before its line, and the exit code stays the documented one; one that
    belongs to the candidate's command, as above, is not ours.
    """
    code, stderr = blastdoor("--verbose", "exec", "--", "true")
    assert code == Exit.NO_ENGINE
    assert "Traceback" in stderr
    assert stderr.splitlines()[-1].startswith("blastdoor: ")


def test_help_is_no_error(blastdoor: "Blastdoor") -> None:
    """Whoever asks for help gets it on stdout."""
    for words in (["--help"], ["exec", "-h"], ["--version"]):
        assert blastdoor(*words) == (Exit.OK, "")
        assert blastdoor.stdout
