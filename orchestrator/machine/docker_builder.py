"""Images on a Docker engine, by the docker command."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from orchestrator.machine.images import LABEL, Builder, Found, Image
from orchestrator.machine.programs import Unprepared, child_environment, last_line, program


class DockerBuilder(Builder):
    def __init__(self, address: str, state: Path) -> None:
        super().__init__(state)
        self._address = address

    def present(self, images: Iterable[Image]) -> dict[str, Found]:
        """All with one call."""
        form = "[{{json .RepoTags}},{{json .Config.Labels}},{{json .Size}}]"
        command = [_docker(), "image", "inspect", "--format", form, *(image.tag for image in images)]
        result = subprocess.run(
            command, env=child_environment(DOCKER_HOST=self._address), capture_output=True, text=True, check=False
        )
        if result.returncode and "no such image" not in result.stderr.lower():
            raise Unprepared(
                f"no engine answers at {self._address} ({last_line(result.stderr)}): start Docker, set DOCKER_HOST, or"
                " run `blastdoor up`; without an engine: `blastdoor images build --backend runc`"
            )
        rows = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
        return {tag: Found((labels or {}).get(LABEL, ""), size) for tags, labels, size in rows for tag in tags or ()}

    def take_root(self, image: Image, archive: Path, search_path: str) -> None:
        changes = (f"ENV PATH={search_path}", f"LABEL {LABEL}={image.digest}")
        self._docker("import", *(f"--change={change}" for change in changes), str(archive), image.tag)

    def derive(self, image: Image, parent: str, context: Path) -> None:
        command = ["build", "--quiet", "--network", "none", "--build-arg", f"BASE={parent}"]
        self._docker(*command, "--label", f"{LABEL}={image.digest}", "--tag", image.tag, str(context))

    def _docker(self, *arguments: str) -> None:
        # The classic builder: BuildKit is a separate package in many places, and there is nothing to gain here.
        self.check(f"docker {arguments[0]}", [_docker(), *arguments], DOCKER_HOST=self._address, DOCKER_BUILDKIT="0")


def _docker() -> str:
    if found := program("docker"):
        return found
    raise Unprepared(
        "the docker command is missing: install it, or let `blastdoor up` install it (as root on Debian or Ubuntu);"
        " without an engine: `blastdoor images build --backend runc`"
    )
