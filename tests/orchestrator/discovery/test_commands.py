"""Languages of which no function is asked: which command is found in their files, and that it is timed as a whole."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.discovery.bench import alike
from orchestrator.discovery.commands import OtherCommand, other_commands
from orchestrator.discovery.discover import discover
from orchestrator.discovery.needs import needs_of
from orchestrator.discovery.targets import CommandTarget
from orchestrator.discovery.writing import Made
from orchestrator.importing import write_task
from orchestrator.machine.programs import child_environment
from orchestrator.task import load_task
from tests.orchestrator.discovery.repositories import laboratory, repository

GO = ("env", "GOCACHE=/tmp/go", "GOFLAGS=-mod=mod", "GOPROXY=off", "HOME=/tmp", "go", "test", "-count=1")
RUST = ("env", "CARGO_HOME=/tmp/cargo", "CARGO_TARGET_DIR=/tmp/target", "cargo", "test", "--offline", "--quiet")
RUBY = ("sh", "-c", 'for it do ruby -Ilib -Itest "$it" || exit 1; done', "tests")


def only(folder: Path, files: dict[str, str]) -> OtherCommand:
    (found,) = other_commands(repository(folder, files))
    return found


GO_BENCHES = (*GO, "-run=^$", "-bench=.", "-benchtime=50x", "./...")
GO_FILES = {"go.mod": "", "a.go": ""}
MEASURES = "func BenchmarkA(b *testing.B) {}"
MAKEFILE = "test: a\n\t./a\nbench:\n\t./a 9\n"
C_NEEDS = ("make", "gcc", "libc6-dev", "g++")
# Files, the command that is timed, the one that guards, and what a language needs.
OF_LANGUAGES: dict[str, tuple[dict[str, str], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "Rust": ({"Cargo.toml": "", "src/lib.rs": "#[test]\nfn it() {}", "tests/it.rs": ""}, RUST, (), ("cargo", "rustc")),
    "Go": (GO_FILES | {"a_test.go": "func TestA(t *testing.T) {}"}, (*GO, "./..."), (), ("golang-go",)),
    "Go with benchmarks": (GO_FILES | {"a_test.go": MEASURES}, GO_BENCHES, (*GO, "./..."), ("golang-go",)),
    "Ruby": ({"lib/a.rb": "", "test/a_test.rb": ""}, (*RUBY, "test/a_test.rb"), (), ("ruby",)),
    "Lua": ({"a.lua": "", "bench/a.lua": ""}, ("lua5.4", "bench/a.lua"), (), ("lua5.4",)),
    "Perl": ({"lib/A.pm": "", "t/a.t": "", "t/b.t": ""}, ("prove", "-l", "t/a.t", "t/b.t"), (), ("perl",)),
    "C": ({"a.c": "", "Makefile": MAKEFILE}, ("make", "-s", "bench"), ("make", "-s", "test"), C_NEEDS),
}


@pytest.mark.parametrize("name", OF_LANGUAGES)
def test_the_command_of_a_language(tmp_path: Path, name: str) -> None:
    """A benchmark is timed and the tests guard; without one the tests are timed. Neither of them may be changed."""
    files, command, guard, needs = OF_LANGUAGES[name]
    code = next(it for it in files if it.startswith(("src/", "lib/", "a.")) and "test" not in it)
    assert only(tmp_path, files) == OtherCommand(name.split()[0], command, guard, code, (code,), needs)


@pytest.mark.parametrize(
    "files",
    [
        {"src/lib.rs": "#[test]\nfn it() {}"},
        {
            "Cargo.toml": "",
            "src/lib.rs": "fn it() {}",
            "go.mod": "",
            "a.go": "",
            "lib/a.rb": "",
            "lib/A.pm": "",
            "a.c": "",
        },
        {"a_test.go": "", "t/a.t": "", "test/a.lua": "", "a.java": "", "ATest.java": "", "Makefile": "test:\n\ttrue\n"},
        {"a.c": "", "Makefile": "test := a\nall:\n\tcc a.c\n"},
    ],
)
def test_nothing_to_start_or_nothing_to_change(tmp_path: Path, files: dict[str, str]) -> None:
    """Without a manifest, a test or benchmark, or code beside these, nothing is offered."""
    assert other_commands(repository(tmp_path, files)) == ()


def test_several_languages(tmp_path: Path) -> None:
    """Each has its own command, of its own files."""
    files = {"lib/a.rb": "", "test/a_test.rb": "", "a.c": "", "GNUmakefile": "check:\n\ttrue\n"}
    found = other_commands(repository(tmp_path, files))
    assert [(it.language, it.editable) for it in found] == [("Ruby", ("lib/a.rb",)), ("C", ("a.c",))]


def test_names_of_files_are_no_code(tmp_path: Path) -> None:
    """Files are arguments of the line that starts each of them, whatever they are called."""
    name = "test/$(touch ran) `touch ran`; touch ran_test.rb"
    words = only(tmp_path / "there", {"lib/a.rb": "", name: ""}).command
    assert words[-1] == name
    line = [it.replace("ruby -Ilib -Itest", "printf '%s\n'") for it in words]
    said = subprocess.check_output(line, cwd=tmp_path, env=child_environment(), text=True, timeout=60)
    assert said == f"{name}\n"
    assert not (tmp_path / "ran").exists()


async def test_a_command_becomes_a_task(tmp_path: Path) -> None:
    """It is timed as a whole, what it prints is gold, and the tests guard every candidate. Tests that fail guard
    nothing, and are told.
    """
    files = {
        "a.c": "int main() { return 0; }\n",
        "Makefile": "bench:\n\t@echo took 0.1 s\ntest:\n\t@true\n",
        "lib/a.rb": "",
        "spec/a_test.rb": "",
    }
    there = repository(tmp_path / "there", files)
    needs = needs_of(there, {}, ())
    assert needs.apt == ("ruby", "make", "gcc", "libc6-dev", "g++")
    others = tuple(it for it in needs.others if it.language == "C")
    found = await discover(there, laboratory(there), lambda _: None, others=others)
    (target,) = found.targets
    assert isinstance(target, CommandTarget)
    assert (target.how, target.output) == ("exact", "took 0.1 s\n")
    assert "a program that does nothing but print that would seem fastest" in target.holes[0]
    write_task(Made(there, (), needs.apt, found.guards, 256).task(target, "c"), tmp_path / "task")
    task = load_task(tmp_path / "task")
    assert tuple(task.editable) == ("a.c",)
    assert [it.command for it in task.guards] == [("make", "-s", "test")]
    assert task.image.apt == needs.apt

    (tmp_path / "there/Makefile").write_text("bench:\n\t@echo no; exit 3\ntest:\n\t@exit 4\n")
    broken = repository(tmp_path / "there", {})
    found = await discover(broken, laboratory(broken), lambda _: None, others=others)
    assert (found.targets, found.guards) == ([], [])
    assert "guard nothing" in found.notes[0]
    assert "make -s bench fails" in found.notes[1]


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([b"a\n", b"a\n"], ("exact", "a\n")),
        ([b"took 3 ms\n", b"took 4 ms\n"], ("numbers",)),
        ([b"a", b"b"], ("code", "")),
        # Cut in bytes, it has half as many letters: the whole output would never be the same as this.
        ([("\u00e9" * 300_000).encode()[: (1 << 18) + 1]] * 3, ("code", "")),
    ],
)
def test_what_of_an_output_can_be_compared(outputs: list[bytes], found: tuple[str, ...]) -> None:
    assert alike(outputs)[: len(found)] == found
