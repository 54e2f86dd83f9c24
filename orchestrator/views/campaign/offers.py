"""What came of asking a model: how many of the changes that it offered were new, in one line."""

from orchestrator.domain.records import Campaign
from orchestrator.views.campaign import figures


def offers_line(campaign: Campaign) -> str:
    """Empty where nobody was asked."""
    if not campaign.offered:
        return ""
    share = f"{campaign.distinct / campaign.offered:.0%}"
    were, are = ("was", "is") if campaign.offered == 1 else ("were", "are")
    offered = f"{figures.plural(campaign.offered, 'change')} that {were} offered"
    line = f"{campaign.distinct:,} of {offered} {are} new ({share})"
    return line + (f", {campaign.unfit:,} did not apply" if campaign.unfit else "")


def offers_record(campaign: Campaign) -> dict[str, int]:
    return {"offered": campaign.offered, "distinct": campaign.distinct, "refused": campaign.unfit}
