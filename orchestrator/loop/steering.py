"""A person's instructions to those who propose: who reads them, and what can be one."""

import json
from collections.abc import Sequence
from typing import overload

from orchestrator.choices import PROPOSERS
from orchestrator.domain.records import Run
from orchestrator.domain.state import State

# Every one of them is part of every prompt from then on.
LONGEST = 2000
MOST = 50


class Said(Sequence[str]):
    """All instructions so far. It grows when a person says more, so that an agent at work can be told."""

    def __init__(self, state: State) -> None:
        self._state = state

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...

    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return self._state.campaign.steering[at]

    def __len__(self) -> int:
        return len(self._state.campaign.steering)


def unheard(run: Run) -> str | None:
    """Why an instruction would reach nobody."""
    told = f"the proposer {run.proposer} reads no instructions"
    if PROPOSERS.has(run.proposer, "asks_a_model"):
        return None
    if PROPOSERS.has(run.proposer, "has_arms"):
        arms = json.loads(run.options).get("arms")
        # A run of an earlier version may have them from its task alone, and does not say.
        if arms is None or any(PROPOSERS.has(name, "asks_a_model") for name in arms):
            return None
        told = f"no arm of the proposer {run.proposer} reads instructions"
    readers = ", ".join(PROPOSERS.with_trait("asks_a_model"))
    return f"{told}, only {readers} do; blastdoor inject brings a change instead"


def unfit(text: str, earlier: Sequence[str]) -> str | None:
    """Why a text is no instruction that could be recorded and read."""
    if not text.strip():
        return "an instruction needs words"
    if len(text) > LONGEST:
        return f"an instruction has at most {LONGEST:,} characters, not {len(text):,}"
    if "\0" in text or not _is_unicode(text):
        return "an instruction is text in UTF-8"
    if len(earlier) >= MOST:
        return f"{MOST} instructions were given already; write what still counts into the statement of a new task"
    if earlier and earlier[-1] == text.strip():
        return "that is what was said last"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
