"""What a machine writes is taken through a pipe, whole or cut off at the cap, and never fills our disk or memory."""

import subprocess
from pathlib import Path

import pytest

from sandbox.backends.skypilot.pipe import BROKEN, bounded_output
from sandbox.errors import Unavailable

pytestmark = pytest.mark.touching("skypilot")


def local(line: str, output: Path) -> int:
    return subprocess.run(["bash", "-c", f"({line}) > {output}"], stderr=subprocess.DEVNULL, check=False).returncode


def test_bytes_arrive_as_they_are() -> None:
    """Every byte, and the command's own exit code, though the connection itself ended well."""
    data = bytes(range(256)) * 300
    octal = "".join(f"\\{byte:03o}" for byte in range(256))
    command = f"for i in $(seq 300); do printf '{octal}'; done; exit 7"
    assert bounded_output(command, 100_000, local) == (7, data)


def test_noise_of_a_login_shell_is_no_part_of_it() -> None:
    """What is said before our own first word is dropped."""
    code, output = bounded_output("echo hi", 100, lambda line, path: local(f"echo welcome; {line}", path))
    assert (code, output) == (0, b"hi\n")


def test_a_machine_that_never_stops_writing_is_cut_off() -> None:
    """Endless output ends at the cap, and whoever writes it gets a broken pipe."""
    code, output = bounded_output("cat /dev/zero", 10_000, local)
    assert output == bytes(10_000)
    assert code == BROKEN


def test_a_connection_that_fails_at_once() -> None:
    """Nobody waits for a writer that never comes."""
    with pytest.raises(Unavailable, match="cannot be reached"):
        bounded_output("echo hi", 100, lambda line, path: 255)


@pytest.mark.parametrize("answer", ["%%%", "QUJD", "QUJD:x.", "QUJD=:0", "=QUJD:0."])
def test_answers_that_are_not_as_asked_for(answer: str) -> None:
    """A machine that does not run our line gets no exit code of 0, whatever it says."""

    def forged(line: str, path: Path) -> int:
        word = line.split()[2].rstrip(";")
        return local(f"printf '%s%s' {word} {answer!r}", path)

    code, _ = bounded_output("echo hi", 100, forged)
    assert code == BROKEN
