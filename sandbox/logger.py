"""Logs of this package: as the application configured structlog, else warnings only, on stderr."""

import logging
import sys

import structlog


def logger(**ids: str) -> structlog.typing.FilteringBoundLogger:
    """A logger with ids bound to it."""
    if structlog.is_configured():
        found: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    else:
        quiet = structlog.make_filtering_bound_logger(logging.WARNING)
        found = structlog.wrap_logger(structlog.WriteLogger(sys.stderr), wrapper_class=quiet)
    return found.bind(**ids)
