"""Builds the images. Each carries a hash of its definition, so that a second run has nothing to do."""

import argparse
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import image_files
from distribution import SEARCH_PATH, Unprepared, program, require

REPOSITORY = Path(__file__).resolve().parent.parent
IMAGES = REPOSITORY / "images"
STATE = REPOSITORY / ".engine"
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
# Built for whoever asks for them; one that others stand on comes first.
CHAMBERS = ("judge", "cuda", "toolkit", "agent")
OPTIONAL = (*CHAMBERS, "orchestrator")
ENVIRONMENT = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    name: str
    digest: str
    build: Callable[["Image"], None]

    @property
    def tag(self) -> str:
        return f"{self.name}:latest"


def plan(base: str | None, wanted: Sequence[str] = ()) -> list[Image]:
    """All images in the order of building. A digest holds its parent's, so a change travels down.

    Those of OPTIONAL are only there for whoever asks for them, or for one that stands on them.
    """
    images = _usual(base)
    needed = {f"blastdoor-{name}:latest" for name in wanted} | {
        _default_base(name) for name in CHAMBERS if name in wanted
    }
    for name in CHAMBERS:
        if f"blastdoor-{name}:latest" in needed:
            parent = next(image for image in images if image.tag == _default_base(name))
            images.append(derived(name, parent.tag, parent.digest))
    return [*images, *_orchestrator(base)] if "orchestrator" in wanted else images


def _default_base(name: str) -> str:
    """What an image stands on is said once, in its Dockerfile."""
    first = (IMAGES / name / "Dockerfile").read_text().partition("\n")[0]
    return first.removeprefix("ARG BASE=")


def _usual(base: str | None) -> list[Image]:
    applets = (IMAGES / "busybox/applets.txt").read_text().split()
    busybox = Image("blastdoor-busybox", digest(SUITE, *applets), lambda image: import_busybox(image, applets))
    if base is None:
        root = debian_root("blastdoor-base", IMAGES / "base/packages.txt")
        trial = derived("trial", root.tag, root.digest)
        return [root, trial, derived("attack", trial.tag, trial.digest), busybox]
    trial = derived("trial", base, base)
    return [trial, derived("attack", trial.tag, trial.digest), busybox]


def _orchestrator(base: str | None) -> list[Image]:
    """What the deployment starts: our own package. Chambers know nothing of it."""
    folder = REPOSITORY / "deploy/orchestrator"
    sources = image_files.sources(REPOSITORY)
    if base is not None:
        return [derived("orchestrator", base, base, folder, sources)]
    root = debian_root("blastdoor-orchestrator-base", folder / "packages.txt")
    return [root, derived("orchestrator", root.tag, root.digest, folder, sources)]


def debian_root(name: str, listed: Path) -> Image:
    packages = listed.read_text().split()
    seal = digest(SUITE, ENVIRONMENT, *ROOT_OPTIONS, *packages)
    return Image(name, seal, lambda image: import_base(image, packages))


def derived(
    name: str, parent: str, parent_digest: str, folder: Path | None = None, sources: Sequence[Path] = ()
) -> Image:
    """Its files are fetched first, with the network of this machine; the build itself has none."""
    folder = folder or IMAGES / name

    def build(image: Image) -> None:
        with tempfile.TemporaryDirectory(prefix="blastdoor-") as context:
            image_files.gather(folder, Path(context), STATE / "apt.log")
            image_files.copy(sources, REPOSITORY, Path(context))
            command = ["build", "--quiet", "--network", "none", "--build-arg", f"BASE={parent}"]
            docker(*command, "--label", f"{LABEL}={image.digest}", "--tag", image.tag, context)

    definition = [path.read_text() for path in (*sorted(folder.iterdir()), *sources)]
    return Image(f"blastdoor-{name}", digest(*definition, parent_digest), build)


def import_base(image: Image, packages: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="blastdoor-") as folder:
        archive = Path(folder, "root.tar")
        debian(archive, *ROOT_OPTIONS, f"--include={','.join(packages)}")
        load(archive, image, ENVIRONMENT)


def import_busybox(image: Image, applets: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="blastdoor-") as folder:
        package = Path(folder, "package.tar")
        debian(package, "--variant=extract", "--include=busybox-static")
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
        load(archive, image, "ENV PATH=/bin")


def debian(target: Path, *options: str) -> None:
    require("mmdebstrap", log=STATE / "apt.log")
    mirror = os.environ.get("BLASTDOOR_DEBIAN_MIRROR")
    command = [program("mmdebstrap") or "mmdebstrap", "--quiet", *options, SUITE, str(target)]
    check(command + ([mirror] if mirror else []))


def load(archive: Path, image: Image, *changes: str) -> None:
    options = [f"--change={change}" for change in (*changes, f"LABEL {LABEL}={image.digest}")]
    docker("import", *options, str(archive), image.tag)


def present(images: list[Image]) -> set[str]:
    """The tags that carry the digest of today's definition, found with one call."""
    form = "[{{json .RepoTags}},{{json .Config.Labels}}]"
    command = ["docker", "image", "inspect", "--format", form, *(image.tag for image in images)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode and "no such image" not in result.stderr.lower():
        raise Unprepared(f"docker image inspect failed: {result.stderr.strip()}")
    wanted = {(image.tag, image.digest) for image in images}
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
    return {tag for tags, labels in rows for tag in tags or () if (tag, (labels or {}).get(LABEL)) in wanted}


def docker(*arguments: str) -> None:
    # The classic builder: BuildKit is a separate package in many places, and there is nothing to gain here.
    check(["docker", *arguments], DOCKER_BUILDKIT="0")


def check(command: list[str], **environment: str) -> None:
    result = subprocess.run(
        command,
        env=os.environ | {"PATH": SEARCH_PATH} | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode:
        tail = "\n".join(result.stdout.splitlines()[-15:])
        raise Unprepared(f"{' '.join(command[:2])} failed with {result.returncode}:\n{tail}")


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="build-images", description="Build the images that chambers start from.")
    parser.add_argument(
        "--base",
        default=os.environ.get("BLASTDOOR_BASE_IMAGE") or None,
        help="an official image to build from; without it, Debian packages and no registry",
    )
    parser.add_argument("also", nargs="*", metavar="IMAGE", help=f"build too: {', '.join(OPTIONAL)}")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.also) - set(OPTIONAL)):
        parser.error(f"there is no image {unknown[0]} to ask for; there is {', '.join(OPTIONAL)}")
    images = plan(given.base, given.also)
    try:
        if program("docker") is None:
            raise Unprepared("the docker command is missing: install it, or run this through scripts/with-engine")
        STATE.mkdir(mode=0o700, exist_ok=True)
        with (STATE / "images.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = present(images)
            for image in images:
                if image.tag not in done:
                    print(f"building {image.name}", flush=True)
                    image.build(image)
    except Unprepared as problem:
        print(f"build-images: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
