"""A proposer that others wrote: whatever goes wrong in it is its own fault, and is told with its name."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, PluginFailed, Proposer
from orchestrator.registry import told

_OURS = ("orchestrator", "sandbox")
_PARTS = ("serial", "branching", "exhausted", "propose")


class Outside:
    """`who` names it in a sentence. Raises PluginFailed for what is no proposer, and for all that is not said to be
    raised by one.
    """

    def __init__(self, proposer: Proposer, who: str) -> None:
        self._proposer = proposer
        self._who = who
        if missing := [name for name in _PARTS if not hasattr(proposer, name)]:
            raise PluginFailed(f"{who} has no {missing[0]}, which a proposer needs; see docs/plugins.md")
        with blamed(self._who):
            self.serial, self.branching = bool(proposer.serial), bool(proposer.branching)

    def exhausted(self, number: int) -> str | None:
        with blamed(self._who):
            why = self._proposer.exhausted(number)
            return None if why is None else str(why)

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        with blamed(self._who):
            given = await self._proposer.propose(brief)
            if isinstance(given, Mapping | str | Proposal):
                raise TypeError(f"it gave back a {type(given).__name__}, not a list of Proposal")
            proposals = list(given)
            if wrong := [it for it in proposals if not isinstance(it, Proposal)]:
                raise TypeError(f"it proposed a {type(wrong[0]).__name__}, not a Proposal")
            return proposals


@contextmanager
def blamed(who: str) -> Iterator[None]:
    """What we raise ourselves, in what others may call, has a meaning of its own and passes through."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _failed(who, error) from error
    except ValidationError:
        raise  # of a proposal, as the words of a model make one now and then: the attempt is refunded
    except (Exception, SystemExit) as error:
        if type(error).__module__.partition(".")[0] in _OURS:
            raise
        raise _failed(who, error) from error


def _failed(who: str, error: BaseException) -> PluginFailed:
    return PluginFailed(
        f"{who} failed: {told(error)}; nothing is lost: mend it and resume, with --verbose for the trace"
    )
