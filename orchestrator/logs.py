"""Logs on stderr: for people in a terminal, JSON when piped. Ids are bound with structlog's context variables."""

import logging
import sys

import structlog


def configure(level: int = logging.WARNING) -> None:
    last: structlog.typing.Processor = (
        # Without colours: the live view shows these lines with all that is no plain text escaped.
        structlog.dev.ConsoleRenderer(colors=False) if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
