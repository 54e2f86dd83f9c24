"""Logs of this package: as the application configured structlog, else warnings only, on stderr."""

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def logger(**ids: str) -> "FilteringBoundLogger":
    """A logger with ids bound to it."""
    # Loaded here: it brings a third of what the small processes beside a campaign would load, and most never log.
    import structlog

    if structlog.is_configured():
        found: FilteringBoundLogger = structlog.get_logger()
    else:
        quiet = structlog.make_filtering_bound_logger(logging.WARNING)
        found = structlog.wrap_logger(structlog.WriteLogger(sys.stderr), wrapper_class=quiet)
    return found.bind(**ids)
