"""Cheats put before the judge: none that solves nothing may come out better than the honest baseline."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.metric import Ranking
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.judge.cheats import Oracle, oracles
from orchestrator.judge.data import Judgement
from orchestrator.loop.rehearsal import Rehearsal, judged
from orchestrator.loop.workbench import Parts
from orchestrator.text import short


class Fate(StrEnum):
    """What became of a cheat; all but the last are as they should be."""

    KEPT_OUT = "kept from the judge"
    NO_SOLUTION = "no solution"
    FLAGGED = "beyond the ceiling, so never kept"
    NO_BETTER = "no better than the baseline"
    CRASHED = "broke the judge"
    WON = "beat the baseline"


@dataclass(frozen=True)
class Tried:
    """`code` is what the loop would record; `said` the judge's last words, for its author."""

    oracle: Oracle
    fate: Fate
    code: str
    said: str = ""
    values: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Bar:
    """What a cheat must not pass: the best of all runs of the baseline, by more than they differ among themselves."""

    ranking: Ranking
    runs: Sequence[Mapping[str, float]]

    def passed(self, values: Mapping[str, float]) -> bool:
        return all(self.ranking.better(values, run) for run in self.runs) and not self._within_noise(values)

    def _within_noise(self, values: Mapping[str, float]) -> bool:
        for metric in self.ranking.metrics:
            known = [metric.merit(run[metric.name]) for run in self.runs]
            if metric.merit(values[metric.name]) - max(known) > max(known) - min(known):
                return False
        return max(self._spreads()) > 0

    def _spreads(self) -> list[float]:
        of_each = [[run[metric.name] for run in self.runs] for metric in self.ranking.metrics]
        return [max(values) - min(values) for values in of_each]


async def try_cheats(parts: Parts, runs: Sequence[Rehearsal], findings: Findings, width: int) -> list[Tried]:
    """Every oracle, some at a time. Raises Unavailable when the engine fails."""
    baseline = runs[0].outputs
    bar = bar_of(parts, runs)
    made = oracles(baseline, parts.ranking.metrics)
    return await some_at_a_time(made, lambda oracle: _try(parts, oracle, baseline, bar), findings, width)


def bar_of(parts: Parts, runs: Sequence[Rehearsal]) -> Bar:
    return Bar(parts.ranking, [run.verdict.metrics for run in runs if run.verdict])


async def some_at_a_time(
    made: Sequence[Oracle], attempt: Callable[[Oracle], Awaitable[Tried]], findings: Findings, width: int
) -> list[Tried]:
    places = asyncio.Semaphore(max(1, width))
    done = 0

    async def one(oracle: Oracle) -> Tried:
        nonlocal done
        async with places:
            tried = await attempt(oracle)
            done += 1
            findings.doing(f"cheats: {done} of {len(made)}")
            return tried

    tasks = [asyncio.create_task(one(oracle)) for oracle in made]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _try(parts: Parts, oracle: Oracle, baseline: Mapping[str, bytes], bar: Bar) -> Tried:
    outputs = parts.judge_mode.for_judge(parts.task, oracle.outputs)
    if not outputs:
        return Tried(oracle, Fate.KEPT_OUT, "invalid: it left no output")
    if outputs == baseline:
        return Tried(oracle, Fate.KEPT_OUT, "only outputs that the task names are taken")
    return fate_of(parts, oracle, await judged(parts, outputs), bar)


def fate_of(
    parts: Parts, oracle: Oracle, judgement: Judgement, bar: Bar, counted: Mapping[str, float] | None = None
) -> Tried:
    """What the judge's word makes of a cheat; `counted` are its figures where not all that the judge said counts."""
    if judgement.result is None:
        return Tried(oracle, Fate.CRASHED, f"invalid: {judgement.fault}", last_words(judgement))
    values = judgement.result.values if counted is None else counted
    if not judgement.result.valid:
        return Tried(oracle, Fate.NO_SOLUTION, "invalid: the judge says that it is no solution")
    if missing := parts.ranking.missing(values):
        return Tried(oracle, Fate.CRASHED, f"invalid: metric missing: {missing[0]}")
    if beyond := parts.ranking.too_good(values):
        return Tried(oracle, Fate.FLAGGED, f"suspect: {', '.join(beyond)}", values=values)
    fate = Fate.WON if bar.passed(values) else Fate.NO_BETTER
    return Tried(oracle, fate, "scored", values=values)


def last_words(judgement: Judgement) -> str:
    lines = [line for line in judgement.log.split(b"\n") if line.strip()]
    return short(lines[-1] if lines else judgement.detail, 120)


def tell_cheats(tried: Sequence[Tried], findings: Findings) -> None:
    """Those that fail, together by their fate; those that win, one by one."""
    for fate in Fate:
        group = [one for one in tried if one.fate is fate]
        if not group:
            continue
        if fate is Fate.WON:
            for one in group:
                _tell_win(one, findings)
            continue
        text = f"{fate}: {'; '.join(one.oracle.name for one in group)}"
        told = [{"name": one.oracle.name, "code": one.code, "said": one.said} for one in group]
        if fate is Fate.CRASHED:
            text += f" ({group[0].code}; {group[0].said})"
            advice = "candidates pay for it and nothing is lost, but a judge that says valid = false tells them why"
            findings.add(Section.CHEATS, Sign.NOTE, text, advice, facts={"cheats": told})
        else:
            findings.add(Section.CHEATS, Sign.OK, text, facts={"cheats": told})


def _tell_win(one: Tried, findings: Findings) -> None:
    values = " ".join(f"{short(name, 40)}={value:.6g}" for name, value in (one.values or {}).items())
    sign = Sign.FAIL if one.oracle.proof else Sign.WARN
    advice = "a search would find this and keep it: mend the judge" if one.oracle.proof else "see whether that is right"
    text = f"“{one.oracle.name}” beats the baseline ({values}): {one.oracle.why}"
    told = [{"name": one.oracle.name, "code": one.code, "said": one.said}]
    findings.add(Section.CHEATS, sign, text, advice, facts={"cheats": told})
