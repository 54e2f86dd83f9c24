"""A combination that calls its members, on a real engine: both stages, then the winner once more."""

import json
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.examine.replay import replay
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import campaign_folder, read_campaign
from orchestrator.wiring.resuming import parts_of_run

pytestmark = [pytest.mark.docker, pytest.mark.touching("members")]

TASK = """name = "called"
statement = "Come near to 10 and 20."
editable = ["solve.py", "params.json"]
[trial]
command = ["python3", "solve.py"]
[limits]
wall = "60s"
memory = "64MiB"
cpus = 0.3
[judge]
command = ["python3", "judge.py"]
limits = {wall = "60s"}
[parameters]
file = "params.json"
[parameters.space]
value = {type = "choice", values = [10, 20]}
[budget]
attempts = 2
combination = 1
[search]
proposer = "grid"
width = 1
[combine]
pool = 2
members = "code"
serve = ["python3", "-m", "blastdoor_candidate", "solve.py"]
editable = ["both.py"]
[combine.trial]
command = ["python3", "both.py"]
[combine.search]
proposer = "operators"
hints = "off"
"""
SOLVE = """import json, os
from pathlib import Path

VALUE = json.loads(Path(__file__).with_name("params.json").read_text())["value"]


def near(wanted):
    if wanted < 0:
        os._exit(3)
    return [VALUE, os.path.exists("both.py"), sorted(os.listdir("/inputs")) if os.path.exists("/inputs") else []]


if __name__ == "__main__":
    Path(os.environ["BLASTDOOR_OUT"], "answer.json").write_text(json.dumps([VALUE, VALUE]))
"""
BOTH = """import json, os
from pathlib import Path
from blastdoor_members import MemberFailed, members

with members() as pool:
    said = {name: pool.call(name, "near", 1) for name in pool.names}
    failed = []
    for name, function in (("1.9", "near"), (pool.names[0], "nothing")):
        try:
            pool.call(name, function, 1)
        except MemberFailed as error:
            failed.append(str(error))
    try:
        pool.call(pool.names[1], "near", -1)
    except MemberFailed as error:
        failed.append(str(error))
    values = sorted(value for value, *_ in said.values())
    answer = values if len(failed) == 3 and not any(it[1] or it[2] for it in said.values()) else [0, 0]
    print(failed)
    Path(os.environ["BLASTDOOR_OUT"], "answer.json").write_text(json.dumps(answer))
LAST = 1
"""
JUDGE = """from blastdoor_judge import judging, load_json, publish

with judging():
    one, other = load_json("answer.json")
    publish(-abs(one - 10) - abs(other - 20))
"""


async def test_both_stages(tmp_path: Path) -> None:
    """The combination's score needs both members; one that dies, or lacks a function, fails its call alone. A replay
    calls them again.
    """
    files = {"workspace/solve.py": SOLVE, "combine/both.py": BOTH, "judge/judge.py": JUDGE, "blastdoor.toml": TASK}
    for name, text in {**files, "workspace/params.json": json.dumps({"value": 15})}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    settings = Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        async with open_campaign(tmp_path, site, flags=Flags(seed=1), settings=settings) as opened:
            await opened.campaign.run()
        async with open_campaign(tmp_path, site, how=How.COMBINE, settings=settings) as opened:
            await opened.campaign.run()
            root = opened.bench.state.nodes["2"]
            assert root.ending is Ending.SCORED
            assert root.verdict
            assert root.verdict.metrics["score"] == 0
        with read_campaign(campaign_folder(tmp_path), settings) as reading:
            node = reading.state.nodes["2"]
            parts = await parts_of_run(tmp_path, reading, 2, site)
            again = await replay(parts, reading.state, node, reading.candidates.read(node.commit or ""), 0.0)
            assert again.stands, again.why
