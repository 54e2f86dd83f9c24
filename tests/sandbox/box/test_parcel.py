"""What a rented machine installs is pinned by hash, and is what this repository pins."""

import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import box_requirements
from sandbox.box.parcel import REQUIREMENTS, WHEEL, parcel

NO_UV = "blastdoor: uv is not on the machine, though SkyPilot installs it"
NO_TIMER = "blastdoor: no timer is set that powers the machine off; nothing is run on it"


def test_pins_are_those_of_the_repository() -> None:
    """Derived again they are the same; every line is a version with its hashes, and nothing names an index."""
    text = box_requirements.TARGET.read_text("utf-8")
    assert text == box_requirements.derived(), "run scripts/box_requirements.py"
    assert "://" not in text
    assert "--index" not in text
    for block in re.split(r"\n(?=[a-z])", text)[1:]:
        assert "--hash=sha256:" in block, block.partition("\n")[0]


ALONE = """
import importlib.abc, importlib.metadata, sys

allowed = set(sys.argv[1:]) | set(sys.stdlib_module_names) | {"sandbox"}


class OnlyThose(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, OnlyThose())
import sandbox.box.__main__, sandbox.box.timer, sandbox.backends.docker.warden
"""


def test_all_that_the_machine_imports_is_pinned() -> None:
    """What runs there can be imported with the standard library, ourselves and what is pinned, and nothing else."""
    pinned = [name.replace("-", "_") for name in box_requirements.pinned(parcel().files[REQUIREMENTS].decode())]
    subprocess.run([sys.executable, "-c", ALONE, *pinned], check=True)


def test_the_wheel_is_one() -> None:
    """Its record names every file with its digest, and the seccomp profile and the boot script are in it; the same
    code gives the same bytes.
    """
    first = parcel().files[WHEEL]
    parcel.cache_clear()
    assert parcel().files[WHEEL] == first
    with zipfile.ZipFile(BytesIO(parcel().files[WHEEL])) as wheel:
        names = set(wheel.namelist())
        record = wheel.read("blastdoor_sandbox-0.dist-info/RECORD").decode()
    assert {"sandbox/boot.sh", "sandbox/seccomp.json", "sandbox/box/work.py"} <= names
    assert {line.split(",")[0] for line in record.splitlines()} == names
    assert not any("__pycache__" in name for name in names)


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    """A machine without uv gets one line that says so."""
    assert furnished(tmp_path, "node") == NO_UV


@pytest.mark.parametrize(("after", "line"), [(3, NO_UV), (1000, NO_TIMER)])
def test_a_virtual_machine_whose_timer_is_late(tmp_path: Path, after: int, line: str) -> None:
    """SkyPilot sets it beside us, after the launch has returned: it is waited for, and without it nothing is run."""
    programs = tmp_path / "bin"
    programs.mkdir()
    slept, timer = tmp_path / "slept", tmp_path / "timer"
    for name, script in {
        "sleep": f'echo >>{slept}; [ "$(wc -l <{slept})" -lt {after} ] || : >{timer}',
        "sudo": "exit 0",
        "dockerd": "exit 0",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    assert furnished(tmp_path, "vm", str(timer)) == line
    assert len(slept.read_text()) == min(after, 120)


def furnished(home: Path, kind: str, *timer: str) -> str:
    """The last line of a machine on which nothing of ours is; it never gets as far as to install anything."""
    parcel().write(home / ".blastdoor" / "parcels" / "x")
    script = home / ".blastdoor" / "parcels" / "x" / "furnish.sh"
    ran = subprocess.run(
        ["sh", script, "x", kind, "0", *timer],
        env={"HOME": str(home), "PATH": f"{home / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3
    return ran.stdout.splitlines()[-1]
