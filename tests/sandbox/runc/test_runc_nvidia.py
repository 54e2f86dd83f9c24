"""A driver of NVIDIA that is pretended by files: what a chamber gets of it, and when a GPU is not given out."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.runc.nvidia import Driver
from sandbox.errors import NoSuchGpu, Refused, Unavailable
from sandbox.gpus import SeenGpu, is_kind

ABOUT = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t {id}\nDevice Minor: \t {minor}\n"
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (someone@)\n"
TOOL = """#!/bin/sh
case "$1" in
--query-gpu=uuid,memory.total) printf 'GPU-0, 143771\\nGPU-1, 143771\\n' ;;
--query-gpu=uuid,memory.used) cat "{folder}/memory" ;;
--query-compute-apps=gpu_uuid,pid) cat "{folder}/processes" ;;
esac
"""


class Machine:
    """Files in place of a driver; the devices are this machine's own null."""

    def __init__(self, folder: Path, gpus: int = 2) -> None:
        self.folder = folder
        for number in range(gpus):
            place = folder / "proc/gpus" / f"0000:0{number}:00.0"
            place.mkdir(parents=True)
            (place / "information").write_text(ABOUT.format(id=f"GPU-{number}", minor=number))
        (folder / "proc").mkdir(exist_ok=True)
        (folder / "proc/version").write_text(VERSION)
        for part in ("lib", "bin", "dev"):
            (folder / part).mkdir()
        for name in ("libcuda.so", "libnvidia-ml.so", "libnvidia-gpucomp.so"):
            (folder / "lib" / f"{name}.580.159.04").touch()
        (folder / "lib/libcuda.so.550.1").touch()
        tool = folder / "bin/nvidia-smi"
        tool.write_text(TOOL.format(folder=folder))
        tool.chmod(0o755)
        for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1"):
            (folder / "dev" / name).symlink_to("/dev/null")
        self.uses((0, 0))

    def uses(self, memory: tuple[int, ...], *processes: str) -> None:
        rows = [f"GPU-{number}, {used}\n" for number, used in enumerate(memory)]
        (self.folder / "memory").write_text("".join(rows))
        (self.folder / "processes").write_text("".join(f"{it}\n" for it in processes))

    def driver(self) -> Driver:
        folder = self.folder
        return Driver(folder / "proc", folder / "dev", ["/nowhere", str(folder / "lib")], str(folder / "bin"))


def test_what_a_chamber_gets(tmp_path: Path) -> None:
    """Its own GPU and what all share, by number; the loaded driver's files by the names that programs load."""
    driver = Machine(tmp_path).driver()
    assert driver.gpus == [SeenGpu("NVIDIA H200", 143_771, "GPU-0"), SeenGpu("NVIDIA H200", 143_771, "GPU-1")]
    assert is_kind("H200-141GB", driver.gpus[0])
    parts = driver.parts(["GPU-1"])
    assert [node.path for node in parts.nodes] == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1"]
    null = Path("/dev/null").stat().st_rdev
    assert {(node.major, node.minor) for node in parts.nodes} == {(os.major(null), os.minor(null))}
    assert set(parts.files) == {
        *("/nvidia/lib/libcuda.so.1", "/nvidia/lib/libcuda.so.580.159.04"),
        *("/nvidia/lib/libnvidia-ml.so.1", "/nvidia/lib/libnvidia-ml.so.580.159.04"),
        *("/nvidia/lib/libnvidia-gpucomp.so.580.159.04", "/nvidia/bin/nvidia-smi"),
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["PATH=/bin"], {"PATH": "/nvidia/bin:/bin", "LD_LIBRARY_PATH": "/nvidia/lib"}),
        (["LD_LIBRARY_PATH=/own"], {"PATH": "/nvidia/bin", "LD_LIBRARY_PATH": "/nvidia/lib:/own"}),
    ],
)
def test_environment(given: list[str], found: dict[str, str], tmp_path: Path) -> None:
    """The driver's tool comes before one of the image: the chamber's facts are asked of it."""
    parts = Machine(tmp_path).driver().parts(["GPU-0"])
    assert dict(item.split("=", 1) for item in parts.environment(given)) == found


def without_gpus(folder: Path) -> None:
    for file in (folder / "proc/gpus").glob("*/information"):
        file.unlink()


def without(name: str) -> Any:
    def remove(folder: Path) -> None:
        (folder / name).unlink()

    return remove


@pytest.mark.parametrize(
    ("broken", "kind", "text"),
    [
        (without_gpus, NoSuchGpu, "no GPU of NVIDIA"),
        (without("proc/version"), Refused, "modprobe nvidia"),
        (without("bin/nvidia-smi"), Refused, "nvidia-smi is missing"),
        (without("lib/libcuda.so.580.159.04"), Refused, "libraries of the same version"),
        (without("dev/nvidia-uvm"), Refused, "nvidia-modprobe"),
    ],
)
def test_half_a_driver(broken: Any, kind: type[Exception], text: str, tmp_path: Path) -> None:
    """One line that says what to install or load."""
    machine = Machine(tmp_path)
    broken(tmp_path)
    with pytest.raises(kind, match=text) as found:
        machine.driver().parts(["GPU-0"])
    assert "\n" not in str(found.value)


def test_no_device(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "dev/nvidia0").unlink()
    (tmp_path / "dev/nvidia0").touch()
    assert stat.S_ISREG((tmp_path / "dev/nvidia0").stat().st_mode)
    with pytest.raises(Refused, match="/dev/nvidia0 is no device"):
        machine.driver().parts(["GPU-0"])


def test_an_idle_gpu_is_given_out(tmp_path: Path) -> None:
    """What is on another GPU does not matter, nor what was there before anything of ours."""
    machine = Machine(tmp_path)
    driver = machine.driver()
    machine.uses((700, 9000), "GPU-1, 4711")
    driver.check_idle(["GPU-0"], 0.0)
    machine.uses((740, 9000))
    driver.check_idle(["GPU-0"], 0.0)
    machine.uses((3000, 9000))  # a screen's, which has grown
    driver.check_idle(["GPU-0"], 0.0)


def test_what_an_earlier_session_left(tmp_path: Path) -> None:
    """What is in use when we come is no measure of an idle GPU, unless it is little."""
    machine = Machine(tmp_path)
    machine.uses((80_000, 0))
    with pytest.raises(Unavailable, match="80000 MiB are in use on the GPU GPU-0"):
        machine.driver().check_idle(["GPU-0"], 0.0)


def test_idle_is_the_least_that_was_seen(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    driver = machine.driver()
    for used in (9000, 0):
        machine.uses((used, 0))
        driver.check_idle(["GPU-0"], 0.0)
    machine.uses((9000, 0))
    with pytest.raises(Unavailable, match="9000 MiB are in use"):
        driver.check_idle(["GPU-0"], 0.0)


@pytest.mark.parametrize(
    ("memory", "processes", "text"),
    [
        ((0, 0), ["GPU-0, 4711"], "in use by process 4711, which is no chamber's"),
        ((0, 0), ["GPU-0, [N/A]"], "in use by process 0"),
        ((8192, 0), [], r"8192 MiB are in use on the GPU GPU-0, and no process computes there \(4493 MiB may be"),
        ((), [], "tells nothing of the GPU GPU-0"),
    ],
)
def test_what_is_left_behind(memory: tuple[int, ...], processes: list[str], text: str, tmp_path: Path) -> None:
    """A GPU on which the last trial, or anybody else, left something is not given to the next."""
    machine = Machine(tmp_path)
    driver = machine.driver()
    driver.check_idle(["GPU-0"], 0.0)
    machine.uses(memory, *processes)
    with pytest.raises(Unavailable, match=text):
        driver.check_idle(["GPU-0"], 0.0)


def test_a_driver_that_frees_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the dead had is free a moment later: it is asked again."""
    machine = Machine(tmp_path)
    driver = machine.driver()
    driver.check_idle(["GPU-0"], 0.0)
    machine.uses((8192, 0))
    monkeypatch.setattr("sandbox.backends.runc.nvidia.time.sleep", lambda _: machine.uses((0, 0)))
    driver.check_idle(["GPU-0"], 60.0)


def test_a_tool_that_fails(tmp_path: Path) -> None:
    """A driver that hangs or broke gives no GPU out."""
    machine = Machine(tmp_path)
    driver = machine.driver()
    (tmp_path / "bin/nvidia-smi").write_text("#!/bin/sh\necho Unable to determine the device handle\nexit 9\n")
    with pytest.raises(Unavailable, match=r"nvidia-smi failed \(Unable to determine"):
        driver.check_idle(["GPU-0"], 0.0)
