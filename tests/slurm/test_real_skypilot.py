"""SkyPilot itself on a real Slurm cluster, without our backend: what that may rely on."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from own_processes import processes_saying
from private_slurm import PrivateSlurm
from slurm_files import CPU_USD, GIB_USD

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900), pytest.mark.touching("skypilot")]

NAME = "plain"
SLEEP = "sleep 314.159265358"  # to be found among all processes


@dataclass(frozen=True, slots=True)
class Rental:
    """One machine for this file's tests. `sky` is SkyPilot's own package."""

    sky: Any
    slurm: PrivateSlurm
    handle: Any

    def task(self, run: str | None, **wanted: Any) -> Any:
        task = self.sky.Task(run=run)
        task.set_resources(self.sky.Resources(infra=self.slurm.infra, **wanted))
        return task

    def run(self, line: str) -> tuple[int, str]:
        """0 or 100, whatever the program's own code was, and the log with SkyPilot's words between."""
        number, _ = self.sky.get(self.sky.exec(self.sky.Task(run=line), cluster_name=NAME))
        log = io.StringIO()
        return self.sky.tail_logs(NAME, number, follow=True, output_stream=log), log.getvalue()


@pytest.fixture(scope="module")
def rental(slurm: PrivateSlurm) -> Iterator[Rental]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        for name, value in slurm.environment().items():
            patch.setenv(name, value)
        import sky

        empty = Rental(sky, slurm, None)
        launch = sky.launch(
            empty.task(None, cpus="2", memory="2"), cluster_name=NAME, idle_minutes_to_autostop=10, down=True
        )
        try:
            yield Rental(sky, slurm, sky.get(launch)[1])
        finally:
            sky.get(sky.down(NAME))
        assert slurm.jobs() == []
        (bill,) = [row for row in sky.get(sky.cost_report()) if row["name"] == NAME]
        assert bill["total_cost"] == pytest.approx(bill["duration"] * (2 * CPU_USD + 2 * GIB_USD) / 3600)


def test_a_job_runs_there(rental: Rental, tmp_path: Path) -> None:
    """In a home of the machine's own, with an engine and uv in reach; its files come back, its price is known."""
    ping = "curl --silent --unix-socket ${DOCKER_HOST#unix://} http://engine/_ping; echo"
    version = "import sys; print(sys.version_info > (3, 11))"
    uv = f"~/.local/bin/uv venv --quiet --python '>=3.11' new; new/bin/python -c '{version}'"
    code, log = rental.run(f"echo $((6 * 7)); {ping}; {uv}; mkdir -p out; echo 7 > out/value")
    assert code == 0, log
    for word in ("42", "OK", "True"):
        assert f" {word}\n" in log, log
    runner = rental.handle.get_command_runners()[0]
    runner.rsync("~/sky_workdir/out/", str(tmp_path / "down"), up=False, stream_logs=False)
    assert (tmp_path / "down" / "value").read_text() == "7\n"
    assert rental.handle.launched_resources.get_cost(3600) == pytest.approx(2 * CPU_USD + 2 * GIB_USD)


def test_a_job_that_fails_and_one_that_is_late(rental: Rental) -> None:
    """The program's own exit code is not told: that is why ours travels in the bundle."""
    code, log = rental.run(f"timeout --signal=KILL 2 {SLEEP}; exit 3")
    assert code == 100, log
    assert processes_saying(f"^{SLEEP}") == []


def test_a_job_that_is_cancelled(rental: Rental) -> None:
    sky = rental.sky
    number, _ = sky.get(sky.exec(sky.Task(run=f"echo begun; {SLEEP}"), cluster_name=NAME))
    while not processes_saying(f"^{SLEEP}"):
        assert not sky.get(sky.job_status(NAME, [number]))[number].is_terminal()
    sky.get(sky.cancel(NAME, job_ids=[number]))
    assert processes_saying(f"^{SLEEP}") == []
    assert sky.get(sky.job_status(NAME, [number]))[number].is_terminal()
