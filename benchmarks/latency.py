"""What a trial waits for: a warm chamber, against a plain process and against `docker run` with the same posture."""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figure import Figure
from sandbox import Bundle, DockerConfig, Ending, Job, Limits
from sandbox.backends.docker.backend import DockerBackend
from sandbox.posture import CHAMBER_UIDS, FULL, container_config, seccomp_profile

COMMAND = ("python3", "-c", "pass")
JOB = Job(command=COMMAND, limits=Limits(cpus=2))
BUNDLE = Bundle({"main.py": b"print('hello')\n" * 100})


def plain_process() -> float:
    # The system's own interpreter where there is one, isolated: what the image has too. A virtual environment, a shim
    # or a slow build in its place would flatter the chamber.
    system = Path("/usr/bin/python3")
    interpreter = system if system.exists() else Path(sys.executable).resolve()
    command = [str(interpreter), "-I", *COMMAND[1:]]
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started


def posture_flags(profile: Path) -> list[str]:
    """The same posture by hand: every flag is taken from the chamber's own create request."""
    config = container_config(FULL, JOB.limits, "runc", "", JOB.image)["HostConfig"]
    assert isinstance(config, dict)  # noqa: S101  narrows the type
    flags = ["--network=none", "--ipc=none", "--cgroupns=private", "--read-only", "--cap-drop=ALL"]
    flags += ["--security-opt=no-new-privileges", f"--security-opt=seccomp={profile}", "--log-driver=none"]
    flags += [
        f"--memory={config['Memory']}",
        f"--memory-swap={config['Memory']}",
        f"--pids-limit={config['PidsLimit']}",
    ]
    flags += [f"--tmpfs={path}:{options}" for path, options in config["Tmpfs"].items()]
    flags += [f"--ulimit={item['Name']}={item['Soft']}:{item['Hard']}" for item in config["Ulimits"]]
    uid = CHAMBER_UIDS.start
    return [f"--user={uid}:{uid}", "--cpus=2", *flags]


def docker_run(profile: Path, environment: Mapping[str, str] | None = None) -> float:
    """`environment` names another engine than the one that we work with."""
    command = ["docker", "run", "--rm", *posture_flags(profile), JOB.image, *COMMAND]
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - started


async def warm_chamber(backend: DockerBackend) -> float:
    """Open, deliver, run, harvest, as a trial sees it; the removal goes on behind its back."""
    while not backend.warm_ready:  # noqa: ASYNC110  the pool has no event for it, and needs none elsewhere
        await asyncio.sleep(0.02)
    started = time.perf_counter()
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(BUNDLE)
        elapsed = time.perf_counter() - started
    if outcome.ending is not Ending.COMPLETED:
        raise RuntimeError(json.dumps(outcome.reason))
    return elapsed


async def measure(samples: int = 30) -> list[Figure]:
    backend = await DockerBackend.connect(DockerConfig(warm=1))
    plain, warm, run = [], [], []
    try:
        await (await backend.open(JOB)).kill()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as profile:
            profile.write(seccomp_profile())
            profile.flush()
            for _ in range(samples):
                plain.append(await asyncio.to_thread(plain_process))
                warm.append(await warm_chamber(backend))
                await asyncio.sleep(0.5)  # the next warm chamber is being made: let it finish before the others run
                run.append(await asyncio.to_thread(docker_run, Path(profile.name)))
    finally:
        await backend.close()
    a, b, c = (statistics.median(values) * 1000 for values in (plain, warm, run))
    return [
        Figure("plain process `python3 -c pass`", a, "ms"),
        Figure("warm chamber, files in and out", b, "ms"),
        Figure("`docker run --rm`, same posture", c, "ms"),
        Figure("warm chamber / plain process", b / a, "x", "<= 4"),
        Figure("warm chamber / `docker run --rm`", b / c, "x", "<= 0.35"),
    ]
