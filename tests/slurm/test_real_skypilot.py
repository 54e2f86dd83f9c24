"""SkyPilot itself on a real Slurm cluster: what our backend may rely on."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from private_slurm import PrivateSlurm

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(600)]


@contextlib.contextmanager
def _machine(sky: Any, rented: PrivateSlurm, name: str, run: str) -> Iterator[tuple[int, Any]]:
    task = sky.Task(run=run)
    task.set_resources(sky.Resources(infra=rented.infra, cpus="2", memory="2"))
    try:
        yield sky.get(sky.launch(task, cluster_name=name, idle_minutes_to_autostop=5, down=True))
    finally:
        sky.get(sky.down(name))


def test_a_machine_is_rented_used_and_given_back(sky: Any, rented: PrivateSlurm, tmp_path: Path) -> None:
    """One launch: a job that ends well, one that fails, files up and down, an engine within reach, the price."""
    ping = "curl --silent --unix-socket ${DOCKER_HOST#unix://} http://engine/_ping"
    with _machine(sky, rented, "bd-plain", f"echo $((6 * 7)); {ping}; mkdir -p out; echo 7 > out/value") as (
        job,
        handle,
    ):
        log = io.StringIO()
        assert sky.tail_logs("bd-plain", job, follow=True, output_stream=log) == 0, log.getvalue()
        assert "42" in log.getvalue()
        assert "OK" in log.getvalue()
        assert handle.launched_resources.get_cost(3600) == pytest.approx(2 * 0.05 + 2 * 0.01)
        runner = handle.get_command_runners()[0]
        runner.rsync("~/sky_workdir/out/", str(tmp_path / "down"), up=False, stream_logs=False)
        assert (tmp_path / "down" / "value").read_text() == "7\n"
        failing, _ = sky.get(sky.exec(sky.Task(run="exit 3"), cluster_name="bd-plain"))
        assert sky.tail_logs("bd-plain", failing, follow=True, output_stream=io.StringIO()) == 100
    assert rented.jobs() == []
