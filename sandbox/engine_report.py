"""What an engine is made of, against the minimum versions that SECURITY.md names."""

import asyncio
import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from sandbox.answers import Answer, fields, items, text
from sandbox.backends.docker.disks import disks_read
from sandbox.backends.docker.engine import Engine
from sandbox.config import DockerConfig

MINIMUM_ENGINE = "20.10"
MINIMUM_RUNC = "1.1.12"
KNOWN_RUNTIMES = ("runc", "runsc")


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    version: str
    minimum: str
    good: bool
    remark: str


@dataclass(frozen=True, slots=True)
class EngineReport:
    parts: tuple[Part, ...]
    runtimes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "1.1.5+ds1" → (1, 1, 5)."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


async def examine_engine(config: DockerConfig) -> EngineReport:
    engine = await asyncio.to_thread(Engine, config.host)
    try:
        info, version = await engine.info(), await engine.version()
    finally:
        engine.close()
    return report_of(info, version, config)


def report_of(info: Answer, version: Answer, config: DockerConfig | None = None) -> EngineReport:
    components = {text(item, "Name"): text(item, "Version") for item in items(version, "Components")}
    parts = [_engine_part(text(version, "Version") or "unknown"), runc_part(components.get("runc") or "unknown")]
    parts += [_security_part(info), _runsc_part(info), _cgroup_part(info), _disk_part(info, config or DockerConfig())]
    return EngineReport(tuple(parts), tuple(name for name in KNOWN_RUNTIMES if name in fields(info, "Runtimes")))


def _engine_part(version: str) -> Part:
    good = numbers(version) >= numbers(MINIMUM_ENGINE)
    return Part("Docker engine", version, MINIMUM_ENGINE, good, "" if good else "older engines are refused")


def runc_part(version: str) -> Part:
    good = numbers(version) >= numbers(MINIMUM_RUNC)
    remark = "" if good else "CVE-2024-21626 unless your distribution backported the fix; our fixed workdir avoids it"
    return Part("runc", version, MINIMUM_RUNC, good, remark)


def _runsc_part(info: Answer) -> Part:
    good = "runsc" in fields(info, "Runtimes")
    remark = "" if good else "register gVisor's runsc in the engine's daemon.json for a kernel of its own"
    return Part("runsc (gVisor)", "registered" if good else "not registered", "", good, remark)


def _security_part(info: Answer) -> Part:
    options = [str(item) for item in items(info, "SecurityOptions")]
    names = [item.split(",")[0].removeprefix("name=") for item in options]
    good = "seccomp" in names
    return Part("seccomp", ", ".join(names), "seccomp", good, "" if good else "chambers on runc are refused without it")


def _cgroup_part(info: Answer) -> Part:
    missing = [name for name in ("MemoryLimit", "PidsLimit", "CpuCfsQuota") if not info.get(name)]
    remark = f"the kernel lacks {', '.join(missing)}: limits would not hold" if missing else ""
    return Part(
        "cgroup", f"v{text(info, 'CgroupVersion') or '?'} {text(info, 'CgroupDriver')}", "", not missing, remark
    )


def _disk_part(info: Answer, config: DockerConfig) -> Part:
    disks, why = disks_read(info, config.inputs_folder)
    if not config.disk_read:
        disks, why = (), "disk_read is 0"
    limit = f"{config.disk_read / 2**20:g} MiB/s a chamber on {', '.join(disks)}" if disks else "not limited"
    remark = f"{why}: a chamber can slow its neighbours by reading" if why else ""
    return Part("disk reads", limit, "", bool(disks), remark)
