"""The only place that constructs: from settings and a task folder to working parts."""

from orchestrator.wiring.beginning import How
from orchestrator.wiring.engine import docker_config, docker_site
from orchestrator.wiring.ledgers import campaign_lock
from orchestrator.wiring.models import models_lines, watch_config
from orchestrator.wiring.opening import CannotOpen, Opened, open_campaign, parts_of_run
from orchestrator.wiring.options import Flags, Options, resolve
from orchestrator.wiring.planning import Plan, plan_campaign
from orchestrator.wiring.reading import Reading, ask, campaign_folder, read_campaign
from orchestrator.wiring.site import Site

__all__ = [
    "CannotOpen",
    "Flags",
    "How",
    "Opened",
    "Options",
    "Plan",
    "Reading",
    "Site",
    "ask",
    "campaign_folder",
    "campaign_lock",
    "docker_config",
    "docker_site",
    "models_lines",
    "open_campaign",
    "parts_of_run",
    "plan_campaign",
    "read_campaign",
    "resolve",
    "watch_config",
]
