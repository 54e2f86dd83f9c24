"""What a campaign says of its judge's audit: its score, whether it was whole, and whether it was of this very judge."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.domain.audit import TERMS, Asked, AuditRecord, Hole, Untried
from orchestrator.domain.verdict import Mode
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task.audits import keep_audit
from orchestrator.views.campaign import report
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.campaign.sections.evidence import audited
from orchestrator.views.page.pages import VIEWS
from orchestrator.views.render import html, markdown
from orchestrator.wiring.opening import open_campaign
from tests.clicking import runner
from tests.orchestrator.views.campaign.builder import Story, campaign, material
from tests.orchestrator.views.judging.stage import METRIC, Stage, write_task

SCORE = {"score": 9.0}
HOLE = Hole(adversary="NaN", way="NaN: <b>", how="wins", metrics=SCORE, mend="refuse it", accepted=False, reproduce="")


def audit_of(digests: Mapping[str, str], **more: Any) -> AuditRecord:
    """One that is kept beside a task."""
    about = {"blastdoor": "1", "ended_at": "2026-11-17T10:00:00Z", "task": "t", "asked": Asked(runs=3)}
    return AuditRecord.model_validate({**about, "digests": dict(digests), **more})


def record(story: Story, **more: Any) -> AuditRecord:
    run = story.state.run
    return audit_of({**run.digests, "task": run.task}, **{"good": True, "held": 23, "tried": 23, **more})


def told(story: Story, found: AuditRecord) -> tuple[str, dict[str, Any]]:
    section = audited(replace(material(story), audit=found))
    assert section.line
    assert section.data
    return markdown.text(section.line), section.data["audit"]


def test_the_score() -> None:
    """Of this very judge, and whole: so many of so many, and when. A part of an audit is called one, and so is what
    could not be tried. A judge that was changed since has no score of its own.
    """
    story = campaign(4)
    line, data = told(story, record(story))
    assert line == "Audited on 11-17 10:00:00: the judge held against 23 of 23."
    assert (data["good"], data["held"], data["tried"], data["part"], data["changed_since"]) == (True, 23, 23, "", [])
    line, _ = told(story, record(story, asked=Asked(runs=3, only=("NaN", "zeros", "huge"))))
    assert line.endswith("the judge held against 23 of 23, of a part: `only “NaN”, “zeros” and 1 more`.")
    untried = (Untried(adversary="slow", why="it timed out"),)
    line, data = told(story, record(story, untried=untried, good=False))
    assert line.endswith("the judge held against 23 of 23, 1 could not be tried.")
    assert (data["good"], data["untried"]) == (False, ["slow"])
    made = record(story)
    other = {**made.digests, "judge": "0" * 64, "task": "1" * 64}
    line, data = told(story, made.model_copy(update={"digests": other}))
    assert "is of another version (the task file, the judge changed since); of that one it says" in line
    assert (data["good"], data["changed_since"]) == (False, ["the task file", "the judge"])


def test_everywhere() -> None:
    """Holes stand in every report with what to change, harmless in HTML; the page shows it under Trust."""
    story = campaign(4)
    found = record(story, holes=(HOLE,), tried=24, good=False)
    made = replace(material(story), audit=found)
    shown = sections(made, Place.REPORT)
    text = markdown.document(shown)
    assert "held against 23 of 24" in text
    assert "refuse it" in text
    page = html.document(shown)
    assert "NaN: &lt;b&gt;" in page
    assert "<b>" not in page
    assert audited in VIEWS["trust"]
    assert any("audit" in (it.data or {}) for it in sections(made, Place.STATUS))


async def test_a_campaign_tells_what_was_kept(tmp_path: Path) -> None:
    """An audit that is kept beside the task is told by its campaigns, and compared with what they ran against."""
    folder = write_task(tmp_path, METRIC)
    settings = Settings(ledger=None)
    async with (
        Stage().site() as site,
        open_campaign(folder, site, flags=Flags(proposer="operators", attempts=1), settings=settings) as opened,
    ):
        await opened.campaign.run()
        run = opened.bench.state.run
        terms = {name: it for name, it in opened.bench.jobs.fingerprint({}, Mode.SUBMIT).items() if name in TERMS}
        digests = dict(opened.bench.jobs.snapshot.digests)
    assert digests["task"] == run.task, "the digest of the task file is known from the run alone"
    for image, changed in ((terms["image"], []), ("another", ["the candidate's image"])):
        made = audit_of(digests, good=True, held=5, tried=5, fingerprint={**terms, "image": image})
        keep_audit(folder, made, made.model_dump_json())
        result = runner().invoke(report.command, [str(folder), "--json"], obj=settings)
        assert json.loads(result.stdout)["audit"]["changed_since"] == changed, result.output
