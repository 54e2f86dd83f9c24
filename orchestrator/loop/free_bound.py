"""No campaign goes on for ever without using up an attempt: so many may end free in a row, and cost so much. Then it
ends.
"""

from dataclasses import dataclass

from orchestrator.budget import Account, micro_dollars, shown
from orchestrator.domain.records import Campaign
from orchestrator.loop.money import worst_of_search
from orchestrator.loop.workbench import Parts

# Without a word of the task: this much, or what so many attempts set aside, whichever is more.
_USD = 5.0
_ATTEMPTS = 3


@dataclass(frozen=True)
class FreeBound:
    """Counted since an attempt was last used up, or a person let a stopped campaign go on."""

    endings: int
    microdollars: int

    @classmethod
    def of(cls, parts: Parts) -> "FreeBound":
        stall = parts.task.stall
        worst = _ATTEMPTS * worst_of_search(parts)[Account.USD]
        usd = max(micro_dollars(_USD), worst) if stall.in_a_row_usd is None else micro_dollars(stall.in_a_row_usd)
        return cls(stall.in_a_row, usd)

    def __str__(self) -> str:
        return f"at most {self.endings} attempts in a row, and {shown(Account.USD, self.microdollars)}, may end free"

    def reached(self, campaign: Campaign) -> str | None:
        """Why the campaign ends; None while it may go on."""
        if campaign.free < self.endings and campaign.free_usd < self.microdollars:
            return None
        cost = shown(Account.USD, campaign.free_usd)
        times = "attempt" if campaign.free == 1 else "attempts in a row"
        return (
            f"{campaign.free} {times} ended free and cost {cost}, and none was used up; blastdoor stalls and blastdoor"
            " status tell why, blastdoor resume goes on"
        )
