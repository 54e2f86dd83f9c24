"""The only place that constructs: from settings and a task folder to working parts."""

from orchestrator.run_options import Flags
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.beginning import How
from orchestrator.wiring.choice import NO_GPU, SiteChoice
from orchestrator.wiring.ledgers import campaign_lock
from orchestrator.wiring.models import models_lines, watch_config
from orchestrator.wiring.opening import CannotOpen, Opened, open_campaign, parts_of_run, site_of_campaign, site_of_run
from orchestrator.wiring.options import Options, resolve, resolve_site
from orchestrator.wiring.planning import Plan, plan_campaign
from orchestrator.wiring.reading import Reading, ask, campaign_folder, read_campaign, task_folder_of
from orchestrator.wiring.site import About, Provider, Site
from orchestrator.wiring.sites import make_provider, open_site

__all__ = [
    "NO_GPU",
    "About",
    "CannotOpen",
    "Flags",
    "How",
    "Opened",
    "Options",
    "Plan",
    "Provider",
    "Reading",
    "Site",
    "SiteChoice",
    "ask",
    "campaign_folder",
    "campaign_lock",
    "docker_config",
    "docker_site",
    "make_provider",
    "models_lines",
    "open_campaign",
    "open_site",
    "parts_of_run",
    "plan_campaign",
    "read_campaign",
    "resolve",
    "resolve_site",
    "site_of_campaign",
    "site_of_run",
    "task_folder_of",
    "watch_config",
]
