"""What a comparison of two ways to search says: the difference, how sure it is, and every pair."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestrator.domain import figures
from orchestrator.domain.ab import Outcome, Pair, Scale, Versus, median_of, versus
from orchestrator.domain.signed_rank import Difference
from orchestrator.run_options import OPTIONS
from orchestrator.views.render.model import Figure, Lines, Part, Quote, Section, Table, Words, facts, raw
from orchestrator.wiring.ab import SIDES, Asked, Comparing

# A difference that chance alone gives more often than this is not shown to be one.
_ERROR_RATE = 0.05


def label(options: Mapping[str, Any]) -> str:
    """A side's own options, as people write them."""
    said = [
        f"{name}={OPTIONS[name].kind.shown(value) if name in OPTIONS else value}" for name, value in options.items()
    ]
    return " ".join(said) or "as it is"


class AbMaterial:
    """`folder` is the comparison's, `again` the command that goes on with it, where it is known."""

    def __init__(self, comparing: Comparing, folder: Path, again: str = "") -> None:
        self.comparing = comparing
        self.folder = folder
        self.again = again

    @property
    def asked(self) -> Asked:
        return self.comparing.asked

    @cached_property
    def found(self) -> Versus:
        return versus(self.comparing.pairs, self.asked.scale, self.asked.attempts or 0, self.asked.target)

    def side(self, name: str) -> Quote:
        return Quote(f"{name} ({label(self.asked.sides[name])})")

    def outcomes(self, name: str) -> list[Outcome]:
        return [it.a if name == "a" else it.b for it in self.comparing.pairs if it.is_comparable]


def ab_sections(it: AbMaterial) -> list[Section]:
    return [head(it), answer(it), to_target(it), area(it), doubts(it), every_pair(it)]


def head(it: AbMaterial) -> Section:
    asked = it.asked
    both = label(asked.options) if asked.options else ""
    body = facts(
        {
            "a": Quote(label(asked.sides["a"])),
            "b": Quote(label(asked.sides["b"])),
            "both": Quote(both),
            "pairs": f"{len(it.comparing.pairs)} of {len(asked.seeds)} complete, seeds {_range(asked.seeds)}",
            "budget": f"{figures.plural(asked.attempts or 0, 'attempt')} for each campaign",
            "folder": Quote(str(it.folder)),
        }
    )
    data = {"task": asked.task, "sides": asked.sides, "both": asked.options, "seeds": list(asked.seeds)}
    title: list[Part] = ["Comparison on ", Quote(asked.task)]
    return Section("ab", title, body=body, data={**data, "attempts": asked.attempts, "open": it.comparing.open})


def answer(it: AbMaterial) -> Section:
    told = _final(it)
    return Section("difference", "Which is better", told, data={"difference": _record(it, it.found.final)})


def to_target(it: AbMaterial) -> Section:
    found = it.found
    data: dict[str, Any] = {"target": found.target, "target_is": found.target_is, "ratio": None}
    if found.is_baseline:
        told = (
            "In half of its campaigns the worse side gets no further than the baseline; --target names one to count to."
        )
        return Section("to_target", "Attempts to the target", told, data={"to_target": data})
    if found.target is None or found.to_target is None:
        return Section("to_target", data={"to_target": data})
    counts = {side: [of.reached(found.target, it.asked.scale) for of in it.outcomes(side)] for side in SIDES}
    data |= {side: {"median": median_of(counts[side]), "each": counts[side]} for side in SIDES}
    data["ratio"] = _record(it, found.to_target, ratio=True)
    words = [f"{side} takes {_attempts(median_of(counts[side]))} ({_got_there(counts[side])})" for side in SIDES]
    target = f"To get to {figures.score(found.target)} ({found.target_is}), {' and '.join(words)}"
    return Section(
        "to_target", "Attempts to the target", f"{target}{_ratio(it, found.to_target)}", data={"to_target": data}
    )


def area(it: AbMaterial) -> Section:
    found = it.found.mean
    if found is None:
        return Section("area", data={"area": None})
    told = f"The best so far, averaged over all attempts, differs by {_by(it, found)}"
    return Section("area", "On the way", told, data={"area": _record(it, found)})


def doubts(it: AbMaterial) -> Section:
    """What a reader must know before trusting the answer; no pair is left out in silence."""
    rows: list[list[Part]] = []
    for pair, number in zip(it.comparing.pairs, _numbers(it), strict=True):
        for side, of in (("a", pair.a), ("b", pair.b)):
            if of.failed:
                rows.append([f"{number:02d}{side} failed, and counts as worse than any score: ", Quote(of.failed)])
            elif of.note:
                rows.append([f"{number:02d}{side} ", Quote(of.note)])
            if it.asked.attempts is not None and of.attempts > it.asked.attempts:
                cap = figures.plural(it.asked.attempts, "attempt")
                rows.append(
                    [f"{number:02d}{side} had {of.attempts:,} where the budget is {cap}: by hand, before it ended"]
                )
        if not pair.is_comparable:
            rows.append([f"pair {number} was measured under different conditions on its two sides, and is left out"])
    if it.comparing.open:
        left = f"{it.comparing.open} of {figures.plural(len(it.asked.seeds), 'pair')} not complete"
        rows.append([left, f"; {it.again} goes on" if it.again else ""])
    data = {"doubts": [raw(row) for row in rows]}
    return Section("doubts", "What counts against it", body=[Lines(rows)] if rows else [], data=data, open=True)


def every_pair(it: AbMaterial) -> Section:
    scale, target = it.asked.scale, it.found.target
    rows: list[list[Words]] = []
    data = []
    for pair, number in zip(it.comparing.pairs, _numbers(it), strict=True):
        ends = [_score(of.final) for of in (pair.a, pair.b)]
        to = [attempts_to_target(of, target, scale) for of in (pair.a, pair.b)]
        first = it.asked.first[number - 1]
        rows.append([f"{number}", f"{pair.seed}", *ends, *to, first, _spent(pair)])
        data.append({"pair": number, "seed": pair.seed, "first": first, "a": asdict(pair.a), "b": asdict(pair.b)})
    columns = ["pair", "seed", "a", "b", "a to target", "b to target", "first", "spent"]
    return Section("pairs", "Every pair", body=[Table(columns, rows)] if rows else [], data={"pairs": data}, open=True)


def attempts_to_target(of: Outcome, target: float | None, scale: Scale) -> Words:
    if target is None:
        return ""
    at = of.reached(target, scale)
    return Figure(None, "never") if at is None else Figure(float(at), f"{at}")


def _final(it: AbMaterial) -> list[Part]:
    found = it.found.final
    if found is None:
        return ["No pair is complete yet."]
    counts = f"b ends better in {found.above}, worse in {found.below} and as good in {found.equal}"
    told = f"{_name(it)} differs by {_by(it, found)}; {counts} of {figures.plural(_count(found), 'pair')}"
    if it.comparing.open:
        return ["Not complete: ", told, "."]
    if found.p >= _ERROR_RATE:
        return ["No difference is shown between ", it.side("a"), " and ", it.side("b"), f": {told}."]
    better, worse = ("b", "a") if found.typical > 0 else ("a", "b")
    return [it.side(better), " is better than ", it.side(worse), f": {told}."]


def _by(it: AbMaterial, found: Difference) -> str:
    """In the units of the metric, b less a. Where nothing may be concluded yet, no p is told."""
    turn = it.asked.scale.of_merit
    told = _signed(turn(found.typical))
    if it.comparing.open:
        return told
    if found.low is None or found.high is None:
        return f"{told} (too few pairs for an interval, which takes 6), p {_p(found.p)}"
    low, high = sorted((turn(found.low), turn(found.high)))
    return f"{told} (95 % interval {_signed(low)} to {_signed(high)}), p {_p(found.p)}"


def _ratio(it: AbMaterial, found: Difference) -> str:
    told = f": b takes {_times(found.typical)} as many"
    if it.comparing.open:
        return f"{told}."
    if found.low is None or found.high is None:
        return f"{told}, p {_p(found.p)}."
    return f"{told} (95 % interval {_times(found.low)} to {_times(found.high)}), p {_p(found.p)}."


def _record(it: AbMaterial, found: Difference | None, *, ratio: bool = False) -> dict[str, Any] | None:
    """For a program: infinite bounds are None, and so is all that does not hold before every pair is complete."""
    if found is None:
        return None
    turn = math.exp if ratio else it.asked.scale.of_merit
    bounds = [None if end is None or it.comparing.open else _finite(turn(end)) for end in (found.low, found.high)]
    if None not in bounds:
        bounds.sort(key=lambda end: end or 0.0)
    return {
        "typical": _finite(turn(found.typical)),
        "low": bounds[0],
        "high": bounds[1],
        "p": None if it.comparing.open else found.p,
        "b_better": found.below if ratio else found.above,
        "a_better": found.above if ratio else found.below,
        "equal": found.equal,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _name(it: AbMaterial) -> str:
    goal = f"{it.asked.scale.goal} is better"
    return f"the final {it.asked.scale.name} ({goal})"


def _count(found: Difference) -> int:
    return found.above + found.below + found.equal


def _numbers(it: AbMaterial) -> list[int]:
    return [it.asked.seeds.index(pair.seed) + 1 for pair in it.comparing.pairs]


def _score(value: float | None) -> Figure:
    return Figure(value, "failed" if value is None else figures.score(value))


def _spent(pair: Pair) -> str:
    micro = pair.a.usd + pair.b.usd
    attempts = f"{pair.a.attempts} + {pair.b.attempts} attempts"
    return f"{attempts}, {figures.dollars(micro)}" if micro else attempts


def _signed(value: float) -> str:
    return figures.signed(value) if math.isfinite(value) else f"{value:+}"


def _times(log: float) -> str:
    return f"{math.exp(log):.2f} times" if log < 700 else "without end"


def _attempts(median: float | None) -> str:
    if median is None:
        return "longer than it had"
    return f"{median:g} {'attempt' if median == 1 else 'attempts'} at the median"


def _got_there(counts: Sequence[int | None]) -> str:
    return f"{sum(at is not None for at in counts)} of {len(counts)} got there"


def _range(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.0001 else "< 0.0001"
