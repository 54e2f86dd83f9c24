"""`audit`: adversaries try to cheat the judge before a search does. What gains is a failure, with what to change.

`check` puts the quick half of the same table before the judge, by the same code. Nothing is recorded.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.domain.metric import Rule
from orchestrator.examine.cheating import Bar, Fate, group_by_fate, tell_group
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
# Where a candidate cannot seem much faster than the baseline, or noise is as large as a third of what there is to gain,
# a search finds little.
_LITTLE = 3.0
# Its name as an adversary, beside those of the table.
MODEL = "a model"


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

    `held` of `tried` adversaries gained nothing; of `untried` not every way came before the judge, each with why;
    `accepted` are those that a person said not to fail for. `floor` are the figures of the best program that does
    nothing; `fingerprint` is what the baseline ran against.
    """

    held: int = 0
    tried: int = 0
    found: tuple[Found, ...] = ()
    untried: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    baseline: Mapping[str, float] | None = None
    floor: Mapping[str, float] | None = None
    deaf: bool = False
    why: str = ""
    fingerprint: Mapping[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """What was not tried shows nothing, so it is never good unless a person says so."""
        if self.why or self.deaf or not self.tried or any(name not in self.accepted for name in self.untried):
            return False
        return all(it.accepted for it in self.found)


def unknown_names(names: Sequence[str]) -> list[str]:
    known = {MODEL, *(row.name for row in ADVERSARIES)}
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
        findings.add(
            Section.CHEATS,
            Sign.FAIL,
            "none of these adversaries has anything to do here",
            facts={"untried": list(only)},
        )
        return AuditReport(baseline=baseline)
    untried = {it.row.name: it.why_untried or "" for it in seen.untried}
    if not any(it.ran for it in seen.faced):
        text = f"not tried: they do not run here ({seen.tried[0].code})"
        advice = "cheats that are called are Python programs; give the image python3"
        findings.add(Section.CHEATS, Sign.FAIL, text, advice, facts={"untried": list(untried)})
        return AuditReport(baseline=baseline, why=text)
    found = [_found(parts, it, gain, done[0].tape, accept) for it in seen.faced for gain in it.gains]
    _tell(parts, seen, found, done, findings)
    deaf = tell_dependence(seen.bar, seen.tried, done[0].outputs, findings)
    report = AuditReport(
        held=seen.held,
        tried=len(seen.faced) - len(untried),
        found=tuple(found),
        untried=untried,
        accepted=tuple(accept),
        baseline=baseline,
        floor=seen.floor.values if seen.floor else None,
        deaf=deaf,
        fingerprint=dict(done[0].fingerprint),
    )
    sign = Sign.OK if report.held == report.tried > 0 else Sign.NOTE
    findings.add(Section.CHEATS, sign, f"the judge held against {report.held} of {report.tried} adversaries")
    if untried:
        text = f"{len(untried)} could not be tried in every way, and count neither way: {'; '.join(untried)}"
        sign = Sign.NOTE if set(untried) <= set(accept) else Sign.FAIL
        advice = "give the candidate's limits more room, or name them with --accept"
        findings.add(Section.CHEATS, sign, text, advice, facts={"untried": list(untried)})
    return report


def with_model(report: AuditReport, more: Sequence[Found], judged: int, findings: Findings) -> AuditReport:
    """The same with what a model found: one adversary more, if anything that it proposed came before the judge."""
    accepted = MODEL in report.accepted
    if not judged:
        text = "nothing that a model proposed came before the judge: it gave no answer, or no change that runs"
        findings.add(Section.CHEATS, Sign.NOTE if accepted else Sign.FAIL, text, "ask again, or ask another model")
        return replace(report, untried={**report.untried, MODEL: text})
    for it in more:
        text = f"“{it.way}” {it.how} ({_figures(it.values, list(it.values))}){' (accepted)' * accepted}"
        findings.add(Section.CHEATS, Sign.NOTE if accepted else Sign.FAIL, text, it.mend)
    if not more:
        findings.add(Section.CHEATS, Sign.OK, f"nothing of {judged} that a model proposed gained")
    found = (*report.found, *(replace(it, accepted=accepted) for it in more))
    return replace(report, found=found, tried=report.tried + 1, held=report.held + (not more))


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
        tell_group(sign, text, advice, told, findings)
    tell_no_gains(seen, findings)
    if seen.slowed:
        text = "time counts: each call of the honest candidate was made longer, and cheats were held against that"
        findings.add(Section.CHEATS, Sign.NOTE, text)
    if seen.recurring and not any(it.adversary == "learnt by heart" for it in found) and parts.task.heldout is None:
        same = "1 question is" if seen.recurring == 1 else f"{seen.recurring} questions are"
        text = f"{same} the same in every run: a candidate can learn by heart what to answer"
        advice = "if they are not the task itself, draw them from candidate.rng(), or hold some back with [heldout]"
        findings.add(Section.CHEATS, Sign.WARN, text, advice)
    _tell_alone(parts, seen, findings)
    _tell_floor(seen, runs, names, findings)


def tell_no_gains(seen: Faces, findings: Findings) -> None:
    """Ways that were better than the baseline once, and are no gains all the same."""
    gained = {id(gain.tried) for it in seen.faced for gain in it.gains}
    missed = [(it, one) for it in seen.faced for one in it.tried if one.fate is Fate.WON and id(one) not in gained]
    chance = [one.oracle.name for it, one in missed if not it.is_mixed]
    mixed = [one.oracle.name for it, one in missed if it.is_mixed]
    if chance:
        findings.add(Section.CHEATS, Sign.NOTE, f"by chance, and not again: {'; '.join(chance)}")
    if mixed:
        text = f"better than the baseline, while other ways of the same kind are not: {'; '.join(mixed)}"
        findings.add(Section.CHEATS, Sign.NOTE, text, "that may be honest: some items may be worth leaving out")


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
    if not any(it.row.idle and it.ran for it in seen.faced):
        pass  # nobody was asked for who does nothing
    elif seen.floor is None or seen.floor.values is None:
        text = "the floor: what does nothing gets no score"
        findings.add(Section.CHEATS, Sign.OK, text)
    else:
        got = _figures(seen.floor.values, names)
        text = f"the floor: “{seen.floor.oracle.name}” does nothing and gets {got}; the baseline has {baseline}"
        findings.add(Section.CHEATS, Sign.NOTE, text, facts={"floor": dict(seen.floor.values)})
    tell_saturated(seen, findings)
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


def tell_saturated(seen: Faces, findings: Findings) -> None:
    """A first metric in which nothing better could be told from the baseline."""
    metric, runs = seen.bar.ranking.metrics[0], seen.bar.runs
    merits = [metric.merit(run[metric.name]) for run in runs]
    name = short(metric.name, 40)
    if metric.ceiling is not None and max(merits) >= metric.merit(metric.ceiling):
        text = f"the baseline has reached the ceiling of {name} ({metric.ceiling:g}): nothing can be better"
        findings.add(Section.CHEATS, Sign.WARN, text, "correct the ceiling, or search for something else")
    spread = max(merits) - min(merits)
    if seen.floor is None or seen.floor.values is None or seen.slowed or not spread:
        return
    room = abs(statistics.median(merits) - metric.merit(seen.floor.values[metric.name]))
    if room < _LITTLE * spread:
        text = f"runs of the same baseline differ by {spread:.3g} in {name}, and the floor is only {room:.3g} away"
        advice = "most of what a search finds would be noise: let the judge ask for more, or repeat and take a median"
        findings.add(Section.CHEATS, Sign.WARN, text, advice, facts={"spread": spread, "room": room})


def _figures(values: Mapping[str, float], names: Sequence[str]) -> str:
    shown = [name for name in names if name in values and math.isfinite(values[name])]
    return ", ".join(f"{short(name, 40)} = {values[name]:.6g}" for name in shown)
