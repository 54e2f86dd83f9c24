"""Why nothing goes on, and what a person can do about it."""

from orchestrator.domain import figures
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Campaign
from orchestrator.domain.state import State


def away_because(campaign: Campaign) -> str:
    """Why nothing is started, and that nobody has to do anything; empty while all providers answer."""
    if not campaign.away:
        return ""
    what = "answers again, and one attempt is tried" if campaign.trying else "is waited for"
    return f"{' and '.join(campaign.away_from)} {what}: {campaign.away}; blastdoor pause --off tries at once"


def silent_because(campaign: Campaign) -> str:
    """Who gave no answer when last asked, before anything waits for it; empty while all answer."""
    if campaign.away or not campaign.silent:
        return ""
    verb = "does" if len(campaign.silent) == 1 else "do"
    return f"{' and '.join(campaign.silent)} {verb} not answer since {figures.clock(campaign.silent_since)}"


def how_it_goes_on(state: State) -> str:
    """What a person types next where nobody works on a campaign: a baseline that failed is not run a second time."""
    root = state.nodes.get(state.run.root)
    if root and root.ending and root.ending is not Ending.SCORED:
        return f"mend the task, then start again with blastdoor {'combine' if state.run.combine else 'run'}"
    return "blastdoor resume goes on"
