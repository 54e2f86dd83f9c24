"""`check`: is the task wired right, how noisy is it, what does a run cost, and does its judge hold?

Nothing is recorded. A baseline that does not score ends the examination: there is nothing to compare with then.
"""

import re
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.change import File, Tree
from orchestrator.domain.metric import Goal
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.examine.cheating import Fate, tell_cheats
from orchestrator.examine.dependence import tell_dependence, try_wrecks
from orchestrator.examine.facing import face
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.examine.probes import LookedAround, look_around, new_canary
from orchestrator.judge.unsafe import unsafe_loaders
from orchestrator.loop.guards import guard_record, run_guard
from orchestrator.loop.rehearsal import NO_OUTPUT, Rehearsal, rehearse
from orchestrator.loop.relaying import untold
from orchestrator.loop.workbench import Free, Parts
from orchestrator.offload import offload
from orchestrator.task import GuardSpec
from orchestrator.text import short
from sandbox import Refused, Unavailable

# In notes: a name for what went wrong that has a value. A number alone is a measure, and no failure.
FAILURE = re.compile(
    r"""
    \b(?: \w*error\w* | stderr | exceptions? | failures? ) (?:\[\w*\])? ['"]? \s*+ [:=] \s*+
    (?! b?['"]? (?: (?:none|null|no|no\ errors?|false|n/?a|nan|[+-]?inf|[+-]?[0-9][0-9.e+-]*(?:\s?[a-z%]{1,3})?)
        | \[\] | \{\} | \(\) )? ['"]? \s* (?: $ | [,;(\])}] ) )
    | \b(?: success\w* | correct | passed ) ['"]? \s* [:=] \s* ['"]?false\b
    | \bstatus ['"]? \s* [:=] \s* ['"]?(?:fail|error)
    | \bnot\ found\b | \bno\ such\ file\b | \btraceback\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Checkup:
    """What was measured; empty where the baseline does not score."""

    runs: tuple[Rehearsal, ...] = ()
    seen: LookedAround = field(default_factory=LookedAround)
    tuned: Rehearsal | None = None


async def make_or_tell(making: Awaitable[Parts], findings: Findings) -> Parts | None:
    """The parts, or a row that says why there are none: an image that cannot be baked, an input that is refused."""
    findings.doing("images and inputs")
    try:
        return await making
    except Refused as error:
        findings.add(Section.WIRING, Sign.FAIL, f"images, inputs or GPUs cannot be had: {error}")
        return None


async def check_wiring(parts: Parts, runs: int, findings: Findings) -> Checkup:
    """The baseline, so many times; then the cheaper target, every guard, and a look around in its chamber."""
    tell_images(parts, findings)
    done = await make_runs(parts, runs, findings)
    if not done:
        return Checkup()
    tuned = await _check_tuning(parts, findings) if parts.task.tune else None
    if parts.task.heldout:
        await _check_heldout(parts, done[0], findings)
    for spec in parts.task.guards:
        await _check_guard(parts, spec, done[0], findings)
    return Checkup(tuple(done), await _search_for_gold(parts, done, findings), tuned)


async def make_runs(parts: Parts, runs: int, findings: Findings, *, again: bool = False) -> list[Rehearsal]:
    """The baseline, so many times; nothing where one of them does not score. `again`: it was told of before."""
    done: list[Rehearsal] = []
    for number in range(1, runs + 1):
        findings.doing(f"the baseline: run {number} of {runs}")
        done.append(await rehearse(parts))
        if number == 1 and not again:
            if not tell_first(parts, done[0], findings):
                return []
        elif not done[-1].scored:
            findings.add(
                Section.WIRING,
                Sign.FAIL,
                f"run {number} of the same baseline did not score: {why_not(done[-1])}",
                "a task that fails now and then fails honest candidates too",
                log=done[-1].log,
            )
            return []
    return done


def tell_images(parts: Parts, findings: Findings) -> None:
    for what, image in (("the candidate's", parts.jobs.image), ("the judge's", parts.jobs.judge_image)):
        text = f"{what} image is there: {image.name}"
        findings.add(Section.WIRING, Sign.OK, text, facts={"image": image.name, "digest": image.digest})


def tell_first(parts: Parts, run: Rehearsal, findings: Findings) -> bool:
    """Whether the baseline scores; where it does not, with the log that says most."""
    if run.ending is not None:
        text = f"the baseline does not run: {run.ending}: {run.reason}"
        findings.add(Section.WIRING, Sign.FAIL, text, _advice(parts, run), log=run.log)
        return False
    findings.add(Section.WIRING, Sign.OK, _what_it_did(run))
    if not run.scored or run.verdict is None:
        log = run.judgement.log if run.judgement else b""
        findings.add(Section.WIRING, Sign.FAIL, f"the judge gives no score: {why_not(run)}", log=log)
        return False
    values = dict(run.verdict.metrics)
    findings.add(Section.WIRING, Sign.OK, f"the judge scores it: {_scores(parts, values)}", facts={"metrics": values})
    _tell_calls("the judge", run, findings)
    _tell_features(parts, run.verdict, findings)
    if why := untold(run.verdict, run.calibration):
        findings.add(Section.WIRING, Sign.FAIL, f"nothing faster could be told from the baseline: {why}")
    if said := named_failure(parts, run):
        text = f"the baseline gets the score of a failure: {said}"
        findings.add(Section.WIRING, Sign.FAIL, text, "mend what failed, or start from a program that scores")
    elif _is_zero(parts, run):
        notes = short(run.verdict.notes, 300)
        text = f"the baseline scores 0{f', and the judge says: {notes}' if notes else ''}"
        advice = "no change may be able to better it, if that is what failed; see that a better program scores more"
        findings.add(Section.WIRING, Sign.WARN, text, advice)
    if run.verdict.suspect:
        text = f"the baseline itself is beyond the ceiling of {', '.join(run.verdict.suspect)}"
        findings.add(Section.WIRING, Sign.FAIL, text, "nothing could ever be kept; correct the ceiling, or the goal")
    if caveat := parts.tier.terms.caveat:
        findings.add(Section.WIRING, Sign.WARN, f"tier {caveat}", 'move the judge out with judge.mode = "data"')
    return True


def named_failure(parts: Parts, run: Rehearsal) -> str:
    """What a judge says that failed beside a score of 0 or less; nothing where it says nothing, or lower is better."""
    score = _score_where_higher_is_better(parts, run)
    if run.verdict is None or score is None or score > 0:
        return ""
    lines = (line for line in run.verdict.notes.splitlines() if FAILURE.search(line))
    return short(next(lines, ""), 300)


def _is_zero(parts: Parts, run: Rehearsal) -> bool:
    """Whether its score is what most judges give a failure, too."""
    return _score_where_higher_is_better(parts, run) == 0


def _score_where_higher_is_better(parts: Parts, run: Rehearsal) -> float | None:
    metric = parts.task.metrics[0].metric()
    if run.verdict is None or metric.goal is not Goal.HIGHER:
        return None
    return run.verdict.metrics.get(metric.name)


def _tell_features(parts: Parts, verdict: Verdict, findings: Findings) -> None:
    """Whether the judge reports what the task's archive is a grid over."""
    archive = parts.task.search.archive
    told = (*verdict.metrics, *verdict.tasks)
    if missing := [name for name in (archive.features if archive else ()) if name not in told]:
        text = f"search.archive.features: the judge reports no {missing[0]}, only {_few(told)}"
        findings.add(Section.WIRING, Sign.WARN, text, "without it no candidate has a cell; report it, or name another")


def _tell_calls(who: str, run: Rehearsal, findings: Findings) -> None:
    """Where a judge is to call, whether it does."""
    if never_called(run):
        text = f"{who} never calls the candidate: the score cannot depend on it"
        findings.add(Section.WIRING, Sign.FAIL, text, "ask it something: candidate.call, or candidate.time for a time")


def never_called(run: Rehearsal) -> bool:
    return run.calibration is not None and run.calibration.calls == 0


def _advice(parts: Parts, run: Rehearsal) -> str:
    if run.outputs and parts.task.trial.outputs:
        return f"trial.outputs names nothing of what it left: {_few(run.outputs)}"
    if run.reason == NO_OUTPUT:
        return "let it write into the folder that $BLASTDOOR_OUT names"
    return "its log is below" if run.log else ""


def _what_it_did(run: Rehearsal) -> str:
    if run.calibration is None:
        return f"the baseline runs and leaves {_few(run.outputs)}"
    channel = f"an empty call takes {run.calibration.median_s:.2g} s, give or take {run.calibration.jitter_s:.2g} s"
    times = "once" if run.calibration.calls == 1 else f"{run.calibration.calls} times"
    call = f"; a call takes {run.calibration.call_s:.2g} s with it" if run.calibration.call_s is not None else ""
    return f"the baseline loads and the judge calls it {times}; {channel}{call}"


def _few(names: Collection[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(short(name, 40) for name in list(names)[:5]) + more


def _scores(parts: Parts, values: Mapping[str, float]) -> str:
    return ", ".join(f"{metric.name} = {values[metric.name]:.6g}" for metric in parts.ranking.metrics)


def why_not(run: Rehearsal) -> str:
    """Why a rehearsal has no verdict to rank, with the judge's own words: they are for its author."""
    if run.ending is not None:
        return f"{run.ending}: {run.reason}"
    if run.judgement and run.judgement.result is None:
        detail = short(run.judgement.detail, 300)
        return f"{run.judgement.fault}: {detail}" if detail else str(run.judgement.fault)
    if run.verdict and not run.verdict.valid:
        return f"it says that the baseline is no solution: {short(run.verdict.notes, 300) or 'without a reason'}"
    known = ", ".join(short(name, 40) for name in (run.verdict.metrics if run.verdict else {}))
    return f"the metric {run.missing[0]} is declared, but the result has only {known}"


async def _check_tuning(parts: Parts, findings: Findings) -> Rehearsal:
    findings.doing("the cheaper target")
    run = await rehearse(parts, Mode.TUNE)
    if run.scored and run.verdict:
        text = f"the cheaper target scores too: {_scores(parts, run.verdict.metrics)} in {run.clock_s:.1f} s"
        findings.add(Section.WIRING, Sign.OK, text)
        _tell_calls("for the cheaper target, the judge", run, findings)
    else:
        log = run.judgement.log if run.judgement else run.log
        text = f"the cheaper target does not score: {why_not(run)}"
        findings.add(Section.WIRING, Sign.FAIL, text, "correct [tune], or take it out", log=log)
    return run


async def _check_heldout(parts: Parts, first: Rehearsal, findings: Findings) -> None:
    """Whether it works; what the baseline scores there is not told, here no more than anywhere."""
    findings.doing("the held-out split")
    run = await rehearse(parts, Mode.HELDOUT)
    if run.scored:
        findings.add(Section.WIRING, Sign.OK, "the held-out split scores the baseline, too")
        _tell_calls("on the held-out split, the judge", run, findings)
        scores = [[it.verdict.metrics[m.name] for m in parts.ranking.metrics] for it in (first, run) if it.verdict]
        if scores[0] == scores[-1]:
            text = "the baseline scores exactly the same on the held-out split: it may be the development split"
            advice = "see that the judge heeds what [heldout] changes: judge, env or inputs"
            findings.add(Section.WIRING, Sign.WARN, text, advice)
    else:
        log = run.judgement.log if run.judgement else run.log
        text = f"the held-out split does not score the baseline: {why_not(run)}"
        findings.add(Section.WIRING, Sign.FAIL, text, "correct [heldout], or take it out", log=log)


async def _check_guard(parts: Parts, spec: GuardSpec, run: Rehearsal, findings: Findings) -> None:
    findings.doing(f"guard {spec.name}")
    try:
        checked = await run_guard(parts, guard_record(spec), parts.jobs.snapshot.tree, run.outputs)
    except Free as error:
        raise Unavailable(str(error)) from error
    if checked.passed:
        findings.add(Section.WIRING, Sign.OK, f"the guard {spec.name} passes on the baseline")
    else:
        text = f"the guard {spec.name} does not pass on the baseline: {checked.reason}"
        advice = "no candidate could pass it either"
        findings.add(Section.WIRING, Sign.FAIL, text, advice, log=checked.log)


async def _search_for_gold(parts: Parts, runs: Sequence[Rehearsal], findings: Findings) -> LookedAround:
    """A canary goes to the judge with the gold; then the candidate's chamber is searched for it."""
    canary = new_canary()
    if parts.tier.terms.hides_gold:
        findings.doing("a canary beside the gold")
        await parts.judge_mode.judge_again(with_canary(parts, canary), runs[0].outputs)
    findings.doing("a look around in the candidate's chamber")
    return await look_around(parts, canary)


def with_canary(parts: Parts, canary: str) -> Parts:
    """The same parts, whose judge has one file more among its gold; in memory only."""
    snapshot = parts.jobs.snapshot
    folder = next(iter(snapshot.gold), "gold/x").rpartition("/")[0]
    name = f"{folder}/.blastdoor-canary" if folder else ".blastdoor-canary"
    gold = Tree({**snapshot.gold, name: File(canary.encode())})
    return replace(parts, judge=replace(parts.judge, files=parts.judge_mode.files(snapshot.judge, gold)))


async def check_judge(parts: Parts, found: Checkup, findings: Findings, *, cheats: bool, width: int) -> None:
    """The judge against cheats, and its code against what would run a candidate's output."""
    if not parts.tier.terms.hides_gold:
        text = "not tried: in one chamber with the judge, a candidate needs no cheat but a result file of its own"
        findings.add(Section.CHEATS, Sign.WARN, text)
        if cheats:
            await try_wrecks(parts, found.runs, findings)
    elif cheats and never_called(found.runs[0]):
        findings.add(Section.CHEATS, Sign.NOTE, "not tried: the judge calls nobody")
    elif cheats:
        seen = await face(parts, found.runs, findings, width, quick=True)
        if parts.tier.terms.calls and all(one.fate is Fate.NOT_RUN for one in seen.tried):
            text = f"not tried: they do not run in the candidate's image ({seen.tried[0].code})"
            findings.add(
                Section.CHEATS, Sign.WARN, text, "they are Python programs; give the image python3 to try them"
            )
        else:
            tell_cheats(seen.tried, findings)
            tell_dependence(seen.bar, seen.tried, found.runs[0].outputs, findings)
    else:
        findings.add(Section.CHEATS, Sign.WARN, "not tried, as you said", "try them once before a long campaign")
    await check_code(parts, findings)


async def check_code(parts: Parts, findings: Findings) -> None:
    code = {path: file.data for path, file in parts.jobs.snapshot.judge.items()}
    unsafe = await offload(unsafe_loaders, code)
    for it in unsafe:
        place = f"{short(it.path, 80)}:{it.line}"
        findings.add(
            Section.JUDGE, Sign.WARN, f"{place} {it.what}", it.instead, facts={"path": it.path, "line": it.line}
        )
    if not unsafe:
        text = "nothing in it unpickles, imports or runs what a candidate left, as far as reading Python tells"
        findings.add(Section.JUDGE, Sign.OK, text)
