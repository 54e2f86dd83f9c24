"""T82: what a candidate, its judge or a change sends keeps nobody else on the event loop of a campaign waiting."""

from pathlib import Path
from tempfile import mkdtemp

import pytest

from benchmarks.hostile import HOSTILE, opened_campaign
from orchestrator.domain.ending import Ending
from orchestrator.offload import offload
from tests import lag
from tests.lag import longest_call, longest_turn

# An honest attempt has turns of some tens of milliseconds: two of them at once, on a slow machine, and some room.
MOST_S = 0.4
TENTH = 10
# One of each kind of work that is done off the loop: logs, outputs, results, changes.
OFF_THE_LOOP = (
    "15 MiB of escapes",
    "1,000 files of 60 KiB",
    "one file of 60 MiB",
    "a result of 9,000 tasks",
    "a change of 50,000 hunks",
)


@pytest.mark.parametrize("name", HOSTILE)
async def test_t82_beside(tmp_path: Path, name: str) -> None:
    """The hostile attempt ends, its honest neighbour is scored, and no turn of the loop is long."""

    async def scene() -> None:
        async with opened_campaign(Path(mkdtemp(dir=tmp_path)), HOSTILE[name](TENTH)) as opened:
            await opened.campaign.run()
            nodes = opened.bench.state.nodes
        assert nodes["1.2"].ending is Ending.SCORED
        expected = (Ending.SCORED, Ending.TAMPERED, Ending.INVALID, Ending.FAILED)
        assert nodes["1.1"].ending in ((Ending.PRUNED,) if "curves" in name else expected)

    assert await longest_turn(scene, MOST_S) < MOST_S


@pytest.mark.parametrize("name", OFF_THE_LOOP)
async def test_t82_no_thread_keeps_the_interpreter(tmp_path: Path, name: str) -> None:
    """What is done off the loop is done in short calls: a long one would keep the loop waiting as well."""

    async def scene() -> None:
        async with opened_campaign(Path(mkdtemp(dir=tmp_path)), HOSTILE[name](TENTH)) as opened:
            await opened.campaign.run()

    calls = await longest_call(scene)
    assert calls.count > 1000
    assert calls.longest_s < lag.MOST_S, calls


async def test_a_thread_that_keeps_the_interpreter_is_seen() -> None:
    """One long call in a thread is no turn of the loop, and is measured; many short ones are not taken for it."""
    many = list(range(20_000_000))

    async def short() -> None:
        await offload(lambda: [len(str(number)) for number in range(300_000)])

    async def long() -> None:
        await offload(lambda: many.count(-1))

    assert (await longest_call(short)).longest_s < lag.MOST_S
    assert await longest_turn(long) < lag.MOST_S
    calls = await longest_call(long)
    assert (calls.longest_s > lag.MOST_S, calls.name) == (True, "list.count")
