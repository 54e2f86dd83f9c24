"""What is said of the comparison that a campaign is one side of, where it is."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.budget import Account
from orchestrator.ledger import LedgerError
from orchestrator.settings import Settings
from orchestrator.text import short
from orchestrator.views.page.finding import found_at
from orchestrator.views.page.followed import UNREADABLE, Followed
from orchestrator.views.page.summary import read_standing
from orchestrator.views.render.model import Section
from orchestrator.wiring.reading import AB_FILE

if TYPE_CHECKING:
    from orchestrator.domain.ab import Outcome
    from orchestrator.wiring.ab import Ended

_LONGEST_FILE = 1 << 20


def comparison_of(it: Followed) -> Sequence[Section]:
    """None where it was not run by a comparison; of one that cannot be read, why."""
    folder = it.found.folder.parent
    if not (folder / AB_FILE).is_file():
        return []
    # With them comes a library for numbers.
    from orchestrator.views.campaign.sections.ab import AbMaterial, ab_sections
    from orchestrator.wiring.ab import read_comparing

    try:
        if (folder / AB_FILE).stat().st_size > _LONGEST_FILE:
            raise LedgerError(f"{AB_FILE} is longer than any that blastdoor ab writes")
        read = partial(_outcome, settings=it.settings)
        return ab_sections(AbMaterial(read_comparing(folder, outcome=read), folder))
    except (*UNREADABLE, LookupError, ArithmeticError, TypeError) as error:  # anybody may have written that file
        return [Section("ab", "Comparison", f"It cannot be read: {short(str(error), 400)}")]


def _outcome(folder: Path, ended: "Ended", settings: Settings | None) -> "Outcome":
    """Read as the page reads what may be anybody's folder."""
    from orchestrator.wiring.ab import outcome_at

    with read_standing(found_at(folder), settings) as it:
        return outcome_at(it.state, it.ranking, it.accounts.used(Account.USD), ended)
