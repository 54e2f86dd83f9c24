"""A campaign that asks a model is killed after its events: it ends like one that nobody disturbed, and whatever
the provider counted on the way is in the books.
"""

import json
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from tests.crash.asking_campaign import ATTEMPTS, KEY, live, make
from tests.crash.bills import checked
from tests.crash.fate import last_of_each_kind
from tests.crash.nursery import child
from tests.messages import MessagesServer, Recorded, Reply, Text
from tests.started import WITH_MODELS

pytestmark = pytest.mark.crash

TARGET = f"{live.__module__}:{live.__name__}"
USAGE = {"input_tokens": 100, "output_tokens": 50}
BILLED = (100 * 2 + 50 * 10) / 1e6  # dollars of one answer


def answer(request: Recorded) -> Reply:
    """The same for the same attempt, whoever asks and how often."""
    number = int(request.body["messages"][0]["content"])
    return Reply((Text(json.dumps({"value": number * 5 % 13})),), usage=USAGE)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_killed_after_events(tmp_path: Path, every: bool) -> None:
    """Calls that nobody heard the end of are booked at their worst case, and asked again without charging anybody.

    Around a call: what else there is, campaigns that ask nobody are killed after. At length, after every event.
    """
    with MessagesServer(KEY) as server:
        server.answering(answer)
        told = tmp_path / "points.json"
        calm = make(tmp_path / "calm")
        assert child(TARGET, WITH_MODELS, folder=str(calm), url=server.url, count=str(told)) == 0
        assert len(server.requests) == ATTEMPTS
        expected = checked(calm, BILLED * ATTEMPTS, ATTEMPTS)
        assert expected["1.1"][1] is Ending.SCORED  # type: ignore[index]
        points = json.loads(told.read_text())
        deaths = [number for number, point in enumerate(points, start=1) if point.startswith("after Ledger.append")]
        assert len(deaths) > 20
        if not every:
            deaths = last_of_each_kind(points, (it for it in deaths if "model call" in points[it - 1]))
        assert len(deaths) > 1
        for number in deaths:
            folder, before = make(tmp_path / str(number)), len(server.requests)
            where = f"point {number}: {points[number - 1]}"
            assert child(TARGET, WITH_MODELS, folder=str(folder), url=server.url, at=number) == -9, where
            assert child(TARGET, WITH_MODELS, folder=str(folder), url=server.url) == 0, where
            assert checked(folder, BILLED * (len(server.requests) - before), ATTEMPTS) == expected, where
