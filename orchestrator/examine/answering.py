"""Adversaries where the judge calls: a cheat stands in for the candidate, or before it, and none may gain.

Where time counts, every call that the honest candidate works on is made longer, for the cheats and for a control that
cheats nobody. So work that is left out shows however fast the candidate is and however busy the machine: both were
measured over the same channel, and the difference is many times what the channel can tell.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.change import File, Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.verdict import Mode
from orchestrator.examine.cheating import Bar, Fate, Tried, bar_of, fate_of
from orchestrator.judge.adversaries import Adversary, Oracle, Play, players
from orchestrator.judge.cheats import Recording
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.judge.helpers import CHEAT_HELPERS, RECORDED, helpers
from orchestrator.judge.tape import Tape
from orchestrator.loop.rehearsal import NODE, Rehearsal, rehearse_calls
from orchestrator.loop.relaying import StandIn
from orchestrator.loop.workbench import Parts

# A call is made so many times the channel's jitter longer, and at least so many seconds.
_CLEARLY = 12.0
_LEAST_S = 0.02
_MOST_S = 1.0
_LONGER = 5.0
# Of the candidate's own time, what all of that may take together.
_SHARE = 0.4
# A cheat gains where it saves more than this part of what was added.
_PART = 0.25
_HONEST = Play(spare="all")


@dataclass(frozen=True)
class Scale:
    """What cheats are compared with: the baseline, or where time counts the baseline with calls that are longer."""

    delay_s: float
    bar: Bar

    @property
    def is_slowed(self) -> bool:
        return self.delay_s > 0


class Calls:
    """Tries adversaries where the judge calls. `slow` is what became of the control, None where there was none."""

    def __init__(self, parts: Parts, runs: Sequence[Rehearsal]) -> None:
        self._parts = parts
        self._functions = runs[0].functions
        self.tape = runs[0].tape or Tape()
        self._scale = Scale(0.0, bar_of(parts, runs))
        self._baseline = self._scale.bar
        self.slow: Tried | None = None

    @property
    def bar(self) -> Bar:
        return self._scale.bar

    @property
    def is_slowed(self) -> bool:
        return self._scale.is_slowed

    def ways(self, rows: Sequence[Adversary], most: int | None) -> list[Oracle]:
        """All but the control, which was tried already; what stretches times only where time counts."""
        made = [it for it in players(self.tape, rows, most) if it.play != _HONEST]
        return [it for it in made if self.is_slowed or not (it.play and it.play.is_about_time)]

    async def attempt(self, oracle: Oracle) -> Tried:
        """Raises Unavailable when the engine fails."""
        return await self._tried(oracle, self._scale)

    async def prepare(self, row: Adversary | None, run: Rehearsal) -> None:
        """Find out whether time counts: the same candidate, with calls that take longer. Raises Unavailable."""
        delay = self._delay(run)
        if not delay:
            return
        oracle = Oracle("slow", {}, row.why if row else "", play=_HONEST, row=row)
        # What drowns in the noise of a busy machine may show when there is more of it.
        for longer in (delay, min(_LONGER * delay, self._room(run))) if self._baseline.is_noisy else (delay,):
            self.slow = await self._tried(oracle, Scale(longer, self._baseline))
            if self.slow.values is not None and self._is_worse(self.slow.values):
                again = await self._tried(oracle, Scale(longer, self._baseline))
                if again.values is not None and self._is_worse(again.values):
                    self._scale = Scale(longer, self._slowed_bar([self.slow.values, again.values]))
                return

    def _slowed_bar(self, runs: list[Mapping[str, float]]) -> Bar:
        margins = {}
        for metric in self._baseline.ranking.metrics:
            honest = min(metric.merit(run[metric.name]) for run in self._baseline.runs)
            slowed = max(metric.merit(run[metric.name]) for run in runs)
            margins[metric.name] = max(0.0, _PART * (honest - slowed))
        return Bar(self._baseline.ranking, runs, margins)

    def _is_worse(self, values: Mapping[str, float]) -> bool:
        """Whether every run of the baseline is better than that, by more than they differ."""
        bar = self._baseline
        spread = {
            metric.name: max(run[metric.name] for run in bar.runs) - min(run[metric.name] for run in bar.runs)
            for metric in bar.ranking.metrics
        }
        return all(Bar(bar.ranking, [values], spread).passed(run) for run in bar.runs)

    def _delay(self, run: Rehearsal) -> float:
        """0 where the candidate's own limit leaves no room for it."""
        seen = run.calibration
        if seen is None or not seen.calls:
            return 0.0
        wanted = min(max(_LEAST_S, _CLEARLY * seen.jitter_s, min(seen.call_s or 0.0, 0.2)), _MOST_S)
        room = self._room(run)
        return wanted if wanted <= room else room if room >= 3 * seen.jitter_s else 0.0

    def _room(self, run: Rehearsal) -> float:
        calls = run.calibration.calls if run.calibration else 1
        return _SHARE * self._parts.task.target(Mode.SUBMIT).limits.wall / max(1, calls)

    async def _tried(self, oracle: Oracle, scale: Scale) -> Tried:
        parts = self._parts
        stand_in = self._stand_in(oracle.play or _HONEST, scale.delay_s)
        run = await rehearse_calls(parts, Mode.SUBMIT, parts.jobs.snapshot.tree, NODE, stand_in)
        if run.ending is not None or run.judgement is None:
            # What breaks the channel's rules was refused; any other ending says nothing about the judge.
            fate = Fate.KEPT_OUT if run.ending is Ending.TAMPERED else Fate.NOT_RUN
            return Tried(oracle, fate, f"{run.ending}: {run.reason}")
        return fate_of(parts, oracle, run.judgement, scale.bar, run.verdict.metrics if run.verdict else None)

    def _stand_in(self, play: Play, delay_s: float) -> StandIn:
        """The image needs python3. The honest candidate is its child, where it has to answer anything."""
        honest = play.needs_honest or self.tape.uses_objects
        recorded = play.answer == "recorded" or play.loading
        spec: dict[str, object] = {
            "answer": play.answer,
            "value": play.value,
            "spare": play.spare,
            "fill": play.fill,
            "pick": play.pick,
            "field": play.field,
            "fractions": play.fractions,
            "ahead": play.ahead,
            "half": max(1, len(self.tape.calls) // 2),
            "graders": list(self.tape.graders) if play.graders else [],
            "functions": list(self.tape.names if play.ahead else self._functions),
            "recorded": recorded,
            "loading": play.loading,
            "delay": delay_s,
            "linger": delay_s if play.lingers else 0.0,
            "burns": play.burns,
        }
        if play.claims:
            spec["claims"] = Recording({}, self._parts.ranking.metrics).claims
        if honest:
            spec["command"] = list(self._parts.jobs.trial(Mode.SUBMIT).command)
        files = helpers(CHEAT_HELPERS)
        if recorded:
            files = Tree({**files, RECORDED: File(encode([list(pair) for pair in self.tape.calls]))})
        return StandIn(("python3", "-m", "blastdoor_cheat", json.dumps(spec)), files, builds=honest)
