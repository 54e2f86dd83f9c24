"""What stood ready at a provider for no single trial, and what that cost."""

from orchestrator.domain.records import Campaign
from orchestrator.views.campaign import figures


def standing_line(campaign: Campaign, now: int = 0) -> str:
    """Empty where nothing ever stood; `now` is how much of it stands still."""
    if not campaign.stood:
        return ""
    still = f", {now} of them now" if now else ""
    return f"standing: {figures.dollars(campaign.standing.microdollars)} ({campaign.stood} stood ready{still})"
