"""Changes to code by a model: several in one answer, each with a line that says what it does."""

import re
from collections.abc import Sequence

from orchestrator.change import Policy, Reason, Refusal
from orchestrator.change.forms import parse
from orchestrator.domain.metric import Metric
from orchestrator.domain.proposal import Proposal
from orchestrator.llm.line import Answer
from orchestrator.offload import offload
from orchestrator.proposers.base import Brief
from orchestrator.proposers.llm import prompts
from orchestrator.proposers.llm.asking import CUT, Conversation, Offer, chosen_model, chosen_temperature
from orchestrator.proposers.llm.context import Context, Fixed, Telling
from orchestrator.proposers.llm.modes import Mode, choose
from orchestrator.proposers.llm.results import result
from orchestrator.proposers.llm.rules import FRAMES, about_task, code_contract
from orchestrator.task import Task
from orchestrator.text import short

_HEADER = re.compile(r"=== *change\b[ \d]*:?[ \t]*(.*?)[ \t]*=*", re.IGNORECASE)
_HEADER_LINE = 1_000
_DESCRIPTION = 200
_MODEL = 64
_PROMPTS = {Mode.DRAFT: prompts.DRAFT, Mode.IMPROVE: prompts.IMPROVE, Mode.DEBUG: prompts.DEBUG}
_USUAL = 3.0  # weight of what is done where nothing is learnt, beside the other
_CUT_OFF = "the answer was cut off in the middle of it; send it again, shorter"


class LlmCode:
    """Serial: each answer should know how the last ones did. What it offers beyond one is tried next to it."""

    serial = True
    branching = True

    def __init__(self, task: Task, policy: Policy) -> None:
        self._task = task
        self._policy = policy
        self._spec = task.model
        self._metrics: list[Metric] = [it.metric() for it in task.metrics]

    def exhausted(self, number: int) -> str | None:
        del number  # a model always has another idea
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if brief.line is None:
            raise AssertionError("the proposer llm was asked without a line to a model")
        mode, context = await offload(self._context, brief)
        warmth = chosen_temperature(brief, self._spec.temperature)
        talk = Conversation(brief.line, context, self._spec.max_output, "change", chosen_model(brief), warmth)
        found = await talk.proposals(lambda answer: self._offers(answer, brief, mode))
        return found[: brief.count]

    def _context(self, brief: Brief) -> tuple[Mode, Context]:
        """In a thread: the files and the change that are shown are a candidate's."""
        mode, failed = choose(brief)
        telling = Telling(self.fixed(brief), brief, self._policy, self._metrics, self._spec.context)
        asked = self._question(brief, mode, result(failed, self._metrics) if failed else "")
        sibling = failed.node if failed and failed.node != brief.parent else None
        return mode, telling.context(asked, failed=sibling, others=self._shows_others(brief))

    def _shows_others(self, brief: Brief) -> bool:
        """What else was tried inspires, or leads all in one direction: where the search learns, it learns which."""
        if not self._spec.others or not brief.chooser.learns or not brief.past.ended:
            return self._spec.others
        return brief.chooser.choose("inspirations", {"others": _USUAL, "none": 1.0}) == "others"

    def fixed(self, brief: Brief | None = None) -> Fixed:
        system = prompts.prompt(brief.playbook if brief else None, prompts.SYSTEM)
        rules = f"{system}\n\n{FRAMES}\n\n{code_contract(self._spec.form)}"
        return Fixed(rules, about_task(self._task, self._policy, changes_code=True))

    def _question(self, brief: Brief, mode: Mode, went_wrong: str) -> str:
        asked = [prompts.prompt(brief.playbook, prompts.chosen(brief, _PROMPTS[mode]))]
        if went_wrong:
            asked.append(f"It ended with: {went_wrong}")
        if brief.again:
            asked.append("All that you proposed for this before is known already. Propose something else.")
        many = f"{brief.count} changes that differ from each other" if brief.count > 1 else "one change"
        asked.append(f"Propose {many} to the files of {brief.parent}, the most promising one first.")
        return "\n\n".join(asked)

    def _offers(self, answer: Answer, brief: Brief, mode: Mode) -> list[Offer]:
        changes = read_changes(answer.text, self._policy)
        offers = []
        for place, (description, text) in enumerate(changes[: brief.count], 1):
            proposal = Proposal(
                operator=mode,
                description=description,
                text=text,
                model=short(answer.model, _MODEL),
                playbook=brief.playbook.version if brief.playbook else None,
            )
            is_cut = answer.stop == CUT and place == len(changes)
            offers.append(Offer(description, proposal, _CUT_OFF if is_cut else brief.refusal(proposal)))
        # What was cut off may look complete and not be: it is never handed in.
        return [it if it.why != _CUT_OFF else Offer(it.said, None, it.why) for it in offers]


def read_changes(text: str, policy: Policy) -> list[tuple[str, str]]:
    """Description and text of each change; one without a heading counts where it is the only one. None is prose."""
    text = text.encode("utf-8", "replace").decode()
    parts: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        # A longer line is none: the expression takes the square of its blanks.
        if len(line) <= _HEADER_LINE and (heading := _HEADER.fullmatch(line.strip())) is not None:
            parts.append((short(heading[1], _DESCRIPTION) or "a change without a description", []))
        elif parts:
            parts[-1][1].append(line)
    if not parts and _holds_change(text, policy):
        return [("a change without a description", text)]
    return [(said, "\n".join(lines).strip("\n") + "\n") for said, lines in parts if any(map(str.strip, lines))]


def _holds_change(text: str, policy: Policy) -> bool:
    """Whether somebody tried to write one; what is wrong with it is told where it is applied."""
    try:
        parse(text, caps=policy.caps, only=None)
    except Refusal as refusal:
        return refusal.reason is not Reason.NOTHING_FOUND
    return True
