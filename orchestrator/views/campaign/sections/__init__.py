"""All that is said about a campaign, in its order. To say more, write a function from the material to a section and
name it here: the status, the report, the end of a run and their JSON show it, each in its own way.
"""

from collections.abc import Callable
from enum import Flag, auto

from orchestrator.domain.state import no_collection
from orchestrator.views.campaign.sections import evidence, money, results, work
from orchestrator.views.campaign.sections.combination import combination
from orchestrator.views.campaign.sections.control import control
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.campaign.sections.minimal import minimal
from orchestrator.views.campaign.sections.playbook import playbook
from orchestrator.views.campaign.sections.population import population
from orchestrator.views.campaign.sections.pruning import pruning
from orchestrator.views.campaign.sections.rounds import round_
from orchestrator.views.render.model import Section


def _credit(it: Material) -> Section:
    # Loaded here: the status does not show it, and need not wait for all that learns.
    from orchestrator.views.campaign.sections.credit import credit

    return credit(it)


class Place(Flag):
    STATUS = auto()
    REPORT = auto()
    ENDING = auto()


_STATUS, _REPORT, _ENDING = Place.STATUS, Place.REPORT, Place.ENDING
_EVERYWHERE = _STATUS | _REPORT | _ENDING
_LOOKED_UP = _STATUS | _REPORT

# Where each is shown: what is long, or takes long to find, is not in the status of a campaign at work.
SECTIONS: dict[Callable[[Material], Section], Place] = {
    work.task: _LOOKED_UP,
    work.shape: _LOOKED_UP,
    work.site: _LOOKED_UP,
    work.tier: _EVERYWHERE,
    work.now: _STATUS,
    results.best: _EVERYWHERE,
    combination: _EVERYWHERE,
    results.change: _REPORT | _ENDING,
    minimal: _EVERYWHERE,
    round_: _ENDING,
    work.waits: _EVERYWHERE,
    work.requests: _STATUS,
    work.steering: _LOOKED_UP,
    results.frontier: _LOOKED_UP,
    population: _LOOKED_UP,
    results.nodes: _LOOKED_UP,
    results.every_node: _REPORT,
    results.path: _REPORT,
    results.endings: _REPORT,
    results.pace: _LOOKED_UP,
    money.accounts: _LOOKED_UP,
    money.models: _LOOKED_UP,
    money.verifier: _LOOKED_UP,
    money.rented: _LOOKED_UP,
    money.unsettled: _EVERYWHERE,
    results.goodput: _REPORT,
    control: _EVERYWHERE,
    evidence.audited: _LOOKED_UP,
    evidence.heldout: _EVERYWHERE,
    money.offers: _EVERYWHERE,
    money.outputs: _LOOKED_UP,
    pruning: _EVERYWHERE,
    playbook: _LOOKED_UP,
    _credit: _REPORT,
    evidence.certified: _LOOKED_UP,
    evidence.machine: _LOOKED_UP,
    evidence.too_short: _REPORT,
    evidence.screened: _LOOKED_UP,
    work.answers: _REPORT,
    results.cohorts: _REPORT,
    results.stalls: _REPORT,
    results.recent: _STATUS,
    work.stopped: _REPORT | _ENDING,
    money.cost: _REPORT | _ENDING,
}


def sections(material: Material, place: Place) -> list[Section]:
    with no_collection():
        return [make(material) for make, where in SECTIONS.items() if place in where]
