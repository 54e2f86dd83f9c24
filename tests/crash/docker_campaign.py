"""A campaign of real chambers to be killed: a baseline and a grid of two points, judged by a line of shell."""

import asyncio
import json
from pathlib import Path

from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.docker.backend import DockerBackend
from tests.crash.fate import Fate
from tests.crash.nursery import is_begun

_FILES = {
    "blastdoor.toml": """name = "killed"
statement = "Be high."
editable = ["params.json"]
trial = {command = 'cp params.json "$BLASTDOOR_OUT/answer.json"'}
limits = {wall = "20s", memory = "64MiB"}

[judge]
command = "sh judge.sh"
limits = {wall = "20s", memory = "64MiB"}

[parameters]
file = "params.json"
space = {value = {type = "int", low = 1, high = 2}}
""",
    "workspace/params.json": '{\n  "value": 0\n}\n',
    "judge/judge.sh": """value=$(tr -cd 0-9 < ../outputs/answer.json)
echo "{\\"score\\": $value}" > "$BLASTDOOR_RESULT_PATH"
""",
}


def make(folder: Path) -> Path:
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def live(folder: str, owners: str, at: int | None = None, count: str = "") -> None:
    """Work on the campaign until it is finished, or until fate strikes. `owners` collects who held chambers."""
    fate = Fate(at)
    fate.rule()
    asyncio.run(_work(Path(folder), Path(owners)))
    fate.end()
    if count:
        Path(count).write_text(json.dumps(fate.points))


async def _work(folder: Path, owners: Path) -> None:
    settings = Settings()
    how = How.RESUME if is_begun(folder) else How.START
    flags = Flags() if how is How.RESUME else Flags(proposer="grid", width=1, rate=1e6)
    async with docker_site(docker_config(settings, warm=0), settings.image) as site:
        assert isinstance(site.backend, DockerBackend)
        with owners.open("a") as file:
            file.write(f"{site.backend.owner}\n")
        async with open_campaign(folder, site, how=how, flags=flags, settings=settings) as opened:
            await opened.campaign.run()
