"""A campaign in a notebook: a table to compute with, and its report as what a cell shows."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.settings import Settings
from orchestrator.views.campaign.opening import material_of, metrics_of
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.campaign.table import write_nodes
from orchestrator.views.render.html import document
from orchestrator.views.render.tags import element
from orchestrator.wiring.reading import read_campaign

if TYPE_CHECKING:
    import pandas

_TEXT = ("node", "parent", "role", "status", "ending", "cohort", "tier", "operator", "description", "why")
_TIMES = ("opened", "ended")
_FALSE, _TRUE = ["no"], ["yes"]


class Campaign:
    """The campaign of a task, at work or finished, read again at each look. Nothing is locked.

        campaign = blastdoor.Campaign("my-task")
        campaign                      # its report, with the chart
        campaign.frame()              # a pandas DataFrame, a row for each node

    Each look raises LedgerError where there is no campaign, or none that can be read.
    """

    def __init__(self, task: str | Path, settings: Settings | None = None) -> None:
        self._task = Path(task)
        self._settings = settings

    def frame(self) -> "pandas.DataFrame":
        """The table of `blastdoor export --csv`, with types, by node. A missing score is NaN."""
        # pandas is no part of a plain installation: pip install 'blastdoor[notebook]'
        import pandas

        table = io.StringIO(newline="")
        with read_campaign(self._task, self._settings) as reading:
            metrics = {run.number: metrics_of(reading, run) for run in reading.state.runs.values()}
            write_nodes(reading.state, metrics, table)
        table.seek(0)
        text: dict[Any, Any] = dict.fromkeys(_TEXT, "object")
        found = pandas.read_csv(
            table, dtype=text, true_values=_TRUE, false_values=_FALSE, keep_default_na=False, na_values=[""]
        )
        for name in _TIMES:
            found[name] = pandas.to_datetime(found[name], format="ISO8601", utc=True)
        return found.set_index("node")

    def html(self) -> str:
        """The report as one page, as `blastdoor report --html` writes it."""
        with read_campaign(self._task, self._settings) as reading:
            return document(sections(material_of(reading), Place.REPORT))

    def _repr_html_(self) -> str:
        """In a frame of its own: no style of it reaches the notebook, and nothing in it can act."""
        frame = {"srcdoc": self.html(), "sandbox": "", "width": "100%", "height": "720", "title": "campaign"}
        return element("iframe", **frame, style="border: 0")

    def __repr__(self) -> str:
        return f"Campaign({str(self._task)!r})"
