"""Cheats put before the judge: none that solves nothing may come out better than the honest baseline."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.change import Refusal
from orchestrator.domain.metric import Ranking
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.judge.adversaries import Adversary, Oracle, oracles
from orchestrator.judge.cheats import Recording
from orchestrator.judge.data import Judgement
from orchestrator.judge.rewriting import MOST_BYTES
from orchestrator.loop.rehearsal import Rehearsal, judged
from orchestrator.loop.workbench import Parts
from orchestrator.text import short


class Fate(StrEnum):
    """What became of a cheat. One that did not run proves nothing, one that won shows a hole; all others are as they
    should be.
    """

    NOT_RUN = "did not run, so it proves nothing"
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
    """What a cheat must not pass: the best of all runs of the baseline, by more than they differ among themselves.

    `margins` is how much a metric must differ at least, where that is known from elsewhere.
    """

    ranking: Ranking
    runs: Sequence[Mapping[str, float]]
    margins: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_noisy(self) -> bool:
        return max(self._spreads()) > 0

    def passed(self, values: Mapping[str, float]) -> bool:
        return all(self.ranking.better(values, run) for run in self.runs) and not self._within_noise(values)

    def _within_noise(self, values: Mapping[str, float]) -> bool:
        for metric in self.ranking.metrics:
            known = [metric.merit(run[metric.name]) for run in self.runs]
            least = max(max(known) - min(known), self.margins.get(metric.name, 0.0))
            if metric.merit(values[metric.name]) - max(known) > least:
                return False
        return self.is_noisy or any(self.margins.values())

    def is_alike(self, values: Mapping[str, float]) -> bool:
        """Whether these are the baseline's own figures, as near as its runs were to each other."""
        return all(self._is_near(values[metric.name], metric.name) for metric in self.ranking.metrics)

    def _is_near(self, value: float, name: str) -> bool:
        low, high = min(run[name] for run in self.runs), max(run[name] for run in self.runs)
        if low == high and not self.margins.get(name):
            return math.isclose(value, low, rel_tol=1e-9, abs_tol=0.0)
        off = max(high - low, self.margins.get(name, 0.0))
        return low - off <= value <= high + off

    def _spreads(self) -> list[float]:
        of_each = [[run[metric.name] for run in self.runs] for metric in self.ranking.metrics]
        return [max(values) - min(values) for values in of_each]


class Outputs:
    """Tries adversaries where the judge is given what a candidate left."""

    def __init__(self, parts: Parts, runs: Sequence[Rehearsal]) -> None:
        self._parts = parts
        self._baseline = runs[0].outputs
        self.bar = bar_of(parts, runs)

    def ways(self, rows: Sequence[Adversary], most: int | None) -> list[Oracle]:
        return oracles(Recording(self._baseline, self._parts.ranking.metrics, _inputs(self._parts)), rows, most)

    async def attempt(self, oracle: Oracle) -> Tried:
        """Raises Unavailable when the engine fails."""
        parts = self._parts
        outputs = parts.judge_mode.for_judge(parts.task, oracle.outputs)
        if not outputs:
            return Tried(oracle, Fate.KEPT_OUT, "invalid: it left no output")
        if outputs == self._baseline:
            return Tried(oracle, Fate.KEPT_OUT, "only outputs that the task names are taken")
        return fate_of(parts, oracle, await judged(parts, outputs), self.bar)


def _inputs(parts: Parts) -> dict[str, bytes]:
    """What a candidate can read and not change: the task's own files, as far as they are small."""
    snapshot = parts.jobs.snapshot
    found: dict[str, bytes] = {}
    for name, path in snapshot.inputs.items():
        files = sorted(it for it in path.rglob("*") if it.is_file()) if path.is_dir() else [path]
        found |= {f"{name}/{it.name}": it.read_bytes() for it in files[:20] if it.stat().st_size <= MOST_BYTES}
    fixed = {path: file.data for path, file in snapshot.tree.items() if not may_be_changed(parts, path)}
    return {**found, **{path: data for path, data in fixed.items() if len(data) <= MOST_BYTES}}


def may_be_changed(parts: Parts, path: str) -> bool:
    """Whether a candidate may have other bytes there."""
    try:
        parts.task.policy().check(path)
    except Refusal:
        return False
    return True


def bar_of(parts: Parts, runs: Sequence[Rehearsal]) -> Bar:
    return Bar(parts.ranking, [run.verdict.metrics for run in runs if run.verdict])


async def some_at_a_time(
    made: Sequence[Oracle], attempt: Callable[[Oracle], Awaitable[Tried]], findings: Findings, width: int
) -> list[Tried]:
    if not made:
        return []
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
    for sign, text, advice, told in group_by_fate(tried):
        tell_group(sign, text, advice, told, findings)
    for one in tried:
        if one.fate is Fate.WON:
            _tell_win(one, findings)


def group_by_fate(tried: Sequence[Tried]) -> Iterator[tuple[Sign, str, str, list[dict[str, str]]]]:
    """Sign, text, advice and facts of those that met the same fate and did not win. The judge's own words are in the
    facts alone: the text may be handed on.
    """
    for fate in Fate:
        group = [one for one in tried if one.fate is fate]
        if not group or fate is Fate.WON:
            continue
        text = f"{fate}: {'; '.join(one.oracle.name for one in group)}"
        told = [{"name": one.oracle.name, "code": one.code, "said": one.said} for one in group]
        if fate is Fate.CRASHED:
            text += f" ({group[0].code})"
            advice = "candidates pay for it and nothing is lost, but a judge that says valid = false tells them why"
            yield Sign.NOTE, text, advice, told
        elif fate is Fate.NOT_RUN:
            yield Sign.WARN, f"{text} ({group[0].code})", "", told
        else:
            yield Sign.OK, text, "", told


def tell_group(sign: Sign, text: str, advice: str, told: list[dict[str, str]], findings: Findings) -> None:
    """With the judge's last words about the first of them as its log: they are for its author."""
    findings.add(Section.CHEATS, sign, text, advice, log=told[0]["said"].encode(), facts={"cheats": told})


def _tell_win(one: Tried, findings: Findings) -> None:
    values = " ".join(f"{short(name, 40)}={value:.6g}" for name, value in (one.values or {}).items())
    sign = Sign.FAIL if one.oracle.proof else Sign.WARN
    advice = "a search would find this and keep it: mend the judge" if one.oracle.proof else "see whether that is right"
    text = f"“{one.oracle.name}” beats the baseline ({values}): {one.oracle.why}"
    told = [{"name": one.oracle.name, "code": one.code, "said": one.said}]
    findings.add(Section.CHEATS, sign, text, advice, facts={"cheats": told})
