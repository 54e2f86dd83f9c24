"""The wheel alone, in an environment without a checkout: all that a user needs is in it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.machine.images import NAMES, plan

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("blastdoor", "orchestrator", "sandbox")
SOURCES = (*PACKAGES, "images", "pyproject.toml", "README.md", "LICENSE")
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")

pytestmark = pytest.mark.e2e


class Installed:
    """A virtual environment with the wheel and the example plugin; what they depend on is borrowed from ours."""

    def __init__(self, folder: Path) -> None:
        self.wheel = _wheel(folder, "product", REPOSITORY, SOURCES)
        plugin = _wheel(folder, "plugin", REPOSITORY / "examples" / "plugin", ("blastdoor_example", "pyproject.toml"))
        home = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
        self.bin = home / "bin"
        [site] = home.glob("lib/python*/site-packages")
        # A .pth of ours is read, those in the folder that it names are not: our editable package stays out.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", *OFFLINE]
        subprocess.run([*pip, str(self.wheel), str(plugin)], check=True)

    def run(self, program: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {f"XDG_{it}_HOME": str(cwd / ".xdg" / it.lower()) for it in ("CONFIG", "STATE", "CACHE")}
        command = [str(self.bin / program), *words]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    def blastdoor(self, *words: str, cwd: Path) -> str:
        ran = self.run("blastdoor", *words, cwd=cwd)
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
        return ran.stdout


def _wheel(folder: Path, name: str, root: Path, sources: tuple[str, ...]) -> Path:
    """Built from a copy, since a build leaves files behind."""
    copy = folder / name
    for source in sources:
        target = copy / source
        target.parent.mkdir(exist_ok=True)
        if (root / source).is_dir():
            shutil.copytree(root / source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / source, target)
    command = [sys.executable, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", str(folder / f"{name}-wheel"), str(copy)]
    subprocess.run(command, check=True)
    [built] = (folder / f"{name}-wheel").iterdir()
    return built


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


@pytest.mark.touching("packaging")
def test_what_is_in_the_wheel(installed: Installed) -> None:
    """Every file of our packages and of images/, the licence, and nothing of tests, benchmarks or scripts."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = set(wheel.namelist())
    listed = ["git", "-C", str(REPOSITORY), "ls-files", *PACKAGES, "images"]
    tracked = set(subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split())
    wanted = {f"sandbox/{name}" if name.startswith("images/") else name for name in tracked - {"sandbox/images"}}
    own = {name for name in names if ".dist-info/" not in name}
    assert wanted <= own
    assert {name.partition("/")[0] for name in own} == set(PACKAGES)
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_nothing_of_the_checkout_is_used(installed: Installed, tmp_path: Path) -> None:
    """Its own files are imported, and its images are those of the checkout, so that neither makes the other stale."""
    code = "import blastdoor, orchestrator, sandbox, sys; from orchestrator.machine.images import NAMES, plan;"
    code += "print(*(it.__file__ for it in (blastdoor, orchestrator, sandbox)), *sys.path, sep='\\n');"
    code += "print(*(it.digest for it in plan(None, NAMES)))"
    ran = installed.run("python", "-c", code, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    *places, digests = ran.stdout.splitlines()
    assert all(place.startswith(str(installed.bin.parent)) for place in places[:3])
    assert str(REPOSITORY) not in places
    assert digests.split() == [image.digest for image in plan(None, NAMES)]


@pytest.mark.docker
def test_the_first_task(installed: Installed, tmp_path: Path) -> None:
    """What the README shows, from an empty folder: a task is made, checked and searched, with a real engine."""
    installed.blastdoor("init", "my-task", cwd=tmp_path)
    assert "ready to be searched" in installed.blastdoor("check", "my-task", cwd=tmp_path)
    assert "3 of 3 attempts are used" in installed.blastdoor("run", "my-task", "--attempts", "3", cwd=tmp_path)
    assert installed.run("blastdoor", "status", "my-task", cwd=tmp_path).returncode == 0


@pytest.fixture
def tag() -> Iterator[str]:
    """Nobody else's; what was built with it is removed."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    subprocess.run(["docker", "rmi", f"blastdoor-busybox:{name}"], capture_output=True, check=True)


@pytest.mark.touching("packaging")
@pytest.mark.docker
def test_images_are_built(installed: Installed, tmp_path: Path, tag: str) -> None:
    """From the definitions in the wheel; a chamber starts from it, and a second build has nothing to do."""
    first = installed.run("blastdoor", "images", "build", "busybox", "--tag", tag, cwd=tmp_path)
    assert (first.returncode, f"building blastdoor-busybox:{tag}" in first.stderr) == (0, True), first.stderr
    again = installed.run("blastdoor", "images", "build", "busybox", "--tag", tag, cwd=tmp_path)
    assert (again.returncode, "building" in again.stderr) == (0, False)
    words = ["exec", "--image", f"blastdoor-busybox:{tag}", "--", "echo", "hello"]
    assert "hello" in installed.blastdoor(*words, cwd=tmp_path)


@pytest.mark.touching("packaging", "examples")
def test_the_plugins_own_tests(installed: Installed, tmp_path: Path) -> None:
    """The example package, installed beside the wheel, passes its own tests."""
    shutil.copytree(REPOSITORY / "examples" / "plugin" / "tests", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    ran = installed.run("python", *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout
