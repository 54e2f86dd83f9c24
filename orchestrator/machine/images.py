"""The images that chambers start from. Each carries a hash of its definition: a second build has nothing to do."""

import fcntl
import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.machine import image_files
from orchestrator.machine.programs import Unprepared, child_environment, last_line, program, require, say

# The package's own data; in a checkout it is a link to images/.
DEFINITIONS = Path(__file__).resolve().parents[2] / "sandbox/images"
LABEL = "blastdoor.definition"
SUITE = "bookworm"
UNUSED = (
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
)
ROOT_OPTIONS = ["--variant=minbase", *(f"--dpkgopt=path-exclude={path}" for path in UNUSED)]
ENVIRONMENT = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# One that others stand on comes before them. The first two are built where none is named.
USUAL = ("trial", "attack")
NAMES = (*USUAL, "busybox", "judge", "cuda", "toolkit", "agent")
ROOTS = ("trial", "busybox")  # those that stand on none of the names
LATEST = "latest"


class Host:
    """An engine, by the docker command, and the folder on this machine for logs and locks."""

    def __init__(self, address: str, state: Path) -> None:
        self.log = state / "images.log"
        self.apt_log = state / "apt.log"
        self._lock = state / "images.lock"
        self._address = address

    def build(self, images: Iterable["Image"]) -> None:
        """Those that are missing or stale. Raises Unprepared, one line that says what to do."""
        wanted = list(images)
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            there = self.present(wanted)
            for image in wanted:
                if there.get(image.tag, Found("", 0)).digest != image.digest:
                    say(f"building {image.tag}")
                    image.build(image, self)

    def present(self, images: Iterable["Image"]) -> dict[str, "Found"]:
        """What is there by these tags, found with one call."""
        form = "[{{json .RepoTags}},{{json .Config.Labels}},{{json .Size}}]"
        command = [_docker(), "image", "inspect", "--format", form, *(image.tag for image in images)]
        result = subprocess.run(
            command, env=child_environment(DOCKER_HOST=self._address), capture_output=True, text=True, check=False
        )
        if result.returncode and "no such image" not in result.stderr.lower():
            raise Unprepared(
                f"no engine answers at {self._address} ({last_line(result.stderr)}):"
                " start Docker, set DOCKER_HOST, or run `blastdoor up`"
            )
        rows = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
        return {tag: Found((labels or {}).get(LABEL, ""), size) for tags, labels, size in rows for tag in tags or ()}

    def docker(self, *arguments: str) -> None:
        # The classic builder: BuildKit is a separate package in many places, and there is nothing to gain here.
        self.check([_docker(), *arguments], DOCKER_BUILDKIT="0")

    def check(self, command: list[str], **environment: str) -> None:
        """Runs it, with its output in the log."""
        with self.log.open("w+", errors="replace") as log:
            result = subprocess.run(
                command,
                env=child_environment(DOCKER_HOST=self._address, **environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if result.returncode:
            said = last_line(self.log.read_text(errors="replace"))
            name = " ".join([Path(command[0]).name, *command[1:2]])
            raise Unprepared(f"{name} failed with {result.returncode}: {said} (log: {self.log})")


@dataclass(frozen=True)
class Found:
    digest: str
    size: int


@dataclass(frozen=True)
class Image:
    name: str
    version: str
    digest: str
    build: Callable[["Image", Host], None]

    @property
    def tag(self) -> str:
        return f"{self.name}:{self.version}"


def plan(base: str | None = None, wanted: Sequence[str] = (), version: str = LATEST) -> list[Image]:
    """The images of these names with all that they stand on, in the order of building; the usual ones without a name.

    A digest holds its parent's, so a change travels down.
    """
    needed = set(wanted or USUAL)
    for name in reversed(NAMES):
        if name in needed and name not in ROOTS:
            needed.add(_parent(name))
    images: dict[str, Image] = {}
    if "trial" in needed and base is None:
        images["base"] = debian_root("blastdoor-base", DEFINITIONS / "base/packages.txt", version)
    for name in (name for name in NAMES if name in needed):
        if name == "busybox":
            images[name] = _busybox(version)
        elif name == "trial" and base is not None:
            images[name] = derived(name, DEFINITIONS / name, version, base, base)
        else:
            on = images["base" if name == "trial" else _parent(name)]
            images[name] = derived(name, DEFINITIONS / name, version, on.tag, on.digest)
    return list(images.values())


def _parent(name: str) -> str:
    """What an image stands on is said once, in its Dockerfile."""
    first = (DEFINITIONS / name / "Dockerfile").read_text().partition("\n")[0]
    return first.removeprefix("ARG BASE=blastdoor-").removesuffix(f":{LATEST}")


def _busybox(version: str) -> Image:
    applets = (DEFINITIONS / "busybox/applets.txt").read_text().split()
    return Image(
        "blastdoor-busybox", version, digest(SUITE, *applets), lambda image, host: _import_busybox(image, host, applets)
    )


def debian_root(name: str, listed: Path, version: str) -> Image:
    packages = listed.read_text().split()
    seal = digest(SUITE, ENVIRONMENT, *ROOT_OPTIONS, *packages)
    return Image(name, version, seal, lambda image, host: _import_root(image, host, packages))


def derived(
    name: str,
    folder: Path,
    version: str,
    parent: str,
    parent_digest: str,
    *,
    sources: Sequence[Path] = (),
    add: Callable[[Path], None] = lambda _: None,
) -> Image:
    """Its files are fetched first, with the network of this machine; the build itself has none.

    `add` puts `sources`, which are part of the definition, beside them.
    """

    def build(image: Image, host: Host) -> None:
        with tempfile.TemporaryDirectory(prefix="blastdoor-") as context:
            image_files.gather(folder, Path(context), host.apt_log)
            add(Path(context))
            command = ["build", "--quiet", "--network", "none", "--build-arg", f"BASE={parent}"]
            host.docker(*command, "--label", f"{LABEL}={image.digest}", "--tag", image.tag, context)

    definition = [path.read_text() for path in (*sorted(folder.iterdir()), *sources)]
    return Image(f"blastdoor-{name}", version, digest(*definition, parent_digest), build)


def _import_root(image: Image, host: Host, packages: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="blastdoor-") as folder:
        archive = Path(folder, "root.tar")
        try:
            require("mmdebstrap", log=host.apt_log)
        except Unprepared as problem:
            raise Unprepared(f"{problem} Or build on an official image: --base python:3.11-slim-bookworm") from None
        _debian(host, archive, *ROOT_OPTIONS, f"--include={','.join(packages)}")
        _load(host, archive, image, ENVIRONMENT)


def _import_busybox(image: Image, host: Host, applets: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="blastdoor-") as folder:
        package = Path(folder, "package.tar")
        _debian(host, package, "--variant=extract", "--include=busybox-static")
        archive = Path(folder, "root.tar")
        with tarfile.open(package) as source, tarfile.open(archive, "w") as target:
            program_entry = next(entry for entry in source if entry.name.removeprefix("./").endswith("bin/busybox"))
            content = source.extractfile(program_entry)
            program_entry.name = "bin/busybox"
            target.addfile(program_entry, content)
            for name in applets:
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                target.addfile(link)
            shared = tarfile.TarInfo("tmp")
            shared.type, shared.mode = tarfile.DIRTYPE, 0o1777
            target.addfile(shared)
        _load(host, archive, image, "ENV PATH=/bin")


def _debian(host: Host, target: Path, *options: str) -> None:
    require("mmdebstrap", log=host.apt_log)
    mirror = os.environ.get("BLASTDOOR_DEBIAN_MIRROR")
    command = [program("mmdebstrap") or "mmdebstrap", "--quiet", *options, SUITE, str(target)]
    host.check(command + ([mirror] if mirror else []))


def _load(host: Host, archive: Path, image: Image, *changes: str) -> None:
    options = [f"--change={change}" for change in (*changes, f"LABEL {LABEL}={image.digest}")]
    host.docker("import", *options, str(archive), image.tag)


def _docker() -> str:
    if found := program("docker"):
        return found
    raise Unprepared(
        "the docker command is missing: install it, or let `blastdoor up` install it (as root on Debian or Ubuntu)"
    )


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
