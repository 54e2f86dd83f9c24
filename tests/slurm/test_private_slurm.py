"""What a cluster leaves on the machine that it was brought up on."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import private_slurm
from own_processes import own_processes, processes_saying

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600), pytest.mark.touching("skypilot")]

SCRIPTS = Path(private_slurm.__file__).parent
OWNER = """
import sys, time
from pathlib import Path
import private_slurm
with private_slurm.slurm(Path(sys.argv[1]) / "apt.log") as cluster:
    print(cluster.home, cluster.user, cluster.uid, flush=True)
    time.sleep(600)
"""


def executors_of(folder: Path) -> set[int]:
    """Found by their title and by where they write, which is not how the cluster itself finds them."""
    found = set()
    for process in processes_saying("^SkyPilot:"):
        with contextlib.suppress(FileNotFoundError):  # it ended meanwhile
            if Path(f"/proc/{process.pid}/fd/2").readlink().is_relative_to(folder):
                found.add(process.pid)
    return found


def test_what_a_killed_owner_left_is_swept(tmp_path: Path) -> None:
    """Folder, user and processes, by the next who brings one up; while the owner lives, nothing is touched."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
    )
    try:
        assert owner.stdout
        folder, user, uid = owner.stdout.readline().split()
        until = time.monotonic() + private_slurm.START_SECONDS
        while not (executors := executors_of(Path(folder))) and time.monotonic() < until:
            time.sleep(0.5)
        assert executors, "SkyPilot's server has none: nothing is tested"
        private_slurm.sweep()
        assert pwd.getpwnam(user).pw_uid == int(uid)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        private_slurm.sweep()
        with pytest.raises(KeyError):
            pwd.getpwnam(user)
        assert not Path(folder).exists()
        assert own_processes(Path(folder), int(uid)) == []
        assert not executors & {process.pid for process in processes_saying("^SkyPilot:")}
    finally:
        owner.kill()
        owner.wait()
