"""What a door is made of."""

from types import SimpleNamespace
from typing import Any

from orchestrator.loop.jobs import Image
from orchestrator.wiring.parts import make_door
from sandbox.price import Terms


def test_the_control_runs_where_no_candidate_was() -> None:
    """It decides who is to blame for a failure: on a machine that a candidate took, it would say what pays."""
    site: Any = SimpleNamespace(name="fake", backend=None, usd_per_second=lambda _: 0.0, spare_s=1.0, terms=Terms())
    assert make_door(site, Image("blastdoor-trial:latest", ""), 1.0).control.fresh
