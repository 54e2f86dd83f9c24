"""Where a run's candidates are, in words: said where the backend is shown, with what people must be told of it."""

from orchestrator.domain.records import Run, SiteRecord
from orchestrator.views.campaign.markdown import code


def site_line(site: SiteRecord) -> str:
    """What holds the candidates, and where the judge is, if not with them."""
    judge = "" if site.judge == site.backend else f"; judge, gold and agents stay on {site.judge}"
    return f"candidates run on {site.boundary}{judge}"


def site_lines(site: SiteRecord | None) -> list[str]:
    """The same with every caveat; nothing where all is at home, as it was before there were other places."""
    if site is None or (site.judge == site.backend and not site.caveats):
        return []
    return [site_line(site), *(f"note: {caveat}" for caveat in site.caveats)]


def sites_section(run: Run) -> list[str]:
    """All places that a run was at, the present one last; in Markdown, where others' words stand in code."""
    lines: list[str] = []
    for site in run.sites:
        lines += [f"- {code(site_line(site), 400)}", *(f"  - {code(caveat, 400)}" for caveat in site.caveats)]
    return lines
