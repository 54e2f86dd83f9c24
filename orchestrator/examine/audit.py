"""`audit`: adversaries try to cheat the judge before a search does. What gains is a failure, with what to change.

`check` puts the quick half of the same table before the judge, by the same code. Nothing is recorded.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.metric import Rule
from orchestrator.examine.cheating import Bar, Fate, group_by_fate
from orchestrator.examine.checkup import make_runs, never_called
from orchestrator.examine.dependence import tell_dependence, try_wrecks
from orchestrator.examine.facing import Faced, Faces, Gain, face
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.examine.reproducing import reproduction
from orchestrator.judge.adversaries import ADVERSARIES
from orchestrator.judge.tape import Tape
from orchestrator.loop.rehearsal import Rehearsal
from orchestrator.loop.workbench import Parts
from orchestrator.text import short

# Noise is known better by a few more runs, where there is any.
_MORE_RUNS = 3
# Where a candidate cannot seem much faster than the baseline, a search for speed finds little.
_LITTLE = 3.0


@dataclass(frozen=True)
class Found:
    """A way to cheat that gained: what it got, what to change in the judge, and a change for `gate` that does it."""

    adversary: str
    way: str
    how: str
    values: Mapping[str, float]
    mend: str
    change: str | None
    accepted: bool = False


@dataclass(frozen=True)
class AuditReport:
    """What the judge is worth against those who cheat. `why` says why nothing could be tried, where that is so.

    `held` of `tried` adversaries gained nothing. `floor` are the figures of the best program that does nothing.
    """

    held: int = 0
    tried: int = 0
    found: tuple[Found, ...] = ()
    baseline: Mapping[str, float] | None = None
    floor: Mapping[str, float] | None = None
    deaf: bool = False
    why: str = ""

    @property
    def good(self) -> bool:
        return not self.why and not self.deaf and all(it.accepted for it in self.found)


def unknown_names(names: Sequence[str]) -> list[str]:
    known = {row.name for row in ADVERSARIES}
    return [name for name in names if name not in known]


async def audit(
    parts: Parts,
    findings: Findings,
    *,
    runs: int = 3,
    quick: bool = False,
    only: Sequence[str] = (),
    accept: Sequence[str] = (),
    width: int = 4,
) -> AuditReport:
    """Run the baseline, then every adversary that fits. Raises Unavailable when the engine fails."""
    done = await make_runs(parts, max(2, runs), findings)
    if not done:
        return AuditReport(why="the baseline does not score")
    baseline = done[0].verdict.metrics if done[0].verdict else {}
    if not parts.tier.terms.hides_gold:
        text = "judge and candidate share a chamber: a candidate needs no cheat but a result file of its own"
        findings.add(Section.CHEATS, Sign.FAIL, text, 'move the judge out with judge.mode = "data" or "relay"')
        await try_wrecks(parts, done, findings)
        return AuditReport(baseline=baseline, why=text)
    if never_called(done[0]):
        return AuditReport(baseline=baseline, why="the judge calls nobody")
    done = await _with_noise(parts, done, findings)
    seen = await face(parts, done, findings, width, quick=quick, only=only)
    if not seen.tried:
        findings.add(Section.CHEATS, Sign.WARN, "none of these adversaries has anything to do here")
        return AuditReport(baseline=baseline)
    if parts.tier.terms.calls and all(one.fate is Fate.KEPT_OUT for one in seen.tried):
        text = f"not tried: they do not run here ({seen.tried[0].code})"
        findings.add(
            Section.CHEATS, Sign.FAIL, text, "cheats that are called are Python programs; give the image python3"
        )
        return AuditReport(baseline=baseline, why=text)
    found = [_found(parts, it, gain, done[0].tape, accept) for it in seen.faced for gain in it.gains]
    _tell(parts, seen, found, done, findings)
    deaf = tell_dependence(seen.bar, seen.tried, done[0].outputs, findings)
    report = AuditReport(
        held=seen.held,
        tried=len(seen.faced),
        found=tuple(found),
        baseline=baseline,
        floor=seen.floor.values if seen.floor else None,
        deaf=deaf,
    )
    sign = Sign.NOTE if report.held < report.tried else Sign.OK
    findings.add(Section.CHEATS, sign, f"the judge held against {report.held} of {report.tried} adversaries")
    return report


def with_found(report: AuditReport, more: Sequence[Found], findings: Findings) -> AuditReport:
    """The same with what somebody else found: one adversary more."""
    for it in more:
        findings.add(
            Section.CHEATS, Sign.FAIL, f"“{it.way}” {it.how} ({_figures(it.values, list(it.values))})", it.mend
        )
    if not more:
        findings.add(Section.CHEATS, Sign.OK, "nothing that a model proposed gained")
    return replace(report, found=(*report.found, *more), tried=report.tried + 1, held=report.held + (not more))


async def _with_noise(parts: Parts, done: list[Rehearsal], findings: Findings) -> list[Rehearsal]:
    """A few runs more, where the baseline's own scores differ."""
    scores = {tuple(run.verdict.metrics.get(it.name) for it in parts.ranking.metrics) for run in done if run.verdict}
    if len(scores) == 1:
        return done
    more = await make_runs(parts, _MORE_RUNS, findings, again=True)
    text = f"the baseline's score differs from run to run: a cheat must gain by more than that, {len(done)} times over"
    findings.add(Section.NOISE, Sign.NOTE, text)
    return [*done, *more]


def _found(parts: Parts, it: Faced, gain: Gain, tape: Tape | None, accept: Sequence[str]) -> Found:
    one = gain.tried
    return Found(
        adversary=it.row.name,
        way=one.oracle.name,
        how=gain.how,
        values=dict(one.values or {}),
        mend=it.row.why,
        change=reproduction(parts, one.oracle, tape),
        accepted=it.row.name in accept,
    )


def _tell(parts: Parts, seen: Faces, found: Sequence[Found], runs: Sequence[Rehearsal], findings: Findings) -> None:
    names = [metric.name for metric in parts.ranking.metrics]
    for it in found:
        sign = Sign.NOTE if it.accepted else Sign.FAIL
        text = f"“{short(it.way, 80)}” {it.how} ({_figures(it.values, names)}){' (accepted)' * it.accepted}"
        facts = {"adversary": it.adversary, "way": it.way, "metrics": dict(it.values), "mend": it.mend}
        findings.add(Section.CHEATS, sign, text, it.mend, facts=facts)
    gained = {it.way for it in found}
    for sign, text, advice, told in group_by_fate([one for one in seen.tried if one.oracle.name not in gained]):
        findings.add(Section.CHEATS, sign, text, advice, facts={"cheats": told})
    if seen.slowed:
        text = "time counts: each call of the honest candidate was made longer, and cheats were held against that"
        findings.add(Section.CHEATS, Sign.NOTE, text)
    if seen.recurring and not any(it.adversary == "learnt by heart" for it in found) and parts.task.heldout is None:
        text = f"{seen.recurring} questions are the same in every run: a candidate can learn their answers by heart"
        advice = "if they are not the task itself, draw them from candidate.rng(), or hold some back with [heldout]"
        findings.add(Section.CHEATS, Sign.WARN, text, advice)
    _tell_alone(parts, seen, findings)
    _tell_floor(seen, runs, names, findings)


def _tell_alone(parts: Parts, seen: Faces, findings: Findings) -> None:
    """Metrics, of several, in which something that did not gain is better than every run of the baseline."""
    metrics = parts.ranking.metrics
    told: dict[str, str] = {}
    for one in seen.tried:
        if one.fate is Fate.NO_BETTER and one.values is not None and len(metrics) > 1:
            for metric in metrics:
                if Bar(replace(parts.ranking, metrics=[metric], rule=Rule.LEXICOGRAPHIC), seen.bar.runs).passed(
                    one.values
                ):
                    told.setdefault(metric.name, one.oracle.name)
    for name, way in told.items():
        text = f"in {short(name, 40)} alone, “{short(way, 80)}” is better than the baseline"
        kept = parts.ranking.rule is not Rule.LEXICOGRAPHIC
        advice = "by weights or Pareto that may be enough: give valid = false to what is no solution" if kept else ""
        findings.add(Section.CHEATS, Sign.WARN if kept else Sign.NOTE, text, advice)


def _tell_floor(seen: Faces, runs: Sequence[Rehearsal], names: Sequence[str], findings: Findings) -> None:
    """What a program gets that does nothing, and how much faster one could seem at most."""
    baseline = _figures(seen.bar.runs[0], names)
    if seen.floor is None or seen.floor.values is None:
        text = "the floor: what does nothing gets no score"
        findings.add(Section.CHEATS, Sign.OK, text)
    else:
        got = _figures(seen.floor.values, names)
        text = f"the floor: “{seen.floor.oracle.name}” does nothing and gets {got}; the baseline has {baseline}"
        findings.add(Section.CHEATS, Sign.NOTE, text, facts={"floor": dict(seen.floor.values)})
    calibration = runs[0].calibration
    if not seen.slowed or calibration is None or not calibration.call_s or not calibration.median_s:
        return
    most = calibration.call_s / calibration.median_s
    text = f"a call takes {calibration.call_s:.2g} s and an empty one {calibration.median_s:.2g} s:"
    text += f" no candidate can seem more than {most:.2g} times as fast"
    advice = (
        "let the judge ask for more work in one call: most of what it times is the way there" if most < _LITTLE else ""
    )
    findings.add(Section.CHEATS, Sign.WARN if most < _LITTLE else Sign.NOTE, text, advice, facts={"headroom": most})


def _figures(values: Mapping[str, float], names: Sequence[str]) -> str:
    shown = [name for name in names if name in values and math.isfinite(values[name])]
    return ", ".join(f"{short(name, 40)} = {values[name]:.6g}" for name in shown)
