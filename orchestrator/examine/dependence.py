"""Does the score depend on the candidate at all? A judge that never looks gives its score to anything.

No search can find anything with such a judge, and all that it says is luck. A judge that refuses cheats looks at them,
and so does one that scores them otherwise than the baseline: a few that come out alike prove nothing.
"""

import math
from collections.abc import Mapping, Sequence

from orchestrator.change import File, Tree
from orchestrator.examine.cheating import Bar, Fate, Tried, bar_of, may_be_changed
from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.loop.workbench import Parts

# One that looks like the baseline may do so by chance, also where nothing else could be judged.
_FEWEST = 2
_MANY = 4
# With noise, one in ten may fall outside of what a few runs of the baseline have shown.
_NEARLY_ALL = 0.9
_WRECKS = {"emptied": b"", "overwritten": b"\0 this solves nothing \xff\n"}
_LOOK = (
    "let the score come from what the candidate did; what is no solution gets valid = false. If the baseline is a stub "
    "that solves nothing, begin with one that solves something, however badly"
)


def tell_dependence(bar: Bar, tried: Sequence[Tried], baseline: Mapping[str, bytes], findings: Findings) -> bool:
    """A row where the cheats that have nothing of the baseline's outputs get its score; none where all is well. Whether
    it is a failure.
    """
    judged = [one for one in tried if one.fate not in (Fate.KEPT_OUT, Fate.NOT_RUN) and _is_other(one, baseline)]
    scored = [one for one in judged if one.values is not None]
    alike = [one for one in scored if one.values is not None and bar.is_alike(one.values)]
    enough = len(judged) if not bar.is_noisy else math.ceil(_NEARLY_ALL * len(judged))
    told = {"cheats": [{"name": one.oracle.name, "code": one.code, "said": one.said} for one in alike]}
    if len(judged) >= _FEWEST and len(scored) == len(judged) and len(alike) >= enough:
        count = "every cheat" if len(alike) == len(judged) else f"{len(alike)} of {len(judged)} cheats"
        text = f"the judge gives {count} {_score_of(bar)}: it does not depend on the candidate"
        findings.add(Section.CHEATS, Sign.FAIL, text, _LOOK, facts=told)
        return True
    if len(alike) >= _MANY and len(alike) == len(scored):
        text = f"the judge gives {_score_of(bar)} to every cheat that it takes, {len(alike)} of {len(judged)}"
        advice = f"see that it looks at more than the form: {_LOOK}"
        findings.add(Section.CHEATS, Sign.WARN, text, advice, facts=told)
    return False


async def try_wrecks(parts: Parts, runs: Sequence[Rehearsal], findings: Findings) -> None:
    """Where judge and candidate share a chamber: a candidate whose every editable file is ruined must not score alike.

    Raises Unavailable when the engine fails.
    """
    bar, alike = bar_of(parts, runs), []
    for done, (word, data) in enumerate(_WRECKS.items()):
        findings.doing(f"the candidate {word}: {done + 1} of {len(_WRECKS)}")
        run = await rehearse(parts, tree=_wrecked(parts, data))
        alike.append(run.scored and run.verdict is not None and bar.is_alike(run.verdict.metrics))
    if all(alike):
        text = f"with every editable file {' or '.join(_WRECKS)}, the judge gives {_score_of(bar)}"
        text += ": it does not depend on the candidate"
        findings.add(Section.CHEATS, Sign.FAIL, text, _LOOK)
    else:
        text = f"a candidate whose every editable file is {' or '.join(_WRECKS)} does not get the baseline's score"
        findings.add(Section.CHEATS, Sign.OK, text)


def _is_other(one: Tried, baseline: Mapping[str, bytes]) -> bool:
    """Whether nothing of the baseline is left in a cheat. One that raises an error has no answer to look at."""
    if one.oracle.play is not None and (one.oracle.play.needs_honest or one.oracle.play.answer == "error"):
        return False
    return not any(one.oracle.outputs.get(name) == data for name, data in baseline.items())


def _score_of(bar: Bar) -> str:
    figures = ", ".join(f"{metric.name} = {bar.runs[0][metric.name]:.6g}" for metric in bar.ranking.metrics)
    return f"the baseline's score{', as near as its noise tells' * bar.is_noisy} ({figures})"


def _wrecked(parts: Parts, data: bytes) -> Tree:
    tree = parts.jobs.snapshot.tree
    return Tree(
        {path: File(data, file.executable) if may_be_changed(parts, path) else file for path, file in tree.items()}
    )
