"""What is done in the container that becomes an image, by an engine or without one. Only the download of Debian
packages has a network, in a second container that installs nothing and is thrown away."""

import asyncio
import json
import os
import re
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from sandbox.baking import ImageSpec, is_requirement, last_word
from sandbox.environment import PROXIES
from sandbox.errors import Refused, Unavailable
from sandbox.scratch import scratch
from sandbox.wheels import Interpreter, fetch_pip, fetch_wheels

ROUNDS = 16
STAGE = "/blastdoor-bake"
# What dpkg needs to own and set up files; nothing that reaches the host.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID", "SYS_CHROOT")

DOWNLOAD = f"""
mkdir -p {STAGE}/debs/partial && exec apt-get install --yes --quiet --no-install-recommends --download-only \
  -o Dir::Cache::Archives={STAGE}/debs -- "$@"
"""
# None was fetched where the base has all of them.
INSTALL = f"""
for package in {STAGE}/debs/*.deb; do
  [ -e "$package" ] || exit 0
  exec apt-get install --yes --quiet --no-install-recommends --allow-downgrades {STAGE}/debs/*.deb
done
"""
PIP = f"""
for wheel in {STAGE}/pip/pip-*.whl; do
  exec python3 "$wheel/pip" install --no-index --find-links {STAGE}/wheels --no-color --progress-bar=off -- "$@"
done
"""
LOOK = """
import json, os, platform, sys, sysconfig
libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
print(json.dumps([platform.python_version(), sys.implementation.name, sysconfig.get_platform(), libc]))
"""
# A chamber gives no privileges; this leaves nothing in the image that would raise them, nor a pipe for all that share
# it. The image's own programs do it, so that it is looked at from outside afterwards.
FINISH = f"""
rm -rf {STAGE} /var/log/apt /var/log/dpkg.log /var/log/alternatives.log
for tool in sh head tar; do
  command -v "$tool" >/dev/null || {{ echo "$tool is gone, and no chamber starts without it"; exit 1; }}
done
command -v find >/dev/null || exit 0
find / -xdev -type f -perm /6000 -exec chmod a-s {{}} +
find / -xdev ! -type f ! -type d ! -type l -exec rm -f {{}} +
"""


class Workbench(Protocol):
    """A copy of the base image that commands change, as root and without a network. What is put into STAGE is no part
    of the image.
    """

    async def execute(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
        """The exit code of one command, and the end of its output."""

    async def put(self, archive: Path) -> None:
        """Unpack a tar archive of ours into STAGE."""

    def fetching(self) -> AbstractAsyncContextManager["Workbench"]:
        """Another one, with the host's network, which is thrown away; what it leaves in STAGE/debs is there in ours."""


class Baker:
    """The steps, in one running container: Debian packages first, for they may bring the Python that wheels need."""

    def __init__(self, bench: Workbench, spec: ImageSpec, progress: Callable[[str], None]) -> None:
        self._bench = bench
        self._spec = spec
        self._progress = progress

    async def bake(self) -> None:
        with scratch("bake") as folder:
            if self._spec.apt:
                await self._install_debian()
            if self._spec.pip:
                await self._install_wheels(folder)
        for line in self._spec.run:
            short = " ".join(line.split())[:100]
            self._progress(f"running: {short}")
            await self._step(["sh", "-c", line], f"the run line {short!r} failed")
        await self._step(["sh", "-c", FINISH], "the image cannot be used")

    async def _install_debian(self) -> None:
        self._progress(f"fetching Debian packages: {' '.join(self._spec.apt)}")
        async with self._bench.fetching() as other:
            await _fetch_debian(other, self._spec.apt)
        self._progress("installing Debian packages, without network")
        await self._step(["sh", "-c", INSTALL], "apt-get", ["E:", "dpkg: error"], DEBIAN_FRONTEND="noninteractive")

    async def _install_wheels(self, folder: Path) -> None:
        python = await self._interpreter()
        self._progress(f"fetching wheels for {python}: {' '.join(self._spec.pip)}")
        for part in ("pip", "wheels"):
            (folder / part).mkdir()
        await fetch_pip(python, folder / "pip")
        await self._deliver(folder, "pip")
        wanted, missing = self._spec.pip, ""
        for _ in range(ROUNDS):
            await fetch_wheels(wanted, python, folder / "wheels")
            await self._deliver(folder, "wheels")
            self._progress("installing wheels, without network")
            code, output = await self._pip()
            if code == 0:
                return
            # A dependency that the image's Python has and ours has not.
            line = last_word(output, ["ERROR:"])
            missing = line.partition("No matching distribution found for ")[2].partition(" (from")[0]
            if not is_requirement(missing) or missing in wanted:
                raise Refused(f"pip: {line}")
            wanted = (*wanted, missing)
        raise Refused(f"pip: the image still misses {missing} after {ROUNDS} rounds; name its dependencies in the list")

    async def _interpreter(self) -> Interpreter:
        code, output = await self._bench.execute(["sh", "-c", "command -v python3"], {})
        if code:
            raise Refused("the base image has no python3 to install wheels for; add python3 to apt")
        code, output = await self._bench.execute(["python3", "-c", LOOK], {})
        try:
            version, kind, platform, libc = json.loads(output)
        except ValueError:
            raise Refused(f"the image's python3 does not say what it is: {last_word(output)}") from None
        glibc = re.match(r"glibc 2\.([0-9]{1,3})", str(libc))
        if kind != "cpython" or not glibc:
            raise Refused(f"wheels are fetched for CPython with glibc only; the image has {kind} with {libc}")
        return Interpreter(str(version), str(platform).removeprefix("linux-").replace("-", "_"), int(glibc[1]))

    async def _deliver(self, folder: Path, part: str) -> None:
        archive = folder / f"{part}.tar"
        await asyncio.to_thread(pack, folder / part, part, archive)
        await self._bench.put(archive)
        archive.unlink()

    async def _pip(self) -> tuple[int, bytes]:
        settings = {"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore", "PIP_NO_CACHE_DIR": "1"}
        settings["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        return await self._bench.execute(["sh", "-c", PIP, "pip", *self._spec.pip], settings)

    async def _step(self, command: Sequence[str], doing: str, marks: Sequence[str] = (), **environment: str) -> None:
        code, output = await self._bench.execute(command, environment)
        if code:
            raise Refused(f"{doing}: {last_word(output, marks)} (exit {code})")


def pack(source: Path, name: str, archive: Path) -> None:
    """A folder of ours, as root's own; a program stays one."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with tarfile.open(archive, "w") as target:
        target.add(source, name, filter=plain)


async def _fetch_debian(bench: Workbench, packages: Sequence[str]) -> None:
    """With the image's own sources and keys, over the host's network: an engine may have no bridge."""
    environment = {name: os.environ[name] for name in PROXIES if name in os.environ}
    code, output = await bench.execute(["sh", "-c", "command -v apt-get"], {})
    if code:
        raise Refused("the base image has no apt-get; take one that is made from Debian or Ubuntu")
    update = ["apt-get", "update", "--quiet", "-o", "APT::Update::Error-Mode=any"]
    code, output = await bench.execute(update, environment)
    if code:
        raise Unavailable(f"the Debian archive could not be reached: {last_word(output, ['E:', 'W:'])}")
    code, output = await bench.execute(["sh", "-c", DOWNLOAD, "apt-get", *packages], environment)
    if code:
        line = last_word(output, ["E:"])
        if b"Failed to fetch" in output:
            raise Unavailable(f"a Debian package could not be fetched: {line}")
        raise Refused(f"apt-get: {line}")
