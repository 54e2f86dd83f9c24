"""`exec`, `doctor`, `attack` and `reap` on a backend of another package, which brings no more than a site."""

import json
from pathlib import Path

import pytest

from tests.orchestrator.views.test_cli import Blastdoor
from tests.plugins import Packages

BACKEND = """
from contextlib import asynccontextmanager

from orchestrator.loop.jobs import Image
from orchestrator.wiring.site import Site
from sandbox import Input
from sandbox.backends.fake.backend import FakeBackend
from sandbox.conformance import programs

blastdoor_interface = 1


async def program(guest):
    if guest.job.command[0] == "say":
        assert guest.job.image == "ready/" + IMAGES[-1]
        guest.log(guest.files["word"] + guest.job.inputs[0].name.encode())
        return 0
    return await programs.play(guest) if guest.job.command[-1] in programs._FAKES else 0


IMAGES = []


async def bake(spec):
    IMAGES.append(spec.base or "trial")
    return Image("ready/" + IMAGES[-1], "d")


class Slots:
    __slots__ = ("backend", "capabilities")

    def __init__(self, backend):
        self.backend, self.capabilities = backend, backend.capabilities

    async def open(self, job):
        return await self.backend.open(job)

    async def reap(self):
        return ["left-behind"]

    async def close(self):
        await self.backend.close()


class Pretend:
    def __init__(self, context):
        self.gpu = context.choice.gpu

    def planned(self):
        return Site(
            name="pretend",
            backend=Slots(FakeBackend(program)),
            bake=bake,
            add_input=lambda name, path: Input(name=name, digest="0" * 64),
            usd_per_second=lambda limits: 0.5,
            ceiling=lambda limits: 4,
            gpu=self.gpu,
        )

    @asynccontextmanager
    async def open(self, progress):
        site = self.planned()
        try:
            yield site
        finally:
            await site.backend.close()
"""
PRETEND = {"blastdoor.backends": {"pretend": "{module}:Pretend"}}
WHO = 'the backend "pretend" of the package blastdoor-counting 1.2 '


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path / "packages", monkeypatch)


@pytest.fixture
def blastdoor(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Blastdoor:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.chdir(tmp_path)
    return Blastdoor(monkeypatch, capfd)


def test_exec_and_reap(packages: Packages, blastdoor: Blastdoor, tmp_path: Path) -> None:
    """Files and inputs come in, the image is baked there, the log comes out; no engine is looked for. What its backend
    ended is told.
    """
    packages.install(BACKEND, PRETEND)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "word").write_text("seen ")
    words = ("exec", "--backend", "pretend", "--image", "mine:1", "--in", "in", "--input", "data=in", "--", "say")
    code, stderr = blastdoor(*words)
    assert (code, blastdoor.stdout) == (0, "seen data\n"), stderr
    assert blastdoor("reap", "--backend", "pretend") == (0, "")
    assert blastdoor.stdout == "removed left-behind\n1 removed\n"


def test_doctor(packages: Packages, blastdoor: Blastdoor) -> None:
    """The contract is run on it. Rows for which a site is not enough say so, and break nothing."""
    packages.install(BACKEND, PRETEND)
    rows = ("--only", "success_with_outputs", "--only", "orphan_is_reaped")
    code, stderr = blastdoor("doctor", "--backend", "pretend", "--json", *rows)
    assert code == 0, stderr
    found = json.loads(blastdoor.stdout)
    assert [(row["subject"], row["holds"]) for row in found["rows"]] == [("pretend", True), ("pretend", None)]
    assert found["account"]["price"].startswith("$0.50000000 a second; ")
    assert found["posture"]["facts"] == {"cpu": "pretended", "cores": "0"}
    code, stderr = blastdoor("doctor", "--backend", "pretend", "--runtime", "runc")
    assert (code, "--runtime is examined on one's own engine" in stderr) == (2, True)


def test_attack(packages: Packages, blastdoor: Blastdoor) -> None:
    """What runs nothing blocks nothing, and is told so; rows that look at an engine from outside are not here."""
    packages.install(BACKEND, PRETEND)
    code, stderr = blastdoor("attack", "--backend", "pretend", "--only", "T01", "--json")
    assert code == 1, stderr
    found = {row["id"]: (row["runtime"], row["here"], row["ran"]) for row in json.loads(blastdoor.stdout)}
    assert found["T01"] == ("pretend", False, False)
    assert found["C01"] == ("pretend", True, False)
    assert blastdoor("attack", "--backend", "pretend", "--only", "T01")[0] == 1
    assert "0 blocked, 2 not, 1 not here" in blastdoor.stdout
    code, stderr = blastdoor("attack", "--backend", "pretend", "--mutate")
    assert (code, "--mutate switches flags of an engine off, and pretend has none" in stderr) == (2, True), stderr


OWN = """
    async def reap(self):
        return ["mine"], ["stuck"]

    def subject(self):
        from sandbox.conformance.fake import FakeSubject

        return FakeSubject()

    def target(self):
        from sandbox import Refused

        raise Refused("nothing here can be attacked; use doctor")
"""


def test_what_it_offers_itself(packages: Packages, blastdoor: Blastdoor) -> None:
    """A provider that lends more than a site is asked for it, and one that offers less says so in one line."""
    place = packages.install(BACKEND + OWN, PRETEND)
    code, stderr = blastdoor("reap", "--backend", "pretend")
    assert (code, "could not remove stuck" in stderr, blastdoor.stdout) == (
        3,
        True,
        "removed mine\n1 removed, 1 could not be removed\n",
    )
    code, stderr = blastdoor("attack", "--backend", "pretend")
    assert (code, stderr) == (2, "blastdoor: nothing here can be attacked; use doctor\n")
    code, stderr = blastdoor("doctor", "--backend", "pretend", "--json", "--only", "orphan_is_reaped")
    assert code == 0, stderr
    assert json.loads(blastdoor.stdout)["rows"][0]["holds"] is True
    packages.remove(place)
    packages.install(BACKEND + '\n    meaningless = {"infra": "--infra means nothing to pretend"}\n', PRETEND)
    code, stderr = blastdoor("exec", "--backend", "pretend", "--infra", "aws", "--", "true")
    assert (code, stderr) == (2, "blastdoor: --infra means nothing to pretend\n")


ALL = (["exec", "--", "true"], ["doctor"], ["attack"], ["reap"])
FAULT = "{}['missing']"
OPENED = "        site = self.planned()\n"
INHERITED = BACKEND.replace("class Pretend:", "from blastdoor import Provider\n\n\nclass Pretend(Provider):")
CHAMBER = "        return await self.backend.open(job)"


@pytest.mark.parametrize(
    ("commands", "code", "exit_code", "says"),
    [
        (ALL, "import nosuchthing", 2, "cannot be loaded (ModuleNotFoundError"),
        (ALL, BACKEND.replace("interface = 1", "interface = 0"), 2, "says blastdoor_interface = 0, and this is"),
        (
            ALL,
            BACKEND.replace("        self.gpu =", f"        {FAULT}\n        self.gpu ="),
            2,
            "cannot be made (KeyEr",
        ),
        (ALL, BACKEND.replace("def open(self, progress", "def start(self, progress"), 2, "it has no open, which a bac"),
        (ALL[:1], BACKEND.replace("lambda limits: 0.5", f"lambda limits: {FAULT}"), 2, "failed: KeyError"),
        (ALL[:2], BACKEND.replace(CHAMBER, f"        {FAULT}"), 2, "failed: KeyError"),
        (ALL, BACKEND.replace("lambda limits: 0.5", "lambda limits: 0.5, surprise=1"), 3, "failed: TypeError"),
        (ALL[:1] + ALL[3:], BACKEND.replace(OPENED, f"        {FAULT}\n{OPENED}"), 3, "failed: KeyError: 'missing'"),
        (ALL[:2], INHERITED.replace(CHAMBER, f"        {FAULT}"), 2, "failed: KeyError"),
        (ALL[3:], INHERITED.replace("def reap", "def sweep"), 2, "does not offer `reap`; look at its provider"),
        (ALL[3:], BACKEND.replace("def reap", "def sweep"), 2, "does not offer `reap`; look at its provider"),
        (
            ALL,
            BACKEND + "\n    @classmethod\n    def admit(cls, choice, anywhere):\n        1 / 0\n",
            2,
            "ZeroDivision",
        ),
        (ALL, BACKEND + '\n    meaningless = {"nonsense": "no"}\n', 2, "failed: KeyError: 'nonsense'"),
    ],
)
def test_its_faults(
    packages: Packages,
    blastdoor: Blastdoor,
    commands: tuple[list[str], ...],
    code: str,
    exit_code: int,
    says: str,
) -> None:
    """One line with its package and a documented exit code; the rest of the command line works."""
    packages.install(code, PRETEND)
    for name, *words in commands:
        found, stderr = blastdoor(name, "--backend", "pretend", *words)
        assert (found, len(stderr.splitlines())) == (exit_code, 1), stderr
        assert stderr.startswith(f"blastdoor: {WHO}"), stderr
        assert says in stderr
    assert blastdoor("--version")[0] == blastdoor("exec", "--help")[0] == 0
