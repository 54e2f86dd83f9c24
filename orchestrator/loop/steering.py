"""A person's instructions to those who propose: who reads them, and what can be one."""

from collections.abc import Sequence
from typing import overload

from orchestrator.choices import PROPOSERS
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


def unheard(proposer: str) -> str | None:
    """Why an instruction would reach nobody."""
    if PROPOSERS.has(proposer, "asks_a_model") or PROPOSERS.has(proposer, "has_arms"):
        return None
    readers = ", ".join(PROPOSERS.with_trait("asks_a_model"))
    return f"the proposer {proposer} reads no instructions, only {readers} do; blastdoor inject brings a change instead"


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
