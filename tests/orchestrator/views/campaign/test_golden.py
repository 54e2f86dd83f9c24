"""What people and programs see of a campaign of each kind, kept in files: a change shows in them.

After a change that is wanted, GOLDEN=write makes the files again; look at their difference before you commit them.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.metric import Metric, Ranking
from orchestrator.loop.rounds import over
from orchestrator.views.campaign.history import History
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.campaign.sections.material import NodeMaterial
from orchestrator.views.campaign.sections.node import node_sections
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import Line, plain
from orchestrator.views.render.markdown import document
from orchestrator.views.render.terminal import Terminal
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.kinds import KINDS

GOLDEN = Path(__file__).parent / "golden"
# Whole records of the domain, which have tests of their own and grow with every field.
_DUMPED = {"campaign", "run", "best", "node", "drafts", "trials", "events", "guards"}


def _shown(title: str, lines: list[Line]) -> str:
    return "\n".join([f"=== {title}", *map(plain, lines), ""])


def _rendered(story: Story) -> dict[str, str]:
    state = story.state
    reason = over(state.campaign.round) if state.campaign.round else "why it ended"
    made = replace(material(story), diff="--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-1\n+2\n", reason=reason)
    places = {place: sections(made, place) for place in Place}
    best = state.champion() or state.nodes[state.run.root]
    node = NodeMaterial(state, best, Ranking([Metric()]), story.task, History.of(story.events, best.id))
    about = node_sections(node)
    screen = Terminal(100)
    told = {place.name or "": record(found) for place, found in places.items()} | {"SHOW": record(about)}
    return {
        "txt": _shown("status", list(screen.digest(places[Place.STATUS])))
        + _shown("the end of a run", list(Terminal(None).ending(places[Place.ENDING])))
        + _shown("show", list(screen.whole(about))),
        "md": document(places[Place.REPORT]) + document(about),
        "json": "".join(
            f"{place} {key}: {json_text(value, None)}\n"
            for place, found in told.items()
            for key, value in found.items()
            if key not in _DUMPED
        ),
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind(kind: Callable[[], Story]) -> None:
    """The screen, the document and the JSON are those that are kept."""
    for suffix, text in _rendered(kind()).items():
        kept = GOLDEN / f"{kind.__name__}.{suffix}"
        if os.environ.get("GOLDEN") == "write":
            GOLDEN.mkdir(exist_ok=True)
            kept.write_text(text, encoding="utf-8")
        assert text.splitlines() == kept.read_text(encoding="utf-8").splitlines()
