"""From a few runs of the baseline: how far its scores spread, what a campaign will cost, and which limit is near."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.budget import Account, Amounts
from orchestrator.domain import figures
from orchestrator.domain.certify import Certify
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.verdict import Mode
from orchestrator.examine.checkup import Checkup
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.loop.money import worst_of_search
from orchestrator.loop.rehearsal import Rehearsal
from orchestrator.loop.width import Shape
from orchestrator.loop.workbench import Parts
from orchestrator.units import format_size
from orchestrator.wiring.options import Options

_NEAR = 0.8
_BUSY = 0.8


@dataclass(frozen=True)
class Expected:
    """What a campaign on this task would run with. `refused` says why there is no shape."""

    options: Options
    shape: Shape | None
    refused: str = ""


def tell_noise(ranking: Ranking, certify: Certify, runs: Sequence[Rehearsal], findings: Findings) -> None:
    for metric in ranking.metrics:
        values = [run.verdict.metrics[metric.name] for run in runs if run.verdict]
        _tell_spread(metric, values, certify.noisy, findings)
    if len(runs) < 2:
        return
    scores = [[run.verdict.metrics[it.name] for it in ranking.metrics] for run in runs if run.verdict]
    same_scores = all(it == scores[0] for it in scores)
    if not same_scores and not certify.noisy:
        text = 'certify.rule is "strict", but the baseline does not get the same score twice: luck would be kept'
        findings.add(Section.NOISE, Sign.WARN, text, 'set certify.rule = "noisy", or take the noise out')
    if runs[0].calibration:
        if not same_scores:
            text = "each run draws inputs of its own, and times are what they are: nothing here is the same twice"
            findings.add(Section.NOISE, Sign.NOTE, text)
        return
    same_outputs = all(run.outputs == runs[0].outputs for run in runs)
    if same_outputs and not same_scores:
        text = "the outputs are the same in every run, so the noise is the judge's own"
        advice = "" if certify.noisy else "give the judge a fixed seed: the same outputs deserve one score"
        findings.add(Section.NOISE, Sign.NOTE if certify.noisy else Sign.WARN, text, advice)
    elif not same_outputs:
        findings.add(
            Section.NOISE, Sign.NOTE, "the outputs differ from run to run: the baseline itself is not the same"
        )


def _tell_spread(metric: Metric, values: Sequence[float], is_expected: bool, findings: Findings) -> None:
    """`is_expected`: the task says itself that scores differ, and is certified by repeats."""
    low, high = min(values), max(values)
    facts = {"metric": metric.name, "values": list(values)}
    if len(values) < 2:
        text = f"{metric.name} = {figures.score(low)} in the only run; nothing is known about its spread"
        findings.add(Section.NOISE, Sign.NOTE, text, "use --runs 3 or more", facts=facts)
    elif low == high:
        text = f"{metric.name} = {figures.score(low)} in all {len(values)} runs"
        findings.add(Section.NOISE, Sign.OK, text, facts=facts)
    else:
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        text = (
            f"{metric.name} = {figures.score(mean)} ± {deviation:.2g} "
            f"({figures.score(low)} to {figures.score(high)} in {len(values)} runs)"
        )
        if is_expected:
            text += '; certify.rule = "noisy" repeats a candidate until an improvement is proven'
            findings.add(Section.NOISE, Sign.OK, text, facts=facts)
            return
        advice = f"an improvement of less than {2 * deviation:.2g} may be luck; fix a seed, or average in the judge"
        findings.add(Section.NOISE, Sign.WARN, text, advice, facts=facts)


def tell_cost(parts: Parts, found: Checkup, expected: Expected, findings: Findings) -> None:
    runs = found.runs
    clock = statistics.median(run.clock_s for run in runs)
    trial_s = statistics.median(run.spent.milliseconds / 1000 for run in runs)
    judge_s = statistics.median(run.judge_s for run in runs)
    micro = max(run.total.microdollars for run in runs)
    text = f"one run takes {_s(clock)} on the clock; in chambers, the trial {_s(trial_s)} and the judge {_s(judge_s)}"
    findings.add(Section.COST, Sign.OK, text, facts={"clock_s": clock, "trial_s": trial_s, "judge_s": judge_s})
    where = f"at the rates of {parts.jobs.backend}"
    price = f"it costs {figures.dollars(micro)} {where}" if micro else f"it costs nothing {where}"
    findings.add(Section.COST, Sign.OK, price, facts={"microdollars": micro})
    if found.tuned and found.tuned.clock_s >= clock:
        text = f"the cheaper target takes {_s(found.tuned.clock_s)}, which is not less"
        findings.add(Section.COST, Sign.WARN, text, "make [tune] smaller, or take it out: it must pay for itself")
    if beyond := parts.certify.beyond:
        findings.add(Section.COST, Sign.NOTE, f"{beyond}; they are not in the figures below")
    worst = worst_of_search(parts)
    _tell_worst(worst, expected.options, findings)
    tuning = found.tuned.clock_s * parts.task.tune.trials if found.tuned and parts.task.tune else 0.0
    _tell_campaign(clock + tuning, worst, expected, findings)


def _tell_worst(worst: Amounts, options: Options, findings: Findings) -> None:
    seconds, micro = worst[Account.SECONDS] / 1000, worst[Account.USD]
    price = f" and {figures.dollars(micro)}" if micro else ""
    text = f"an attempt sets aside {figures.duration(seconds)} in chambers{price}: its limits, with time to collect"
    facts = {"seconds": seconds, "microdollars": micro}
    for name, needed, cap in (("usd", micro / 1e6, options["usd"]), ("seconds", seconds, options["seconds"])):
        if cap is not None and cap < needed:
            advice = f"the cap on {name} is {cap:g}: not one attempt fits; raise it, or lower the limits"
            findings.add(Section.COST, Sign.FAIL, text, advice, facts=facts)
            return
    findings.add(Section.COST, Sign.OK, text, facts=facts)


def _tell_campaign(attempt_s: float, worst: Amounts, expected: Expected, findings: Findings) -> None:
    options, shape = expected.options, expected.shape
    if shape is None:
        findings.add(Section.COST, Sign.WARN, f"no search can be started: {expected.refused}")
        return
    attempts = options["attempts"]
    if attempts is None:
        return
    by_work = attempts * attempt_s / shape.width
    by_rate = max(0, attempts - shape.width) / options["rate"] if options["rate"] else 0.0
    likely, longest = max(by_work, by_rate), attempts * worst[Account.SECONDS] / 1000 / shape.width
    held = f", held back by the rate of {options.shown('rate')}" if by_rate > by_work else ""
    text = (
        f"{attempts} attempts ({options.sources['attempts']}) at width {shape.width} take about "
        f"{figures.duration(likely)}{held}; {figures.duration(longest)} at the very worst"
    )
    facts = {"attempts": attempts, "width": shape.width, "likely_s": likely, "worst_s": longest}
    if options["wall"] is not None and likely > options["wall"]:
        advice = f"the cap on the clock is {figures.duration(options['wall'])}: it ends before that many"
        findings.add(Section.COST, Sign.WARN, text, advice, facts=facts)
    else:
        findings.add(Section.COST, Sign.OK, text, facts=facts)


def tell_profile(parts: Parts, found: Checkup, expected: Expected, findings: Findings) -> None:
    limits = parts.task.target(Mode.SUBMIT).limits
    run_s = max(run.usage.run_s for run in found.runs)
    _tell_share(findings, "time", run_s, limits.wall, _s, "raise limits.wall: a candidate may need longer")
    if parts.task.trial.build:
        build_s = max(run.usage.build_s for run in found.runs)
        _tell_share(findings, "build time", build_s, limits.build, _s, "raise limits.build")
    _tell_cpu(parts, found, run_s, findings)
    peak = found.seen.memory_peak
    if peak is None:
        why = "the judge calls it" if found.runs[0].calibration else "this engine tells the chamber nothing of it"
        findings.add(Section.PROFILE, Sign.NOTE, f"memory: not measured; {why}")
    else:
        advice = 'raise limits.memory; search.saturates = ["memory"] if one run fills the machine'
        _tell_share(findings, "memory", peak, limits.memory, format_size, advice)
    outputs = max(run.usage.output_bytes for run in found.runs)
    _tell_share(findings, "outputs", outputs, limits.output_bytes, format_size, "raise limits.output_bytes")
    log = max(run.usage.log_bytes for run in found.runs)
    _tell_share(findings, "log", log, limits.log_bytes, format_size, "raise limits.log_bytes, or print less")
    gpu = "; a GPU is asked for, but how busy it is cannot be seen from here" if limits.gpu else ""
    if expected.shape:
        findings.add(
            Section.PROFILE, Sign.OK, f"a search takes {expected.shape.why}{gpu}", facts={"width": expected.shape.width}
        )


def _tell_cpu(parts: Parts, found: Checkup, run_s: float, findings: Findings) -> None:
    cpus = parts.jobs.trial(Mode.SUBMIT).limits.cpus
    if found.seen.cpu_s is None:
        why = "the judge calls it" if found.runs[0].calibration else "the image's shell has no `times`"
        findings.add(Section.PROFILE, Sign.NOTE, f"processor: not measured; {why}")
        return
    share = found.seen.cpu_s / max(run_s * cpus, 1e-3)
    text = f"processor: {min(share, 1):.0%} of {cpus:g} busy ({found.seen.cpu_s:.2f} s in {_s(run_s)})"
    known = parts.task.search.saturates
    advice = ""
    if share > _BUSY and run_s > 1 and known is None:
        advice = 'search.saturates = ["cpu"] lets the width follow the machine\'s cores'
    findings.add(Section.PROFILE, Sign.OK, text, advice, facts={"cpu_s": found.seen.cpu_s, "share": share})


def _tell_share(
    findings: Findings, what: str, used: float, limit: float, shown: Callable[[float], str], advice: str
) -> None:
    near = limit > 0 and used > _NEAR * limit
    text = f"{what}: {shown(used)} of {shown(limit)}"
    sign, facts = Sign.WARN if near else Sign.OK, {"what": what, "used": used, "limit": limit}
    findings.add(Section.PROFILE, sign, text, advice if near else "", facts=facts)


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else figures.duration(seconds)
