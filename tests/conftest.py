"""Shared by all tests."""

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import private_slurm
from private_postgres import PrivatePostgres, postgres
from private_slurm import PrivateSlurm
from suite_times import TIMES
from tests.messages import MessagesServer
from tests.modal_emulator import ModalEmulator
from tests.order import dealt, weight
from tests.touched import left_out, look

MEMORY = Path("/dev/shm")
ROOM = 2 << 30  # bytes; what tests leave in their folders until the next run
# `make unit` leaves these to `make test`: whole campaigns and commands by the dozen, programs and packages of others
# (systemd, pip, SkyPilot, libcst, Optuna), floods, long random input, and tests of chance. They take most of the time
# of all tests that need no engine. A single test is marked `long` where it stands.
LONG = (
    "tests/attacks/",
    "tests/deploy/",
    "tests/examples/",
    "tests/sandbox/backends/test_docker_silence.py",
    "tests/sandbox/skypilot/",
    "tests/sandbox/test_lag.py",
    "tests/sandbox/test_wheels.py",
    "tests/test_started.py",
    "tests/orchestrator/agents/test_at_work.py",
    "tests/orchestrator/budget/test_books_balance.py",
    "tests/orchestrator/change/test_fuzz.py",
    "tests/orchestrator/discovery/test_discover.py",
    "tests/orchestrator/discovery/test_node.py",
    "tests/orchestrator/domain/test_certify",
    "tests/orchestrator/domain/test_chance.py",
    "tests/orchestrator/examine/",
    "tests/orchestrator/importing/test_costly.py",
    "tests/orchestrator/judge/test_cheats.py",
    "tests/orchestrator/judge/test_fuzz.py",
    "tests/orchestrator/loop/",
    "tests/orchestrator/machine/test_building.py",
    "tests/orchestrator/machine/test_up.py",
    "tests/orchestrator/notify/",
    "tests/orchestrator/proposers/operators/",
    "tests/orchestrator/proposers/test_samplers.py",
    "tests/orchestrator/proposers/test_tpe.py",
    "tests/orchestrator/views/",
    "tests/orchestrator/watch/test_any_stream.py",
)

BEGAN = pytest.StashKey[float]()
COMPUTED = "computed"

# These need an engine, a cluster or a process to kill, all of them.
ENGINE = ("tests/crash/", "tests/e2e/", "tests/slurm/")

# `make thorough` takes the second one. A test that wants more says how many times as many: `settings().max_examples`.
# A machine that is busy draws and runs slowly, and that is no failure. The first one draws the same each time: what it
# finds it finds for the one who wrote it, and not for whoever runs the tests next; the second one looks further.
for _name, _examples in (("test", 30), ("thorough", 100)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=_name == "test",
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--unit", action="store_true", help="read no file of which make unit runs nothing")
    parser.addoption("--touched", action="store_true", help="run what says more of an extra only where it changed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """To import what is left out takes as long as to run half of what is not."""
    if not config.getoption("unit"):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if f"{path}{'/' * collection_path.is_dir()}".startswith(LONG + ENGINE) else None


def pytest_configure(config: pytest.Config) -> None:
    """Folders of tests, and so every ledger, are in memory where that can be: the same code, and a disk that is quick.

    A library for matrices gets one thread: tests run beside each other, and threads that wait for the others spin.
    Nobody's own settings take part; a browser writes beside them. Workers have all of it from who started them.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if config.getoption("--touched"):
        look(config.rootpath)
    if _can_hold_folders(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
        os.environ.setdefault("TMPDIR", str(MEMORY))
    if not hasattr(config, "workerinput"):
        settings_of_nobody = tempfile.TemporaryDirectory(prefix="blastdoor-settings-")
        config.add_cleanup(settings_of_nobody.cleanup)
        os.environ["XDG_CONFIG_HOME"] = settings_of_nobody.name


def _can_hold_folders(place: Path) -> bool:
    if not place.is_dir() or not os.access(place, os.W_OK):
        return False
    found = os.statvfs(place)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > ROOM


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker("long")
    yield
    if config.getoption("--touched"):
        out = set(left_out(items))
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=list(out))
        _tell((item.nodeid, None, 0.0) for item in out)
    if workers := getattr(config, "workerinput", {}).get("workercount"):
        weights = {item: weight(mark.name for mark in item.iter_markers()) for item in items}
        items[:] = dealt(items, workers, lambda item: item.nodeid.partition("::")[0], weights.__getitem__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The processor's time of a test is that of its worker and of the processes that ended with it: no engine's."""
    item.stash[BEGAN] = _computed_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        item.user_properties.append((COMPUTED, _computed_s() - item.stash[BEGAN]))


def _computed_s() -> float:
    return sum(os.times()[:4])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # who started the workers hears it, too
        computed = dict(report.user_properties).get(COMPUTED, 0.0) if report.when == "teardown" else 0.0
        _tell([(report.nodeid, report.duration, float(str(computed)))])


def _tell(times: Iterable[tuple[str, float | None, float]]) -> None:
    """Append what each test took, and computed, for the one who started this; None for a test that was left out."""
    if path := os.environ.get(TIMES):
        with Path(path).open("a") as file:
            file.writelines(f"{json.dumps(each)}\n" for each in times)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests are made and none goes: looking for garbage among them takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


Deep = Callable[[Path, int], Path]


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Deep]:
    """Folders in one another, with a file in each. What a test that fails leaves of them goes here, for Python cannot
    remove it, and so neither can pytest.
    """
    yield _deep
    subprocess.run(["rm", "-rf", "--", str(tmp_path)], check=True)


def _deep(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d" * 8, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        inner = os.open("d" * 8, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    return folder


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see a pipe of no width, whatever runs them: workers of pytest-xdist are told the size of its terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)


@pytest.fixture(autouse=True)
def traces() -> None:
    """Whoever drove SkyPilot's own calls before left traces hidden."""
    if hasattr(sys, "tracebacklimit"):
        del sys.tracebacklimit


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivatePostgres]:
    """A real server, installed where it is missing. Who uses it is marked `postgres`; nobody is skipped without it.

    In memory, where there is such a place: the tests kill processes, not power. All else is as the package has it.
    """
    within = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    with postgres(tmp_path_factory.mktemp("postgres") / "apt.log", within) as server:
        yield server


@pytest.fixture
def database(postgres_server: PrivatePostgres, monkeypatch: pytest.MonkeyPatch) -> PrivatePostgres:
    """New campaigns of this test, and of processes that it starts, keep their ledger there."""
    monkeypatch.setenv("BLASTDOOR_LEDGER", postgres_server.url())
    return postgres_server


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSlurm]:
    """A real cluster and SkyPilot's real server, installed where they are missing. Who uses it is marked `slurm`.

    A process that rents there is given `slurm.environment()`; SkyPilot must not have been imported before.
    """
    with private_slurm.slurm(tmp_path_factory.mktemp("slurm") / "apt.log") as cluster:
        yield cluster


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """Speaks the Messages API on loopback, as the test scripts it; its key is `messages_server.key`."""
    with MessagesServer() as server:
        yield server


@pytest.fixture(scope="session")
def modal_process() -> Iterator[ModalEmulator]:
    """One for all tests: it takes a second to start."""
    emulator = ModalEmulator()
    yield emulator
    emulator.close()


@pytest.fixture
def modal_emulator(modal_process: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModalEmulator]:
    """A Modal on loopback, without sandboxes and faults. Who uses it is marked `modal`.

    This process, and those that the test starts, are told of it. A call that it does not know fails the test.
    """
    for name in [name for name in os.environ if name.startswith("MODAL_")]:
        monkeypatch.delenv(name)
    for name, value in modal_process.environment().items():
        monkeypatch.setenv(name, value)
    yield modal_process
    blemishes = modal_process.blemishes()
    modal_process.forget()
    assert not blemishes, f"calls that the emulator has not, or at which it broke: {blemishes}"
