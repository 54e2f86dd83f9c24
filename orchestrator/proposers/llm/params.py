"""Points of a space by a model: it sees what was tried and how it scored, and gives several in one answer."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.bounded_json import JsonRefused, loads
from orchestrator.change import Policy
from orchestrator.domain.metric import Metric
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.llm.line import Answer
from orchestrator.offload import offload
from orchestrator.proposers.base import Brief
from orchestrator.proposers.llm import prompts
from orchestrator.proposers.llm.asking import Conversation, Offer, chosen_model, chosen_temperature
from orchestrator.proposers.llm.context import Fixed, Telling
from orchestrator.proposers.llm.rules import FRAMES, about_task, points_contract
from orchestrator.proposers.space import shown_point
from orchestrator.task import Float, Int, Parameter, Task, in_order, is_there
from orchestrator.task.conditions import takes
from orchestrator.text import short

OPERATOR = "llm-params"
_MOST_BYTES, _DEEPEST, _DIGITS = 256 << 10, 8, 40
_MOST_POINTS = 64
_DESCRIPTION = 400
_MODEL = 64
_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


class LlmParams:
    """Not serial: points are tried as wide as the machine takes. They all start at the root."""

    serial = False
    branching = False

    def __init__(self, task: Task, policy: Policy, space: Mapping[str, Parameter]) -> None:
        self._task = task
        self._policy = policy
        self._space = space
        self._spec = task.model
        self._metrics: list[Metric] = [it.metric() for it in task.metrics]

    def exhausted(self, number: int) -> str | None:
        del number  # only an answer tells
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if brief.line is None:
            raise AssertionError("the proposer llm-params was asked without a line to a model")
        telling = Telling(self.fixed(brief), brief, self._policy, self._metrics, self._spec.context, files=False)
        context = await offload(telling.context, self._question(brief))
        model, warmth = chosen_model(brief), chosen_temperature(brief, self._spec.temperature)
        talk = Conversation(brief.line, context, self._spec.max_output, "JSON object with points", model, warmth)
        found = await talk.proposals(lambda answer: self._offers(answer, brief))
        return found[: brief.count]

    def fixed(self, brief: Brief | None = None) -> Fixed:
        playbook = brief.playbook if brief else None
        asked = prompts.chosen(brief, prompts.PARAMS) if brief else prompts.PARAMS
        advice = "\n\n".join(prompts.prompt(playbook, name) for name in (prompts.SYSTEM, asked))
        rules = f"{advice}\n\n{FRAMES}\n\n{points_contract(self._space)}"
        return Fixed(rules, about_task(self._task, self._policy, changes_code=False))

    def _question(self, brief: Brief) -> str:
        again = "All that you proposed for this before is known already. Propose something else.\n\n"
        many = f"{brief.count} points that differ from each other" if brief.count > 1 else "one point"
        return f"{again if brief.again else ''}Propose {many}, the most promising one first."

    def _offers(self, answer: Answer, brief: Brief) -> list[Offer]:
        offers = []
        for why, point in read_points(answer.text)[: brief.count]:
            said = short(str(point), _DESCRIPTION)
            fitted = fitting(self._space, point)
            if isinstance(fitted, str):
                offers.append(Offer(said, None, fitted))
                continue
            shown = shown_point(fitted)
            proposal = Proposal(
                operator=OPERATOR,
                description=short(f"{shown}; {why}" if why else shown, _DESCRIPTION),
                params=fitted,
                model=short(answer.model, _MODEL),
                playbook=brief.playbook.version if brief.playbook else None,
            )
            offers.append(Offer(shown, proposal, brief.refusal(proposal)))
        return offers


def read_points(text: str) -> list[tuple[str, Mapping[str, object]]]:
    """Reason and point of each; nothing where there is no object of the wanted form."""
    found = _object_in(text)
    listed = found.get("points") if isinstance(found, dict) else None
    points = []
    for entry in listed[:_MOST_POINTS] if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("point"), dict):
            why = entry.get("why")
            points.append((why if isinstance(why, str) else "", entry["point"]))
    return points


def fitting(space: Mapping[str, Parameter], given: Mapping[str, object]) -> dict[str, Value] | str:
    """The point in the space's own types, or why it is none."""
    point: dict[str, Value] = {}
    for name in in_order(space):
        parameter = space[name]
        if not is_there(parameter, point):
            continue
        if name not in given:
            return f"{name} is missing"
        value = _typed(parameter, given[name])
        if not takes(parameter, value):
            return f"{short(str(given[name]), 60)} is no value of {name}"
        point[name] = value  # type: ignore[assignment]  # takes() saw to it
    if unknown := [name for name in given if name not in point]:
        return f"{short(str(unknown[0]), 60)} is no parameter, or not there at this point"
    return {name: point[name] for name in space if name in point}


def _typed(parameter: Parameter, value: object) -> object:
    """JSON does not tell 5 from 5.0."""
    if isinstance(parameter, Int) and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(parameter, Float) and type(value) is int:
        return float(value)
    return value


def _object_in(text: str) -> object:
    """The answer as JSON: all of it, what stands in a fence, or from the first brace to the last."""
    fenced = _FENCED.search(text)
    first, last = text.find("{"), text.rfind("}")
    for part in (text, fenced[1] if fenced else "", text[first : last + 1] if first >= 0 else ""):
        if not part.strip():
            continue
        try:
            raw = part.encode("utf-8", "replace")
            return loads(raw, max_bytes=_MOST_BYTES, max_depth=_DEEPEST, max_digits=_DIGITS)
        except JsonRefused:
            continue
    return None
