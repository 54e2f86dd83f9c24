"""Tasks of others, imported and run through the door and natively: `importing --folder FOLDER [--format shinka]`.

Every folder beneath FOLDER that the importer finds a task in is imported by the one command's own code, its baseline is
judged once in chambers, and the same evaluator runs natively: in one process with the program, in one chamber that has
the packages of both. Where the scores differ, it runs natively once more: two native scores that differ, too, are a
score by chance or by the clock. What a folder gave is told on standard error as it comes.
"""

import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from orchestrator.choices import IMPORTERS
from orchestrator.importing import Imported, ImportRequest, write_task
from orchestrator.importing.called import toml_list, toml_text
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.options import resolve
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.sites import open_site
from sandbox import SandboxError

EVALUATORS = {"openevolve": "evaluator.py", "shinka": "evaluate.py", "evo": ".evo", "harbor": "task.toml"}
NATIVE = """
import os, runpy
import blastdoor_evaluator, blastdoor_evo, blastdoor_openevolve, blastdoor_shinka
from blastdoor_judge import judging

@judging()
def native(run, *, evaluator, metric, goal="higher", home="", **_):
    if home:
        os.environ["HOME"] = os.path.abspath(home)
    found = blastdoor_evaluator.Outcome(metric, goal)
    run(evaluator, os.path.join(os.environ["BLASTDOOR_CANDIDATE"], {program!r}), found)
    found.publish()

for module in (blastdoor_evo, blastdoor_openevolve, blastdoor_shinka):
    module.run_evaluator = native
runpy.run_path({driver!r}, run_name="__main__")
"""


@dataclass
class Ran:
    """`score` is None where there is no verdict; `reason` says why."""

    score: float | None
    reason: str
    seconds: float


@dataclass
class Told:
    imported: bool = False
    judged: Ran | None = None
    native: Ran | None = None
    again: Ran | None = None
    first_verdict_s: float = 0.0

    @property
    def equal(self) -> bool:
        if not self.judged or not self.native or self.native.score is None:
            return False
        return repr(self.judged.score) == repr(self.native.score)

    @property
    def by_chance(self) -> bool:
        """Natively it does not get the same score twice either."""
        return self.again is not None and self.native is not None and self.again.score != self.native.score

    @property
    def compared(self) -> str:
        if self.equal:
            return "equal"
        if self.by_chance:
            return "by chance or clock"
        scores = [it.score for it in (self.judged, self.native) if it]
        return "DIFFERENT" if any(it is not None for it in scores) else "no score either way"


async def measure(
    folder: Path | None, system: str, only: str = "*", placed: Mapping[str, Path] | None = None
) -> list[Figure]:
    if folder is None:
        print("importing: left out; name a folder of tasks with --folder", file=sys.stderr)
        return []
    rows = []
    for source in _sources(folder, system):
        name = source.relative_to(folder).as_posix()
        if fnmatch(name, only):
            rows.append(await _tried(source, system, name, placed or {}))
    judged = [it for it in rows if it.judged and it.judged.score is not None]
    same = [it for it in judged if it.equal]
    steady = [it for it in judged if not it.by_chance and it.native and it.native.score is not None]
    times = sorted(it.first_verdict_s for it in judged)
    return [
        Figure(f"importing: folders of {system}", len(rows), ""),
        Figure("importing: imported", sum(it.imported for it in rows), ""),
        Figure("importing: judged through the door", len(judged), ""),
        Figure("importing: native scores that neither chance nor the clock is in", len(steady), ""),
        *([Figure("importing: of these, equal in all digits", len(same) / len(steady), "", ">= 1")] if steady else []),
        *_first_verdicts(times),
    ]


def _first_verdicts(times: list[float]) -> list[Figure]:
    if not times:
        return []
    return [
        Figure("importing: from the command to the first verdict, median", times[len(times) // 2], "s"),
        Figure("importing: the same, at most", times[-1], "s"),
    ]


def _sources(folder: Path, system: str) -> list[Path]:
    return sorted(it.parent for it in folder.rglob(EVALUATORS[system]))


async def _tried(source: Path, system: str, name: str, placed: Mapping[str, Path]) -> Told:
    row = Told()
    with tempfile.TemporaryDirectory(prefix="importing-") as place:
        started = time.monotonic()
        try:
            request = ImportRequest(source=source, name="imported", placed=placed)
            imported: Imported = IMPORTERS.load(system)(request)
            write_task(imported, Path(place, "task"))
        except TaskError as error:
            _say(name, f"refused: {error}")
            return row
        row.imported = True
        row.judged = await ran(Path(place, "task"))
        row.first_verdict_s = time.monotonic() - started
        _say(
            name, f"through the door: {_said(row.judged)}; from the command to the verdict {row.first_verdict_s:.1f} s"
        )
        if row.judged.score is None and not row.judged.reason:
            return row
        row.native = await ran(native_task(Path(place, "task"), Path(place, "native")))
        if row.judged.score is not None and not row.equal and row.native.score is not None:
            row.again = await ran(Path(place, "native"))
    again = f"; once more: {_said(row.again)}" if row.again else ""
    _say(name, f"natively: {_said(row.native)}{again}; {row.compared}")
    return row


async def ran(folder: Path) -> Ran:
    task = load_task(folder)
    settings = Settings()
    started = time.monotonic()
    try:
        async with open_site(settings, resolve(Flags(), task, settings).site) as site:
            run = await rehearse(await make_parts(task, snapshot(task, folder), site))
    except (SandboxError, TaskError) as error:
        return Ran(None, str(error), time.monotonic() - started)
    result = run.judgement.result if run.judgement else None
    score = result.metrics.get(task.metrics[0].name, result.score) if run.scored and result else None
    return Ran(score, "" if score is not None else _why(run), time.monotonic() - started)


def _why(run: Rehearsal) -> str:
    judgement = run.judgement
    found = [run.reason, *([judgement.fault, judgement.detail, _last(judgement.log)] if judgement else [])]
    if run.verdict is not None:
        found.append(run.verdict.notes)
    return "; ".join(filter(None, found)) or "no score"


def _last(log: bytes) -> str:
    return (log.decode("utf-8", "replace").strip().splitlines() or [""])[-1]


def native_task(task: Path, folder: Path) -> Path:
    """The same evaluator and program as a task of the tier shared: one process, the packages of both."""
    given = tomllib.loads((task / "blastdoor.toml").read_text())
    driver = given["judge"]["command"][1]
    program = given["editable"][0].partition(":")[0]
    shutil.copytree(task, folder)
    (folder / "judge" / "native.py").write_text(NATIVE.format(program=program, driver=driver))
    (folder / "blastdoor.toml").write_text(_native_text(given))
    return folder


def _native_text(given: Mapping[str, Any]) -> str:
    images = [given.get("image", {}), given["judge"].get("image", {})]
    pip, apt = (sorted({name for it in images for name in it.get(key, [])}) for key in ("pip", "apt"))
    limits = {**given["limits"], **given["judge"].get("limits", {})}
    said = ", ".join(f"{key} = {toml_text(it) if isinstance(it, str) else it}" for key, it in limits.items())
    metric = given["metrics"][0]
    return f"""
name = "native"
statement = "The evaluator with the program in one process."
editable = ["**"]
[trial]
command = ["true"]
[image]
pip = {toml_list(pip)}
apt = {toml_list(apt)}
[judge]
mode = "shared"
command = ["python3", "native.py"]
limits = {{{said}}}
[[metrics]]
name = {toml_text(metric["name"])}
goal = "{metric["goal"]}"
"""


def _said(ran: Ran) -> str:
    return f"{ran.score!r} in {ran.seconds:.1f} s" if ran.score is not None else f"no score ({ran.reason[:300]})"


def _say(name: str, text: str) -> None:
    print(f"{name}: {text}", file=sys.stderr, flush=True)
