"""What a rented machine installs is pinned by hash, and is what this repository pins."""

import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import box_requirements
from sandbox.box.parcel import REQUIREMENTS, WHEEL, parcel


def test_pins_are_those_of_the_repository() -> None:
    """Derived anew they are the same; every line is a version with its hashes, and nothing names an index."""
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
    """Its record names every file with its digest, and the seccomp profile and the boot script are in it."""
    with zipfile.ZipFile(BytesIO(parcel().files[WHEEL])) as wheel:
        names = set(wheel.namelist())
        record = wheel.read("blastdoor_sandbox-0.dist-info/RECORD").decode()
    assert {"sandbox/boot.sh", "sandbox/seccomp.json", "sandbox/box/work.py"} <= names
    assert {line.split(",")[0] for line in record.splitlines()} == names
    assert not any("__pycache__" in name for name in names)


def test_the_script_says_what_is_missing(tmp_path: Path) -> None:
    """A machine without uv, or a virtual machine without a timer, gets one line that says so."""
    parcel().write(tmp_path / ".blastdoor" / "parcels" / "x")
    script = tmp_path / ".blastdoor" / "parcels" / "x" / "furnish.sh"
    ran = subprocess.run(
        ["sh", script, "x", "node", "0"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3
    assert ran.stdout.splitlines()[-1] == "blastdoor: uv is not on the machine, though SkyPilot installs it"
