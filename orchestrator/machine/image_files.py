"""What goes into an image beside its base: fetched with this machine's own npm and pip, compared with pinned hashes.

A definition says what it wants with the files that npm and pip have for it. Nothing that is fetched is run here. Claude
Code is one program without dependencies, in a package of npm for each kind of processor.
"""

import base64
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from orchestrator.machine.programs import Unprepared, child_environment, dying_with_us, last_line, program, require

PYTHON = "3.11"
# npm's name for a processor, and the oldest glibc that wheels for it are asked for.
MACHINES = {"aarch64": ("arm64", 17), "x86_64": ("x64", 12)}
NEWEST_GLIBC = 36


def machine() -> str:
    """The processor of this machine, which is the engine's too."""
    found = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())
    if found not in MACHINES:
        raise Unprepared(f"there is no such image for {found}; it is made for {' and '.join(MACHINES)}")
    return found


def gather(definition: Path, folder: Path, log: Path) -> None:
    """All files of the image, in `folder`. Raises Unprepared for what cannot be had, or is not what was pinned."""
    shutil.copytree(definition, folder, dirs_exist_ok=True)
    if (definition / "npm.json").exists():
        fetch_claude(json.loads((definition / "npm.json").read_text()), folder, log)
    if (definition / "requirements.txt").exists():
        fetch_wheels(definition / "requirements.txt", folder / "wheels")


def fetch_claude(pinned: dict[str, object], folder: Path, log: Path) -> None:
    kind = MACHINES[machine()][0]
    require("npm", log=log)
    package = f"{pinned['package']}-linux-{kind}@{pinned['version']}"
    _run([program("npm") or "npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), package])
    archive = next(folder.glob("*.tgz"))
    integrity = pinned["integrity"]
    wanted = integrity[machine()] if isinstance(integrity, dict) else ""
    check_integrity(archive, str(wanted))
    with tarfile.open(archive) as source:
        content = source.extractfile("package/claude")
        if content is None:
            raise Unprepared(f"{package} has no program claude in it")
        with content, (folder / "claude").open("wb") as target:
            while piece := content.read(1 << 20):
                target.write(piece)
    (folder / "claude").chmod(0o755)
    archive.unlink()


def check_integrity(archive: Path, wanted: str) -> None:
    """npm's own form: the name of a hash, and its value in base64."""
    seal = hashlib.sha512()
    with archive.open("rb") as content:
        while piece := content.read(1 << 20):
            seal.update(piece)
    found = f"sha512-{base64.b64encode(seal.digest()).decode()}"
    if found != wanted:
        raise Unprepared(
            f"{archive.name} is not what was pinned: it has {found}, and images/agent/npm.json has {wanted}"
        )


def fetch_wheels(requirements: Path, folder: Path) -> None:
    kind, oldest = machine(), MACHINES[machine()][1]
    tags = [f"manylinux_2_{minor}_{kind}" for minor in range(NEWEST_GLIBC, oldest - 1, -1)]
    platforms = [word for tag in (*tags, f"manylinux2014_{kind}") for word in ("--platform", tag)]
    target = ["--implementation", "cp", "--python-version", PYTHON, *platforms, "--dest", str(folder)]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(requirements)]
    _run([_python_with_pip(), "-m", "pip", "download", *options, *target])


def _python_with_pip() -> str:
    for python in (sys.executable, program("python3") or ""):
        if not python:
            continue
        command = [python, "-c", "import pip"]
        if subprocess.run(command, env=child_environment(), capture_output=True, check=False).returncode == 0:
            return python
    raise Unprepared("this machine has no pip to fetch packages with; install it (python3 -m ensurepip)")


def _run(command: list[str]) -> None:
    result = subprocess.run(
        command,
        env=child_environment(PIP_DISABLE_PIP_VERSION_CHECK="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=dying_with_us(),
    )
    if result.returncode:
        said = last_line(result.stdout + result.stderr)
        raise Unprepared(f"{Path(command[0]).name} failed with {result.returncode}: {said}")
