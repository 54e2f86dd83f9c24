"""Tests of guests do not meet each other's modules."""

import importlib
import sys

from tests.orchestrator.judge.guests import fresh_guests


def test_nothing_of_others_is_there_or_left() -> None:
    with fresh_guests():
        outer = importlib.import_module("blastdoor_relay")
        with fresh_guests():
            assert importlib.import_module("blastdoor_door").Raised is not outer.Raised
        assert sys.modules["blastdoor_relay"] is outer
        assert importlib.import_module("blastdoor_door").Raised is outer.Raised
    assert sys.modules.get("blastdoor_relay") is not outer
