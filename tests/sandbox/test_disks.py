"""Which disks are slowed down, and where nobody can tell."""

import os
import platform
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.docker.disks import disk_name, disks_read
from sandbox.config import DockerConfig
from sandbox.engine_report import report_of
from sandbox.job import Limits
from sandbox.posture import FULL, container_config

HERE: dict[str, Any] = {
    "Name": platform.node(),
    "KernelVersion": platform.release(),
    "DockerRootDir": "/",
    "Warnings": None,
}


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """What the kernel shows of a disk with one partition, as links into its tree of devices."""
    disk = tmp_path / "devices/pci/block/nvme0n1"
    (disk / "nvme0n1p2").mkdir(parents=True)
    (disk / "nvme0n1p2/partition").write_text("2\n")
    (tmp_path / "devices/virtual/block/cciss!c0d0").mkdir(parents=True)
    links = tmp_path / "links"
    links.mkdir()
    (links / "259:0").symlink_to(disk)
    (links / "259:2").symlink_to(disk / "nvme0n1p2")
    (links / "104:0").symlink_to(tmp_path / "devices/virtual/block/cciss!c0d0")
    return links


@pytest.mark.parametrize(
    ("major", "minor", "name"), [(259, 0, "nvme0n1"), (259, 2, "nvme0n1"), (104, 0, "cciss/c0d0"), (0, 40, "")]
)
def test_whole_disk(devices: Path, major: int, minor: int, name: str) -> None:
    """A limit holds for a whole disk, never for a partition; what is no disk has no name."""
    assert disk_name(os.makedev(major, minor), devices) == name


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param({"Name": "elsewhere"}, "another machine", id="another-machine"),
        pytest.param({"KernelVersion": "1.0"}, "another machine", id="another-kernel"),
        pytest.param({"Warnings": ["WARNING: No blkio throttle.read_bps_device support"]}, "no limit", id="v1"),
        pytest.param({"Warnings": ["WARNING: No io.max (rbps) support"]}, "no limit", id="v2"),
        pytest.param({"DockerRootDir": "/proc"}, "no disk", id="no-disk"),
    ],
)
def test_where_nobody_can_tell(changed: dict[str, Any], why: str) -> None:
    """Reads are not limited there, and the reason is said, by doctor too."""
    info = HERE | changed
    disks, said = disks_read(info, Path("/proc"))
    assert not disks
    assert why in said
    part = report_of(info, {}, DockerConfig(inputs_folder=Path("/proc"))).parts[-1]
    assert (part.name, part.version, part.good) == ("disk reads", "not limited", False)
    assert why in part.remark


def test_rate_in_the_create_request() -> None:
    """Each disk has its rate; without one nothing is asked for."""

    def asked(**reads: Any) -> object:
        config: Any = container_config(FULL, Limits(), "runc", "boot", "image", **reads)
        return config["HostConfig"]["BlkioDeviceReadBps"]

    assert asked(reads={"/dev/sda": 1024}) == [{"Path": "/dev/sda", "Rate": 1024}]
    assert asked() == []
    part = report_of(HERE, {}, DockerConfig(disk_read=0)).parts[-1]
    assert "disk_read is 0" in part.remark
