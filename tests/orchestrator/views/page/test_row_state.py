"""Records of a campaign that are read when they are asked for, and never shown as they were before a change."""

import pytest

from orchestrator.ledger import Ledger
from orchestrator.views.page.row_state import RowState
from tests.orchestrator.views.campaign.conftest import Stage, stage

__all__ = ["stage"]  # a fixture, of commands


def test_what_was_read_before_a_change_is_not_kept_after_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread looks, while another hears that the record changed: the next look reads it again."""
    stage.write()
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        state, row, name = RowState(ledger), Ledger.row, "1.1"

        def changed_meanwhile(it: Ledger, kind: str, asked_for: str) -> str | None:
            body = row(it, kind, asked_for)
            state.forget("node", [asked_for])
            return body and body.replace('"description":"', '"description":"old ')

        with monkeypatch.context() as while_it_changes:
            while_it_changes.setattr(Ledger, "row", changed_meanwhile)
            assert state.nodes[name].description.startswith("old ")
        assert not state.nodes[name].description.startswith("old ")
        assert state.nodes[name] is state.nodes[name], "one that did not change is kept"
