"""What the benchmark of imported tasks says where there is no verdict to compare."""

from pathlib import Path

from benchmarks.importing import Ran, Told, measure
from tests.orchestrator.importing import openevolve_tasks


async def test_a_folder_that_is_refused_has_figures_and_misses_no_goal(tmp_path: Path) -> None:
    """Nothing was compared, so nothing was unequal, and no time to a verdict is told."""
    openevolve_tasks.write(tmp_path / "broken", evaluator__py="def (")
    figures = {it.name: it for it in await measure(tmp_path, "openevolve")}
    assert figures["importing: folders of openevolve"].value == 1
    assert figures["importing: imported"].value == 0
    assert [it for it in figures.values() if it.met is False] == []
    assert not any("first verdict" in name for name in figures)


def test_two_runs_without_a_score_are_not_called_different() -> None:
    late = Ran(None, "over its limit of 60 s", 60.0)
    assert Told(judged=late, native=late).compared == "no score either way"
    assert Told(judged=late, native=Ran(1.0, "", 1.0)).compared == "DIFFERENT"
    assert Told(judged=Ran(1.0, "", 1.0), native=late).compared == "DIFFERENT"
    assert Told(judged=Ran(1.0, "", 1.0), native=Ran(1.0, "", 2.0)).compared == "equal"
