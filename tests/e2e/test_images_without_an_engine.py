"""From nothing to a campaign on a machine that has no engine: images are built, and chambers start from them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.started import completed

pytestmark = [pytest.mark.e2e, pytest.mark.touching("baking")]


def test_built_and_used(tmp_path: Path) -> None:
    """Debian's packages become the base, Dockerfiles what stands on it. A second build has nothing to do; chambers, a
    judge and a task's own packages start from what was built.
    """
    nowhere = f"unix://{tmp_path}/none.sock"
    homes = {f"XDG_{it}_HOME": str(tmp_path / it.lower()) for it in ("CONFIG", "STATE", "CACHE")}
    environment = {**os.environ, **homes, "DOCKER_HOST": nowhere, "BLASTDOOR_DOCKER_HOST": nowhere}

    def blastdoor(*words: str) -> subprocess.CompletedProcess[str]:
        ran = completed(*words, env=environment)
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
        return ran

    refused = completed("exec", "--backend", "runc", "--", "true", env=environment)
    assert refused.returncode == 2
    assert "build it (`blastdoor images build --backend runc trial`), or load it" in refused.stderr
    build = ("images", "build", "--backend", "runc", "attack")
    assert blastdoor(*build).stderr.count("building blastdoor-") == 3
    assert "building" not in blastdoor(*build).stderr
    rows = json.loads(blastdoor("images", "--json").stdout)
    assert {row["image"]: (row["on"], row["state"]) for row in rows} == {
        f"blastdoor-{name}:latest": ("disk", "ready") for name in ("base", "trial", "attack")
    }
    raised = ("--image", "blastdoor-attack:latest", "--", "sh", "-c", "ls -l /usr/local/bin; planted-suid -u")
    seen = blastdoor("exec", "--backend", "runc", *raised).stdout
    assert "-rwsr-xr-x" in seen
    assert int(seen.split()[-1]) > 0

    task = tmp_path / "task"
    blastdoor("init", str(task))
    (task / "blastdoor.toml").write_text(
        (task / "blastdoor.toml").read_text() + '\n[image]\nrun = ["echo baked here > /greeting"]\n'
    )
    blastdoor("run", str(task), "--backend", "runc", "--attempts", "2")
    ended = json.loads(blastdoor("status", str(task), "--json").stdout)
    assert ended["campaign"]["counts"]["1/search"] == 2
    assert ended["campaign"]["stopped"] == "2 of 2 attempts are used"
    assert "baked" in {row["state"] for row in json.loads(blastdoor("images", "--json").stdout)}
