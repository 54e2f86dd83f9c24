"""What a session ends with: the chart, the tree, the winner with its diff, and what it cost."""

from pathlib import Path

from orchestrator.views.campaign.diff import winners_diff
from orchestrator.views.campaign.opening import material_of, open_campaign
from orchestrator.views.campaign.points import series_of
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.campaign.tree import Layout, tree
from orchestrator.views.render.chart import chart
from orchestrator.views.render.data import record
from orchestrator.views.render.terminal import Terminal

_WHOLE_TREE = 20
_CHART_HEIGHT = 18


def show_summary(task: Path, reason: str) -> None:
    screen = open_screen()
    with open_campaign(task) as reading:
        state, run = reading.state, reading.state.run
        material = material_of(reading, diff=winners_diff(reading, run), reason=reason)
        series = series_of(state, material.metrics[0])
        screen.lines([*chart(series, width=screen.width, height=_CHART_HEIGHT, unicode=screen.unicode), []])
        family = None if len(state.nodes) <= _WHOLE_TREE else 1
        screen.show(tree(state, material.metrics, Layout(screen.width, screen.unicode, family=family)), "")
        screen.lines(Terminal(None, screen.unicode).ending(sections(material, Place.ENDING)))


def summary_record(task: Path, reason: str) -> dict[str, object]:
    with open_campaign(task) as reading:
        material = material_of(reading, reason=reason)
        told = record(sections(material, Place.ENDING))
        del told["diff"]
        return told | {
            "champion": told["best"],
            "nodes": len(reading.state.nodes),
            "accounts": reading.accounts.as_rows(),
            "control": told["control"] if reading.state.run.control else None,
            "head": {"seq": reading.head.seq, "hash": reading.head.hash},
        }
