"""What was tried and what came of it, one line an experiment: rounded scores and fixed codes, never a word of a log."""

import json
from collections.abc import Mapping, Sequence

from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric
from orchestrator.domain.proposal import Value
from orchestrator.proposers.base import Tried
from orchestrator.proposers.llm.words import figure, quoted

_DESCRIPTION = 160
_POINT = 400
_NOTES = 600


def experiment_line(tried: Tried, metrics: Sequence[Metric]) -> str:
    parts = [tried.node]
    parts += [f"on {tried.parent}"] if tried.parent else []
    if tried.params is not None:
        parts.append(shown_params(tried.params))
    elif tried.parent and not tried.operator:
        parts.append("no change")
    elif tried.parent:
        parts += [_code(tried.operator), quoted(tried.description, _DESCRIPTION)]
    else:
        parts.append("the files to begin with")
    return f"{' '.join(parts)} -> {result(tried, metrics)}"


def noted(tried: Tried) -> str:
    """What the judge wrote beside the verdict, where a model may know it: its words, and perhaps the candidate's."""
    return f"\n  the judge noted: {quoted(tried.notes, _NOTES)}" if tried.notes else ""


def result(tried: Tried, metrics: Sequence[Metric]) -> str:
    if tried.merits is not None:
        scores = ", ".join(f"{it.name}={figure(it.merit(of))}" for it, of in zip(metrics, tried.merits, strict=True))
        return f"{scores} (kept)" if tried.kept else scores
    if tried.ending is None:
        return "under way"
    if tried.ending is Ending.SCORED:
        return "no score that can be compared"
    return f"no score: {tried.ending}" + (f", {_code(tried.fault)}" if tried.fault else "")


def shown_params(params: Mapping[str, Value]) -> str:
    rounded = {name: float(f"{it:.6g}") if isinstance(it, float) else it for name, it in params.items()}
    inside = json.dumps(rounded, ensure_ascii=True)
    return inside if len(inside) <= _POINT and not set("<>`") & set(inside) else quoted(inside, _POINT)


def _code(word: str) -> str:
    """One of our own short codes; what is not is quoted like anybody's words."""
    plain = word.isascii() and word.replace(" ", "").replace("-", "").replace("_", "").replace(":", "").isalnum()
    return word if plain and len(word) <= _DESCRIPTION else quoted(word, _DESCRIPTION)
