"""What this machine has for chambers without a daemon, against the minimum versions that SECURITY.md names."""

from pathlib import Path

from sandbox.backends.docker.disks import disks_under
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.images import Images
from sandbox.backends.runc.rootless import CAVEAT, rights_here
from sandbox.backends.runc.runtime import OLDEST, find_runtime
from sandbox.config import RuncConfig
from sandbox.engine_report import Part, runc_part
from sandbox.errors import Refused

# Ends the kernel's grace periods early; a chamber waits for some of them where its namespaces are made and removed.
_EXPEDITED = Path("/sys/kernel/rcu_expedited")


def examine_runtime(config: RuncConfig) -> list[Part]:
    """Nothing is made. What `connect` would refuse is a part that is not good."""
    try:
        cgroups = Cgroups.of_this_machine()
        cgroup = Part("cgroup", "v2" if cgroups.is_unified else "v1", "", True, "")
        reads = cgroups.limits_reads
    except Refused as error:
        cgroup, reads = Part("cgroup", "none", "", False, str(error)), False
    rights, disks = _rights_part(), _disk_part(config, limited=reads)
    return [rights, _runtime_part(config), cgroup, disks, _images_part(config), _grace_part()]


def _rights_part() -> Part:
    try:
        found = rights_here()
    except Refused as error:
        return Part("rights", "none", "", False, str(error))
    if not found.rootless:
        return Part("rights", "root", "", True, "")
    return Part("rights", f"rootless, {len(found.uids)} uids", "", True, CAVEAT)


def _runtime_part(config: RuncConfig) -> Part:
    try:
        found = find_runtime(config.runtime)
    except Refused as error:
        return Part(config.runtime, "none", "", False, str(error))
    if found.name == "runc":
        return runc_part(found.version)
    return Part(found.name, found.version, ".".join(map(str, OLDEST[found.name])), True, "")


def _disk_part(config: RuncConfig, *, limited: bool) -> Part:
    disks = sorted(set(disks_under([config.images_folder, config.inputs_folder])))
    if not config.disk_read or not disks or not limited:
        why = "no disk of this machine is under images and inputs" if config.disk_read else "disk_read is 0"
        why = why if limited else "no cgroup for it is there, or ours"
        return Part("disk reads", "not limited", "", False, f"{why}: a chamber can slow its neighbours by reading")
    return Part("disk reads", f"{config.disk_read / 2**20:g} MiB/s a chamber on {', '.join(disks)}", "", True, "")


def _images_part(config: RuncConfig) -> Part:
    loaded = Images(config.images_folder, config.image_host).loaded()
    said = f"{len(loaded)} on disk" if loaded else "none on disk"
    return Part(
        "images", said, "", True, "`blastdoor images build --backend runc` makes ours; others come from a Docker engine"
    )


def _grace_part() -> Part:
    try:
        is_on = _EXPEDITED.read_text().strip() == "1"
    except OSError:
        return Part("rcu_expedited", "unknown", "", True, "")
    remark = "" if is_on else f"`echo 1 >{_EXPEDITED}` may make chambers start faster, at some cost to everybody else"
    return Part("rcu_expedited", "on" if is_on else "off", "", True, remark)
