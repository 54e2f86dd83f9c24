"""The playbook that agents work with: which version is used, and what attempts with each brought."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import PlaybookVersion
from orchestrator.domain.state import State
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.render.model import Prose, Quote, Section, Table, Words

if TYPE_CHECKING:
    from orchestrator.playbook.results import Tally

_NONE = "There is none: no proposer of this campaign asks a model."


def playbook(it: Material) -> Section:
    campaign, number = it.state.campaign, it.state.campaign.playbook
    if number is None:
        return Section("playbook", "Playbook", "", [Prose(_NONE)], {"playbook": None})
    # Loaded here: most campaigns ask no model, and their status need not wait for it.
    from orchestrator.playbook.results import Tally, tallies

    brought = tallies(it.state, it.ranking, it.run.number)
    versions = [(version, brought.get(version.number, Tally())) for version in it.state.playbooks.values()]
    contest = contest_line(it.state, it.ranking)
    line = f"version {number} of {max(it.state.playbooks)}, by {it.state.playbooks[number].by}"
    rows: list[list[Words]] = [
        [str(version.number), version.by, Quote(version.why), tally.words, Quote(fate(version, it.state))]
        for version, tally in versions
    ]
    data = {
        "present": number,
        "challenger": campaign.challenger,
        "versions": [version_record(version, tally, it.state) for version, tally in versions],
    }
    table = Table(["version", "by", "why", "attempts with it", ""], rows)
    told = f"{line}; {contest}" if contest else line
    return Section("playbook", "Playbook", told, [table], {"playbook": data})


def contest_line(state: State, ranking: Ranking) -> str:
    """Empty where no version is tried beside the present one."""
    from orchestrator.playbook.contest import open_contest

    contest = open_contest(state)
    if contest is None:
        return ""
    found = contest.evidence(state, ranking)
    against = f"version {contest.challenger.number} is tried beside version {contest.present}"
    return f"{against}: {found.told('pair')}"


def fate(version: PlaybookVersion, state: State) -> str:
    if version.number == state.campaign.playbook:
        return "used now"
    return "is being tried" if version.number == state.campaign.challenger else version.fate


def version_record(version: PlaybookVersion, tally: "Tally", state: State) -> dict[str, Any]:
    return version.model_dump(mode="json") | {"state": fate(version, state), "results": asdict(tally)}
