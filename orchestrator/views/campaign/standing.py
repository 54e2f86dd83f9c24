"""What a campaign has beside its attempts: what stood ready at a provider, and outputs that it let go."""

from orchestrator.domain.records import Campaign
from orchestrator.task import format_size
from orchestrator.views.campaign import figures


def standing_line(campaign: Campaign, now: int = 0) -> str:
    """Empty where nothing ever stood; `now` is how much of it stands still."""
    if not campaign.stood:
        return ""
    still = f", {now} of them now" if now else ""
    return f"standing: {figures.dollars(campaign.standing.microdollars)} ({campaign.stood} stood ready{still})"


def let_go_line(campaign: Campaign) -> str:
    """Empty where all is still there, and within its budget."""
    told = []
    if campaign.let_go:
        trials = figures.plural(campaign.let_go, "discarded trial")
        told.append(f"those of {trials} were let go ({format_size(campaign.let_go_bytes)}), the oldest first")
    if campaign.over_budget:
        told.append(f"{format_size(campaign.over_budget)} were needed, more than --artifacts allows")
    return f"outputs: {'; '.join(told)}" if told else ""
