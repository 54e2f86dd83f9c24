"""A Docker engine of a newer release of Debian, unpacked into a folder: nothing of the machine is changed."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.machine.programs import Unprepared, child_environment, last_line

# Debian's release with the Compose that is a part of `docker`; older ones have only the one in Python.
NEWER = "trixie"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
COMPOSE = ("docker-compose-v2", "docker-compose")


def unpack_engine(folder: Path) -> Path:
    """Engine, client and Compose as the distribution packs them: the folder in which they lie as in a root."""
    options: list[str] = []
    if not (packages := _offered(options)):
        options = _newer(folder)
        said("the package lists of a newer Debian cannot be had", ["apt-get", *options, "-q", "update"])
        packages = _offered(options)
    if not packages:
        raise Unprepared("no package with Compose v2 was found")
    archives = folder / "archives"
    archives.mkdir()
    alone = ["-o", "APT::Sandbox::User="]
    said("the packages cannot be had", ["apt-get", *options, *alone, "-q", "download", *packages], cwd=archives)
    root = folder / "root"
    for archive in archives.glob("*.deb"):
        said(f"{archive.name} cannot be unpacked", ["dpkg-deb", "--extract", str(archive), str(root)])
    return root


def _offered(options: Sequence[str]) -> list[str]:
    """What to download, where one of these suites has a Compose that is not the old one in Python."""
    wanted = [*COMPOSE, "docker.io", "docker-cli"]
    shown = subprocess.run(
        ["apt-cache", *options, "show", "--no-all-versions", *wanted],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,  # it complains of those that are not there
    ).stdout
    versions: dict[str, str] = {}
    for record in shown.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in record.splitlines() if line.startswith(("Package: ", "Version: "))
        )
        if len(fields) == 2:
            versions[fields["Package"]] = fields["Version"]
    compose = next((name for name in COMPOSE if not versions.get(name, "1.").startswith("1.")), None)
    return [compose, *(name for name in ("docker.io", "docker-cli") if name in versions)] if compose else []


def _newer(folder: Path) -> list[str]:
    """Options for apt: the machine's own archive, a newer release of it, and lists that are ours alone."""
    asked = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"]
    archives = [
        line.split()[2] for line in said("apt does not answer", asked).splitlines() if line.startswith("Debian Debian ")
    ]
    if not archives:
        raise Unprepared("no package with Compose v2 was found, and apt has no archive of Debian")
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {archives[0]} {NEWER} main\n")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": os.devnull,
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def said(why: str, command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] = {}) -> str:
    """What a command printed. Raises Unprepared where it failed."""
    done = subprocess.run(
        command, cwd=cwd, env=child_environment(**environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unprepared(f"{why} ({last_line(done.stderr or done.stdout)})")
    return done.stdout
