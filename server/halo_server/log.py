"""One JSON line an event, through the standard library's logger `halo`: silent inside an application, on stderr in `serve`.

Lines hold codes, routes and counts; never a key, a question or anything somebody said.
"""

import logging
import sys

import structlog

__all__ = ["get_logger", "to_stderr"]

_PROCESSORS = (
    structlog.stdlib.filter_by_level,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    structlog.processors.JSONRenderer(),
)


def get_logger() -> structlog.stdlib.BoundLogger:
    """Return the server's logger."""
    logger = logging.getLogger("halo")
    bound: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logger, processors=_PROCESSORS, wrapper_class=structlog.stdlib.BoundLogger
    )
    return bound


def to_stderr(level: str) -> None:
    """Print lines of at least `level` to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("halo")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
