"""What Modal's list tells of how long a sandbox lived."""

import math

import pytest
from modal_proto import api_pb2

from sandbox.backends.modal.engine import _life_of


def one(created: float, finished: float) -> api_pb2.SandboxInfo:
    return api_pb2.SandboxInfo(created_at=created, task_info=api_pb2.TaskInfo(finished_at=finished))


def test_a_life_is_counted_in_whole_seconds() -> None:
    assert _life_of([one(100.0, 103.2), one(100.0, 101.0)]).seconds == 5


@pytest.mark.parametrize(
    ("created", "finished"), [(100.0, 0.0), (100.0, 99.0), (0.0, 100.0), (100.0, math.nan), (100.0, math.inf)]
)
def test_what_is_no_life_tells_no_time(created: float, finished: float) -> None:
    """It would free all that was booked, or end the campaign that asks."""
    life = _life_of([one(created, finished)])
    assert life.listed
    assert life.seconds is None
