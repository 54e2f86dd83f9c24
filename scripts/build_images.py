"""Builds images, as `blastdoor images build` does, and one that needs this checkout: the orchestrator's own.

It runs before anything is installed, with the machine's own Python. Logs and locks are in `.engine`.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from orchestrator.machine.docker_builder import DockerBuilder  # noqa: E402  the path above comes first
from orchestrator.machine.engine import DEFAULT_SOCKET  # noqa: E402  the path above comes first
from orchestrator.machine.images import LATEST, NAMES, Image, debian_root, derived, plan  # noqa: E402  the path above comes first
from orchestrator.machine.programs import Unprepared  # noqa: E402  the path above comes first

ORCHESTRATOR = "orchestrator"
DEFINITION = REPOSITORY / "deploy" / ORCHESTRATOR


def images(base: str | None, wanted: Sequence[str]) -> list[Image]:
    of_chambers = [name for name in wanted if name != ORCHESTRATOR]
    planned = plan(base, of_chambers) if of_chambers or not wanted else []
    return [*planned, *_orchestrator(base)] if ORCHESTRATOR in wanted else planned


def _orchestrator(base: str | None) -> list[Image]:
    """What the deployment starts: our own package. Chambers know nothing of it."""
    files = sources()
    if base is not None:
        return [derived(ORCHESTRATOR, DEFINITION, LATEST, base, base, sources=files, add=copy_sources)]
    root = debian_root("blastdoor-orchestrator-base", DEFINITION / "packages.txt", LATEST)
    return [root, derived(ORCHESTRATOR, DEFINITION, LATEST, root.tag, root.digest, sources=files, add=copy_sources)]


def sources() -> list[Path]:
    """Our own package as it is installed, and the script that a service starts."""
    packages = (
        path for name in ("blastdoor", "orchestrator", "sandbox", "images") for path in (REPOSITORY / name).rglob("*")
    )
    kept = [path for path in packages if path.is_file() and "__pycache__" not in path.parts]
    others = ("pyproject.toml", "README.md", "LICENSE", "deploy/campaign")
    return [*sorted(kept), *(REPOSITORY / name for name in others)]


def copy_sources(context: Path) -> None:
    for path in sources():
        target = context / "source" / path.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (context / "source/sandbox/images").symlink_to("../images")


def main(arguments: list[str]) -> int:
    names = (*NAMES, ORCHESTRATOR)
    parser = argparse.ArgumentParser(prog="build-images", description="Build the images that chambers start from.")
    parser.add_argument(
        "--base",
        default=os.environ.get("BLASTDOOR_BASE_IMAGE") or None,
        help="an official image to build from; without it, Debian packages and no registry",
    )
    parser.add_argument("names", nargs="*", metavar="IMAGE", help=f"build only: {', '.join(names)}")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.names) - set(names)):
        parser.error(f"there is no image {unknown[0]}; there is {', '.join(names)}")
    address = os.environ.get("BLASTDOOR_DOCKER_HOST") or os.environ.get("DOCKER_HOST") or f"unix://{DEFAULT_SOCKET}"
    try:
        DockerBuilder(address, REPOSITORY / ".engine").build(images(given.base, given.names))
    except Unprepared as problem:
        print(f"build-images: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
