"""`audit` as a person meets it: rows, a last line, files for `gate`, JSON, exit codes; and a model that is asked."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from orchestrator.domain.audit import Asked, AuditRecord
from orchestrator.domain.verdict import Mode
from orchestrator.examine.audit import AuditReport, Found, with_model
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.examine.gate import Decision
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.task.audits import NoAudit, keep_audit, kept_audit, place_of, read_audit
from orchestrator.task.snapshot import Snapshot, snapshot
from orchestrator.views.exits import Exit
from orchestrator.views.judging import audit
from orchestrator.views.judging.audit_record import audit_of, change_files, record
from orchestrator.views.judging.gate import Change, gate
from orchestrator.views.judging.model_cheats import ModelCheats, ask_for_cheats
from orchestrator.wiring.parts import make_parts
from tests.clicking import runner
from tests.leaky.auditing import PAIRS
from tests.messages import MessagesServer, Reply, Text
from tests.orchestrator.loop.test_models import CHEAP, settings_for
from tests.orchestrator.views.judging.stage import BETTER, JUDGE, METRIC, Stage, whole, write_task

Audit = Callable[..., Result]
NO_RANGE = next(write for name, _, write in PAIRS if name == "no-range")


@pytest.fixture
def blastdoor_audit(monkeypatch: pytest.MonkeyPatch) -> Audit:
    def run(*words: str, settings: Settings | None = None) -> Result:
        monkeypatch.setattr(audit, "open_site", lambda *_: Stage().site())
        return runner().invoke(audit.command, list(words), obj=settings or Settings(), standalone_mode=False)

    return run


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A task whose judge holds."""
    return NO_RANGE(tmp_path / "task", fixed=True)


def test_a_hole(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """The hole, what to change, how to see it again; a report and a change in the folder that was named."""
    task, out = NO_RANGE(tmp_path / "task", fixed=False), tmp_path / "found"
    result = blastdoor_audit(str(task), "--only", "large", "--runs", "2", "--out", str(out))
    assert result.return_value == Exit.NOT_GOOD, result.output
    assert "✗ “large” beats the baseline (score = 1e+10)" in result.output
    assert "→ check the range of every number" in result.output
    assert f"again: blastdoor gate {task} --diff {out}/large.change --must-improve" in result.output
    assert result.output.endswith("the judge can be cheated: held against 0 of 1\n")
    told = json.loads((out / "audit.json").read_text())
    assert (told["held"], told["tried"], told["good"]) == (0, 1, False)
    assert told["holes"][0]["change"] == (out / "large.change").read_text()
    assert "judge" in told["digests"]


def test_a_baseline_at_fault(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """A row that failed is a failure, also where the judge held: exit code, last line and what is kept agree."""
    task = write_task(tmp_path, METRIC.replace("-0.01", "-2.0"))
    result = blastdoor_audit(str(task), "--only", "zeros", "--runs", "2")
    assert result.return_value == Exit.NOT_GOOD, result.output
    kept = kept_audit(task)
    assert kept
    assert (kept.good, kept.held, kept.tried) == (False, 1, 1)
    assert kept.faults == ["the baseline itself is beyond the ceiling of score"]
    assert "✗ the baseline itself is beyond the ceiling" in result.output
    assert result.output.endswith("\nnot ready: held against 1 of 1, but the baseline is at fault\n")


def test_json_of_a_judge_that_holds(sound: Path, blastdoor_audit: Audit) -> None:
    """One object, and nothing else on stdout."""
    result = blastdoor_audit(str(sound), "--only", "large", "--only", "zeros", "--json")
    told = json.loads(result.stdout)
    assert (result.return_value, told["good"], told["held"], told["tried"]) == (Exit.OK, True, 2, 2)
    assert (told["baseline"], told["holes"]) == ({"score": pytest.approx(3.5)}, [])
    assert kept_audit(sound) == AuditRecord.model_validate_json(result.stdout), "kept for campaigns to tell"


def test_nothing_was_tried(sound: Path, blastdoor_audit: Audit) -> None:
    """A row that is for judges that call says nothing of one that does not: that is no judge that held."""
    result = blastdoor_audit(str(sound), "--only", "learnt by heart", "--runs", "2")
    assert result.return_value == Exit.NOT_GOOD, result.output
    assert result.output.endswith("not tried: no adversary that was asked for has anything to do here\n")


def test_no_money_is_spent_untold(sound: Path, blastdoor_audit: Audit) -> None:
    """It has no account for its chambers, so it rents none."""
    result = blastdoor_audit(str(sound), settings=Settings(backend="modal"))
    assert isinstance(result.exception, TaskError)
    assert "audit has no budget, and chambers of modal cost money" in str(result.exception)


def test_bad_input(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """An adversary that nobody knows, and a task that cannot be read: one line each, before anything runs."""
    for words in (["--only", "larg"], ["--accept", "nobody"]):
        wrong = blastdoor_audit(str(tmp_path), *words)
        assert isinstance(wrong.exception, click.UsageError)
        assert "--list tells their names" in str(wrong.exception)
    assert isinstance(blastdoor_audit(str(tmp_path)).exception, TaskError)
    listed = blastdoor_audit("--list")
    assert "learnt by heart (relay): draw questions from candidate.rng()" in listed.output


def taken(folder: Path) -> Snapshot:
    return snapshot(load_task(folder), folder)


def recorded(folder: Path, *, findings: Findings | None = None, asked: Asked | None = None, **more: Any) -> AuditRecord:
    """As `audit` would write it of a task that stands there."""
    report = AuditReport(**{"held": 40, "tried": 40, **more})
    return record(load_task(folder), taken(folder), report, findings or Findings(), asked or Asked(runs=3))


def written_to(path: Path, told: AuditRecord, **more: object) -> Path:
    path.write_text(json.dumps({**told.model_dump(mode="json"), **more}))
    return path


HOLE = Found("large", "large", "beats the baseline", {"score": 9.0}, "mend it", None)


def test_the_evidence_of_a_gate(tmp_path: Path, sound: Path) -> None:
    """What was found about this very judge can be signed with the rest; a report about another is refused."""
    path = written_to(tmp_path / "audit.json", recorded(sound, found=(HOLE,), tried=41))
    found, digest = audit_of(path, taken(sound))
    assert (found.good, found.held, found.tried, len(digest)) == (False, 40, 41, 64)
    NO_RANGE(sound, fixed=False)
    with pytest.raises(click.UsageError, match="is about another task: the judge changed since"):
        audit_of(path, taken(sound))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"held": 41}, "held and the holes are not what was tried"),
        ({"good": False}, "good is not what the rest says"),
        ({"rows": [{"section": "wiring", "sign": "fail", "text": "it is broken"}]}, "good is not what the rest says"),
        ({"version": 1}, "version: Input should be 2"),
        ({"signed": True}, "signed: Extra inputs are not permitted"),
        ({"held": "40"}, "held: Input should be a valid integer"),
        ({"held": float("nan")}, "not JSON: NaN|number not finite"),
        ({"asked": {"runs": 3, "accept": ["large"]}, "holes": [{**vars(HOLE), "accepted": False}]}, "holes.0"),
        ({"digests": None}, "digests: Input should be an object"),
    ],
)
def test_a_file_that_anybody_wrote(tmp_path: Path, sound: Path, more: dict[str, object], why: str) -> None:
    """What does not agree with itself, or has more or other fields than we write, is no report of an audit."""
    path = written_to(tmp_path / "audit.json", recorded(sound), **more)
    with pytest.raises(click.UsageError, match=f"is no report of an audit .*({why}).*; name the audit.json"):
        audit_of(path, taken(sound))


@pytest.mark.parametrize(
    ("asked", "told"),
    [({"only": ("large",)}, "covers only “large”"), ({"quick": True}, "covers the quick adversaries only")],
)
def test_half_an_audit_is_none(tmp_path: Path, sound: Path, asked: dict[str, Any], told: str) -> None:
    """What was left out is in the file, and a gate says so instead of believing the rest."""
    path = written_to(tmp_path / "audit.json", recorded(sound, asked=Asked(runs=3, **asked)))
    with pytest.raises(click.UsageError, match=f"{told}; run `blastdoor audit` again without --only and --quick"):
        audit_of(path, taken(sound))


async def test_a_gate_compares_what_it_runs_in(tmp_path: Path) -> None:
    """The image is known once it is opened: an audit of another one judges nothing, and the change is not let in."""
    folder = write_task(tmp_path / "task", METRIC)
    change = whole(BETTER).encode()
    async with Stage().site() as site:
        parts = await make_parts(load_task(folder), taken(folder), site)
        fingerprint = parts.jobs.fingerprint({}, Mode.SUBMIT)
    for terms, decision in (
        (fingerprint, Decision.ACCEPTED),
        ({**fingerprint, "image": "0" * 64}, Decision.UNJUDGED),
    ):
        judged = Change(change, "0" * 64, len(change))
        audited = recorded(folder, fingerprint=terms), "f" * 64
        report = await gate(folder, judged, Settings(), Stage().site, audit=audited)
        assert report.audit
        assert (report.audit["held"], report.audit["sha256"]) == (40, "f" * 64)
        assert report.gated.decision is decision, report.gated.why
    assert report.gated.why.startswith("--audit was made with something else: the candidate's image changed")


def test_what_the_judge_printed_stays_with_its_author(sound: Path) -> None:
    """Its log and last words may hold gold: they are shown, and are in no file that is handed on."""
    findings = Findings()
    facts = {"cheats": [{"name": "NaN", "code": "invalid: no result", "said": "gold is 42"}]}
    findings.add(Section.CHEATS, Sign.NOTE, "broke the judge", log=b"gold is 42", facts=facts)
    told = recorded(sound, findings=findings)
    assert "gold" not in told.model_dump_json(include={"rows"})
    assert told.rows[0].facts["cheats"] == [{"name": "NaN", "code": "invalid: no result"}]


def test_no_two_changes_have_one_name() -> None:
    """Names of ways that differ by a sign, or are in no letters of ours, do not overwrite each other."""
    ways = ["one figure alone: x = 1e+09", "one figure alone: x = -1e+09", "→", "←", "none"]
    found = [Found("a", way, "", {}, "", "change" if way != "none" else None) for way in ways]
    assert change_files(found) == [
        "one-figure-alone-x-1e-09.change",
        "one-figure-alone-x-1e-09-2.change",
        "hole.change",
        "hole-2.change",
        "",
    ]


def test_a_model_that_gave_nothing(sound: Path) -> None:
    """It was not held against: it was not tried, and that is good only where a person says so."""
    for accepted, good in (((), False), (("a model",), True)):
        findings = Findings()
        report = with_model(AuditReport(held=3, tried=3, accepted=accepted), (), 0, findings)
        assert (report.held, report.tried, report.good, list(report.untried)) == (3, 3, good, ["a model"])
        assert "came before the judge" in findings.rows[0].text
    report = with_model(AuditReport(held=3, tried=3), (), 2, Findings())
    assert (report.held, report.tried, report.good) == (4, 4, True)
    assert recorded(sound, untried={"a model": "no answer"}).good is False


def test_what_is_kept(sound: Path) -> None:
    """The last whole audit of a judge is not replaced by a part of one that is good, but is by a part that found a
    hole, and by one of another judge. A hole is told until the same adversary, or all of them, were tried again.
    """
    large: dict[str, Any] = {"tried": 1, "asked": Asked(runs=3, only=("large",))}
    all_, part, hole = (
        recorded(sound),
        recorded(sound, held=1, **large),
        recorded(sound, held=0, found=(HOLE,), **large),
    )
    beside = recorded(sound, held=1, tried=1, asked=Asked(runs=3, only=("small",)))
    for told, kept in (
        *((part, part), (all_, all_), (part, all_)),
        *((hole, hole), (beside, hole), (part, part), (beside, beside), (all_, all_)),
    ):
        keep_audit(sound, told, told.model_dump_json())
        assert kept_audit(sound) == kept
    NO_RANGE(sound, fixed=False)
    other = recorded(sound, held=1, **large)
    keep_audit(sound, other, other.model_dump_json())
    assert kept_audit(sound) == other
    assert [it.name for it in place_of(sound).parent.iterdir()] == ["audit.json"]


def test_which_audit_covers_another() -> None:
    """A whole one all; a part what is a part of it."""
    all_, quick, one = Asked(runs=3), Asked(runs=3, quick=True), Asked(runs=3, only=("large",))
    two, quick_one = Asked(runs=3, only=("large", "small")), Asked(runs=3, quick=True, only=("large",))
    every = (all_, quick, one, two, quick_one)
    covered = {0: every, 1: (quick, quick_one), 2: (one, quick_one), 3: (one, two, quick_one), 4: (quick_one,)}
    for at, it in enumerate(every):
        assert tuple(other for other in every if it.covers(other)) == covered[at]


def test_a_folder_that_cannot_be_written(tmp_path: Path, sound: Path, blastdoor_audit: Audit) -> None:
    """What was found is told all the same; --out fails with one line, after it."""
    (sound / ".blastdoor").write_text("no folder")
    (tmp_path / "taken").write_text("no folder")
    out = str(tmp_path / "taken" / "found")
    result = blastdoor_audit(str(sound), "--only", "zeros", "--json", "--runs", "2", "--out", out)
    assert json.loads(result.stdout)["good"] is True
    assert "not kept for campaigns to tell" in result.stderr
    assert isinstance(result.exception, click.UsageError)
    assert "name a folder that can be written" in str(result.exception)


def test_a_kept_file_that_is_none(sound: Path) -> None:
    """A pipe, a folder, too much, or anybody's bytes: there is no audit, and nobody waits for one."""
    place = place_of(sound)
    place.parent.mkdir()
    os.mkfifo(place)
    with pytest.raises(NoAudit, match="no plain file"):
        read_audit(place)
    for data in (b"", b"[]", b"\xff", b"[" * 100_000, b" " * (17 << 20)):
        place.unlink()
        place.write_bytes(data)
        assert kept_audit(sound) is None


LEAKY = JUDGE.replace("publish(-sum", "publish(9.0 if len(values) > 3 else -sum").replace(
    " or len(values) != len(right)", ""
)
CHEAT = "=== change: more numbers than were asked for\n" + whole(BETTER.replace("3.4]", "3.4, 0.0]"))


def written(folder: Path, *more: str) -> Path:
    metric = METRIC.replace("ceiling = -0.01\n", "")
    return write_task(folder, metric, CHEAP + "context = 6000\n", *more, files={"judge/judge.py": LEAKY})


async def asked(folder: Path, settings: Settings, **flags: Any) -> ModelCheats:
    async with Stage().site() as site:
        return await ask_for_cheats(folder, site, settings, Flags(**flags), lambda _: None)


async def test_a_model_is_asked(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It is told to cheat, within the attempts given; what a search would have kept is a hole, as a change."""
    messages_server.play(Reply((Text(CHEAT),)))
    folder = written(tmp_path)
    before = sorted(folder.rglob("*"))
    cheats = await asked(folder, settings_for(messages_server), attempts=1)
    ((found,), judged) = cheats.found, cheats.judged
    assert judged == 1
    assert (found.way, found.values["score"]) == ("a model: more numbers than were asked for", 9.0)
    assert found.change
    assert "+values = [1.0, 2.0, 3.4, 0.0]" in found.change
    assert len(messages_server.requests) == 1
    assert "solving nothing" in json.dumps(messages_server.requests[0].body)
    assert sorted(folder.rglob("*")) == before, "nothing of it is left"


async def test_a_model_that_proposes_nothing(tmp_path: Path, messages_server: MessagesServer) -> None:
    """An answer that holds no change, and one that may not be applied, never come before the judge."""
    messages_server.play(Reply((Text("I would rather not."),)), Reply((Text("judge/judge.py\n```\npass\n```\n"),)))
    cheats = await asked(written(tmp_path), settings_for(messages_server), attempts=2)
    assert (cheats.found, cheats.judged) == ((), 0)


async def test_no_model_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages_server: MessagesServer
) -> None:
    """Without a key, or with nothing to spend, the usual line says what to do before a question is asked."""
    with pytest.raises(TaskError, match="a cap of 0 usd leaves nothing to ask a model with"):
        await asked(written(tmp_path), settings_for(messages_server), usd=0.0)
    assert not messages_server.requests
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TaskError, match="there is no key for one"):
        await asked(written(tmp_path), Settings())
