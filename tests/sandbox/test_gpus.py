"""What people call a GPU, what its driver calls it, and what a chamber must see of it."""

import subprocess
from pathlib import Path

import pytest

from sandbox import Gpu
from sandbox.gpus import SeenGpu, gpu_differences, is_kind, seen_gpus
from sandbox.wire.dialogue import Dialogue

BOOT = Path("sandbox/boot.sh").read_text()

# Names as drivers report them, with the memory that they find; the first was read on a machine, the others are public.
H200 = SeenGpu("NVIDIA H200", 143_771)
H100_SXM = SeenGpu("NVIDIA H100 80GB HBM3", 81_559)
H100_PCIE = SeenGpu("NVIDIA H100 PCIe", 81_559)
H100_NVL = SeenGpu("NVIDIA H100 NVL", 95_830)
A100_40 = SeenGpu("NVIDIA A100-SXM4-40GB", 40_960)
A100_80 = SeenGpu("NVIDIA A100 80GB PCIe", 81_920)
A10 = SeenGpu("NVIDIA A10", 23_028)
A10G = SeenGpu("NVIDIA A10G", 23_028)
A10_SLICE = SeenGpu("NVIDIA A10-24Q", 24_576)
L4 = SeenGpu("NVIDIA L4", 23_034)
L40 = SeenGpu("NVIDIA L40", 46_068)
L40S = SeenGpu("NVIDIA L40S", 46_068)
T4 = SeenGpu("Tesla T4", 15_360)
V100 = SeenGpu("Tesla V100-SXM2-16GB", 16_384)
RTX_4090 = SeenGpu("NVIDIA GeForce RTX 4090", 24_564)
RTX_4090_D = SeenGpu("NVIDIA GeForce RTX 4090 D", 24_564)
RTX_6000 = SeenGpu("Quadro RTX 6000", 24_576)
RTX_6000_ADA = SeenGpu("NVIDIA RTX 6000 Ada Generation", 49_140)
RTX_PRO_6000 = SeenGpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97_887)
B200 = SeenGpu("NVIDIA B200", 183_359)
GB200 = SeenGpu("NVIDIA GB200", 189_471)
EVERY_ONE = [it for it in globals().values() if isinstance(it, SeenGpu)]

H100S = {H100_SXM, H100_PCIE, H100_NVL}
KINDS: dict[str, set[SeenGpu]] = {
    "H200": {H200},
    "H200-141GB": {H200},
    "B200": {B200},
    "GB200": {GB200},
    "any": set(EVERY_ONE),
    "H100": H100S,
    "h100": H100S,
    "H100-80GB": {H100_SXM, H100_PCIE},
    "H100-SXM": {H100_SXM},
    "H100-SXM5": {H100_SXM},
    "H100-PCIE": {H100_PCIE},
    "H100-NVL": {H100_NVL},
    "A100": {A100_40, A100_80},
    "A100-40GB": {A100_40},
    "A100-80GB": {A100_80},
    "NVIDIA-A100-80GB-PCIe": {A100_80},
    "A10": {A10, A10G},
    "A10G": {A10G},
    "L4": {L4},
    "L4-24GB": {L4},
    "L40": {L40},
    "L40S": {L40S},
    "T4": {T4},
    "T4-16GB": {T4},
    "V100": {V100},
    "V100-16GB": {V100},
    "V100-32GB": set(),
    "RTX4090": {RTX_4090},
    "RTX-4090": {RTX_4090},
    "RTX6000": {RTX_6000},
    "RTX6000-Ada": {RTX_6000_ADA},
    "RTX-PRO-6000": {RTX_PRO_6000},
    "MI300X": set(),
    "NVIDIA": set(),
}


def test_a_kind_is_what_it_is_called() -> None:
    """One name that begins another is not the other; what was not asked for does not matter; memory is measured. What
    is told neither by name nor by number is not there.
    """
    assert {kind: {gpu for gpu in EVERY_ONE if is_kind(kind, gpu)} for kind in KINDS} == KINDS
    assert not is_kind("H200-141GB", SeenGpu("NVIDIA H200"))
    assert is_kind("A100-40GB", SeenGpu("NVIDIA A100-SXM4-40GB"))


ONE_H200 = {"gpu": "NVIDIA H200", "gpu_memory": "143771 MiB", "gpu_id": "GPU-1"}
TWO_T4 = {"gpu": "Tesla T4; Tesla T4", "gpu_memory": "15360 MiB; 15360 MiB", "gpu_id": "GPU-1; GPU-2"}


@pytest.mark.parametrize(
    ("wanted", "facts", "lent", "said"),
    [
        ("H200:1", ONE_H200, ("GPU-1",), None),
        ("any:1", ONE_H200, (), None),
        ("T4:2", TWO_T4, ("GPU-2", "GPU-1"), None),
        ("T4:1", TWO_T4, (), "wanted T4:1, the chamber sees Tesla T4, Tesla T4"),
        ("T4:3", TWO_T4, (), "wanted T4:3"),
        ("H100:1", ONE_H200, (), "wanted H100:1, the chamber sees NVIDIA H200"),
        ("any:1", {}, (), "the chamber sees none: nvidia-smi tells of none in it; use an image"),
        ("H200:1", ONE_H200, ("GPU-7",), "wanted GPU-7, the chamber sees GPU-1"),
        ("H200:1", ONE_H200 | {"gpu_id": ""}, ("GPU-1",), "sees no id"),
        ("H200:1", ONE_H200 | {"gpu_mig": "1"}, (), "switch MIG off"),
        (None, ONE_H200, (), "none was asked for, the chamber sees NVIDIA H200"),
        (None, {"gpu": ""}, (), None),
        (None, {}, (), None),
    ],
)
def test_what_a_chamber_must_see(
    wanted: str | None, facts: dict[str, str], lent: tuple[str, ...], said: str | None
) -> None:
    """Exactly the GPUs that were asked for and given: not fewer, not more, no other, no slice, and none uninvited."""
    found = gpu_differences(Gpu.parse(wanted) if wanted else None, facts, lent)
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_facts_in_disorder() -> None:
    """Memories that do not match the names are not used, and what is no size is none."""
    assert seen_gpus({"gpu": "a; b", "gpu_memory": "5 MiB"}) == [SeenGpu("a"), SeenGpu("b")]
    assert seen_gpus({"gpu": "a", "gpu_memory": "lots"}) == [SeenGpu("a")]


QUERY = {
    "two T4": "Tesla T4, 15360 MiB, 550.54.15, GPU-a, [N/A]\nTesla T4, 15360 MiB, 550.54.15, GPU-b, [N/A]",
    "sliced A100": "NVIDIA A100-SXM4-80GB, 81920 MiB, 535.104.05, GPU-c, Enabled",
    "no device": "No devices were found",
    "no driver": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
}
LOG = """
==============NVSMI LOG==============

Timestamp                                              : Sat Nov 15 16:07:00 2026
Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 00000000:00:06.0
    Compute Mode                                       : Default
    Something                                          : [N/A] *
"""
INFORMATION = """Model: \t\t {model}
IRQ:   \t\t 41
GPU UUID: \t {id}
Bus Type: \t PCIe
Device Minor: \t {minor}
GPU Excluded:\t No
"""
VERSIONS = {
    "580.159.04": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (someone@)",
    "470.57.02": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021",
}


def facts_of(folder: Path, shell: str = "sh") -> dict[str, str]:
    """What PID 1 says on a machine whose driver lies in a folder; its words go through our own parser."""
    boot = BOOT.replace("/proc/driver/nvidia", f"{folder}/proc").replace("/dev/nvidia", f"{folder}/dev/nvidia")
    boot = boot.replace("nvidia-smi", f"{folder}/bin/nvidia-smi")  # not the one of the machine that the test runs on
    said = subprocess.run([shell, "-c", boot], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    dialogue = Dialogue()
    list(dialogue.feed(said.stdout))
    return dict(dialogue.facts)


def tool(folder: Path, query: str, code: int = 0) -> None:
    """NVIDIA's own tool, as it answered."""
    (folder / "bin").mkdir()
    (folder / "query").write_text(query + "\n")
    (folder / "log").write_text(LOG)
    path = folder / "bin/nvidia-smi"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --query*) cat {folder}/query; exit {code} ;; -q) cat {folder}/log ;; esac\n'
    )
    path.chmod(0o755)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_facts_by_the_drivers_tool(tmp_path: Path, shell: str) -> None:
    """Name, number, memory, driver and CUDA are told before anything else is there, in any shell. A GPU in slices is
    told as such, and refused.
    """
    tool(tmp_path, QUERY["two T4"])
    facts = facts_of(tmp_path, shell)
    assert {name: text for name, text in facts.items() if name.startswith(("gpu", "cuda"))} == {
        "gpu": "Tesla T4; Tesla T4",
        "gpu_count": "2",
        "gpu_memory": "15360 MiB; 15360 MiB",
        "gpu_driver": "550.54.15",
        "gpu_id": "GPU-a; GPU-b",
        "cuda": "13.0",
    }
    assert gpu_differences(Gpu.parse("T4:2"), facts, ("GPU-a", "GPU-b")) == []
    (tmp_path / "query").write_text(QUERY["sliced A100"])
    facts = facts_of(tmp_path, shell)
    assert facts["gpu_mig"] == "1"
    assert gpu_differences(Gpu.parse("A100:1"), facts)


@pytest.mark.parametrize("name", ["no device", "no driver"])
@pytest.mark.parametrize("code", [0, 9])
def test_a_tool_without_a_gpu(tmp_path: Path, name: str, code: int) -> None:
    """An error that the tool prints is no GPU, whatever it exits with, and no word of it becomes a fact."""
    tool(tmp_path, QUERY[name], code)
    assert not [fact for fact in facts_of(tmp_path) if fact.startswith(("gpu", "cuda"))]


@pytest.mark.parametrize("driver", VERSIONS)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_facts_without_the_tool(tmp_path: Path, driver: str, shell: str) -> None:
    """Without the tool, the driver's folder tells, and of the host's GPUs only those count whose device is here."""
    for number, model in enumerate(("NVIDIA H200", "NVIDIA A10", "NVIDIA L4")):
        place = tmp_path / f"proc/gpus/0000:0{number}:00.0"
        place.mkdir(parents=True)
        (place / "information").write_text(INFORMATION.format(model=model, id=f"GPU-{number}", minor=number))
    (tmp_path / "proc/version").write_text(VERSIONS[driver] + "\nGCC version:  gcc version 15.3.0\n")
    (tmp_path / "dev").mkdir()
    assert "gpu" not in facts_of(tmp_path, shell)
    (tmp_path / "dev/nvidiactl").touch()
    assert "gpu" not in facts_of(tmp_path, shell)
    (tmp_path / "dev/nvidia0").touch()
    (tmp_path / "dev/nvidia2").touch()
    facts = facts_of(tmp_path, shell)
    assert (facts["gpu"], facts["gpu_id"], facts["gpu_count"]) == ("NVIDIA H200; NVIDIA L4", "GPU-0; GPU-2", "2")
    assert facts["gpu_driver"] == driver
    assert "gpu_memory" not in facts


def test_as_many_as_may_be_asked_for(tmp_path: Path) -> None:
    """The facts of 64 GPUs, the most that a task may ask for, are within what the parser takes."""
    tool(
        tmp_path, "\n".join(f"NVIDIA H100 80GB HBM3, 81559 MiB, 580.1, GPU-{number:036}, [N/A]" for number in range(64))
    )
    assert len(seen_gpus(facts_of(tmp_path))) == 64
