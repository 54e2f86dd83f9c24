"""The images that chambers start from. Each carries a hash of its definition: a second build has nothing to do."""

import fcntl
import hashlib
import os
import re
import secrets
import subprocess
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.machine import image_files
from orchestrator.machine.programs import Unprepared, child_environment, dying_with_us, last_line, program, require, say

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
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# One that others stand on comes before them. The first two are built where none is named.
USUAL = ("trial", "attack")
NAMES = (*USUAL, "busybox", "judge", "cuda", "toolkit", "agent")
ROOTS = ("trial", "busybox")  # those that stand on none of the names
LATEST = "latest"
_WORKPLACE = re.compile(r"blastdoor-images-[0-9a-f]{16}")


class Builder(ABC):
    """Who has images and makes them: an engine, or nobody but this process. Logs and locks are in `state`."""

    def __init__(self, state: Path) -> None:
        self.log = state / "images.log"
        self.apt_log = state / "apt.log"
        self._lock = state / "images.lock"
        self._at = state / "images.at"

    def build(self, images: Iterable["Image"]) -> None:
        """Those that are missing or stale. Raises Unprepared, one line that says what to do."""
        wanted = list(images)
        self._lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("another process builds images; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._leave_workplace()
            there = self.present(wanted)
            for image in wanted:
                if there.get(image.tag, Found("", 0)).digest != image.digest:
                    say(f"building {image.tag}")
                    image.build(image, self)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A folder for what goes into one image. What a build that was killed left of its own, the next one removes."""
        folder = Path(tempfile.gettempdir(), f"blastdoor-images-{secrets.token_hex(8)}").absolute()
        self._at.write_text(str(folder))
        folder.mkdir(mode=0o711)  # apt's own user has to go through
        try:
            yield folder
        finally:
            self._leave_workplace()

    def _leave_workplace(self) -> None:
        """Nothing is removed through a mount, and nothing but a folder that we made."""
        folder = Path(self._at.read_text()) if self._at.exists() else Path()
        if not _WORKPLACE.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
            return
        command = ["rm", "-rf", "--one-file-system", "--", str(folder)]
        removed = subprocess.run(command, env=child_environment(), capture_output=True, text=True, check=False)
        if removed.returncode:
            say(f"what a build left in {folder} could not be removed: {last_line(removed.stderr)}")

    @abstractmethod
    def present(self, images: Iterable["Image"]) -> dict[str, "Found"]:
        """What is there by these tags."""

    @abstractmethod
    def take_root(self, image: "Image", archive: Path, search_path: str) -> None:
        """An archive of a whole root becomes the image, labelled with its digest."""

    @abstractmethod
    def derive(self, image: "Image", parent: str, context: Path) -> None:
        """The Dockerfile in `context` becomes the image, on its parent, without a network; labelled likewise."""

    def check(self, name: str, command: list[str], **environment: str) -> None:
        """Runs it, with its output in the log. `name` is for a message."""
        with self.log.open("w+", errors="replace") as log:
            result = subprocess.run(
                command,
                env=child_environment(**environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
                preexec_fn=dying_with_us(),
            )
        if result.returncode:
            said = _why(self.log.read_text(errors="replace"))
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
    build: Callable[["Image", Builder], None]

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
        "blastdoor-busybox",
        version,
        digest(SUITE, *applets),
        lambda image, builder: _make_busybox(image, builder, applets),
    )


def debian_root(name: str, listed: Path, version: str) -> Image:
    packages = listed.read_text().split()
    seal = digest(SUITE, f"ENV PATH={SEARCH_PATH}", *ROOT_OPTIONS, *packages)
    return Image(name, version, seal, lambda image, builder: _make_root(image, builder, packages))


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

    def build(image: Image, builder: Builder) -> None:
        with builder.workplace() as context:
            image_files.gather(folder, context, builder.apt_log)
            add(context)
            builder.derive(image, parent, context)

    definition = [path.read_text() for path in (*sorted(folder.iterdir()), *sources)]
    return Image(f"blastdoor-{name}", version, digest(*definition, parent_digest), build)


def _make_root(image: Image, builder: Builder, packages: list[str]) -> None:
    try:
        require("mmdebstrap", log=builder.apt_log)
    except Unprepared as problem:
        raise Unprepared(f"{problem} Or build on an official image: --base python:3.11-slim-bookworm") from None
    with builder.workplace() as folder:
        archive = folder / "root.tar"
        _debian(builder, archive, *ROOT_OPTIONS, f"--include={','.join(packages)}")
        builder.take_root(image, archive, SEARCH_PATH)


def _make_busybox(image: Image, builder: Builder, applets: list[str]) -> None:
    with builder.workplace() as folder:
        package = folder / "package.tar"
        _debian(builder, package, "--variant=extract", "--include=busybox-static")
        archive = folder / "root.tar"
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
        builder.take_root(image, archive, "/bin")


def _debian(builder: Builder, target: Path, *options: str) -> None:
    require("mmdebstrap", log=builder.apt_log)
    mirror = os.environ.get("BLASTDOOR_DEBIAN_MIRROR")
    command = [program("mmdebstrap") or "mmdebstrap", *options, SUITE, str(target)]
    words = [*_alone(), *command, *([mirror] if mirror else [])]
    builder.check("mmdebstrap", words, TMPDIR=str(target.parent))


def _alone() -> list[str]:
    """What it starts and mounts goes with it, also when it is killed. Without root's own rights it can mount nowhere
    else; in a container that may mount nothing at all, it does without.
    """
    command = [program("unshare") or "unshare", "--mount", "--pid", "--kill-child"]
    may = subprocess.run([*command, "true"], env=child_environment(), capture_output=True, check=False)
    return command if may.returncode == 0 else []


def _why(said: str) -> str:
    """Debian's tools say first what failed, and then who failed because of it."""
    return last_line(next((line for line in said.splitlines() if line.startswith("E: ")), said))


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
