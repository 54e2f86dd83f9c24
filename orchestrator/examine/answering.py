"""Cheats where the judge calls: candidates that answer every call alike. None may come out better than the baseline."""

from collections.abc import Sequence

from orchestrator.domain.verdict import Mode
from orchestrator.examine.cheating import Bar, Fate, Tried, bar_of, fate_of, some_at_a_time
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.judge.cheats import Oracle
from orchestrator.judge.helpers import CHEAT, CHEAT_ANSWERS
from orchestrator.loop.rehearsal import NODE, Rehearsal, rehearse_calls
from orchestrator.loop.workbench import Parts

# The one that gives no answer: what becomes of it does not tell whether the judge looks at answers.
RAISES = "answers an error"
_WHY = "the judge takes an answer that solves nothing; it must check what it times"


async def try_answers(parts: Parts, runs: Sequence[Rehearsal], findings: Findings, width: int) -> list[Tried]:
    """Every kind of answer, some at a time. The image needs python3. Raises Unavailable when the engine fails."""
    functions = runs[0].functions
    bar = bar_of(parts, runs)
    made = [Oracle(f"answers {kind}", {}, _WHY) for kind in CHEAT_ANSWERS]
    commands = {
        oracle.name: ("python3", "-m", CHEAT.removesuffix(".py"), kind, *functions)
        for oracle, kind in zip(made, CHEAT_ANSWERS, strict=True)
    }

    async def attempt(oracle: Oracle) -> Tried:
        command = commands[oracle.name]
        run = await rehearse_calls(parts, Mode.SUBMIT, parts.jobs.snapshot.tree, NODE, command)
        return _tried(parts, oracle, run, bar)

    tried = await some_at_a_time(made, attempt, findings, width)
    if all(one.fate is Fate.KEPT_OUT for one in tried):
        text = f"not tried: they do not run in the candidate's image ({tried[0].code})"
        findings.add(Section.CHEATS, Sign.WARN, text, "they are Python programs; give the image python3 to try them")
        return []
    return tried


def _tried(parts: Parts, oracle: Oracle, run: Rehearsal, bar: Bar) -> Tried:
    if run.ending is not None or run.judgement is None:
        return Tried(oracle, Fate.KEPT_OUT, f"{run.ending}: {run.reason}")
    return fate_of(parts, oracle, run.judgement, bar, run.verdict.metrics if run.verdict else None)
