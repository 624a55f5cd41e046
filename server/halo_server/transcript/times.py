"""When something was said, in every spelling of an instant. It changes when the world counts time in another way."""

import re
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime

from halo_server.domain import JSON, Instant

__all__ = ["read_time", "stated_time"]

_LATEST = 4_102_444_800_000  # 2100-01-01; a later time is a unit we do not know
_EARLIEST = -2_208_988_800_000  # 1900-01-01
_RECENT = 315_532_800_000  # 1980-01-01: before it nothing was stamped in milliseconds or finer
_MOST = 1e20
_FINER = (1, 1_000, 1_000_000)  # milliseconds, microseconds, nanoseconds in a millisecond
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_MAIL = re.compile(r"(?:[A-Za-z]{3}, )?\d{1,2} [A-Za-z]{3} \d{4} \d{1,2}:\d{2}")
_LONGEST = 64


def read_time(value: JSON) -> Instant | None:
    """Return the instant in `value` (ISO 8601 with or without offset, seconds, milliseconds), or None if unusable.

    A time without an offset is read as UTC. Numbers below 10^11 are seconds: in milliseconds they would lie in 1973; below
    10^8 they are counters, not times.
    """
    if isinstance(value, str):
        found = _iso(value.strip(), UTC)
        return found if found is not None and found >= 0 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e8 <= value < _MOST:
        return None
    ms = round(value * 1000 if value < 1e11 else value)
    return ms if ms <= _LATEST else None


def stated_time(value: JSON, zone: tzinfo | None = None) -> Instant | None:
    """Return the instant an application wrote beside a message, or None if it cannot be told.

    Besides what `read_time` reads: microseconds and nanoseconds, numbers as text, RFC 2822, the objects of MongoDB and
    Firestore, and times before 1970. The unit of a number is the one in which it lies between 1980 and 2100.

    Args:
        value: What it wrote.
        zone: Where a time without an offset was written. Unknown when None: on the sender's clock, whose zone we do not know.
    """
    for _ in range(3):  # an object in an object: {"$date": {"$numberLong": "…"}}
        if not isinstance(value, dict):
            break
        value = _inner(value)
    if isinstance(value, str):
        return _from_text(value.strip(), zone)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        return None
    return _from_number(value)


def _inner(value: dict[str, JSON]) -> JSON:
    seconds = next((value[key] for key in ("seconds", "_seconds") if key in value), None)
    return (
        seconds
        if seconds is not None
        else next((value[k] for k in ("$date", "$numberLong") if k in value), None)
    )


def _from_text(text: str, zone: tzinfo | None) -> Instant | None:
    if len(text) > _LONGEST:
        return None
    if _NUMBER.fullmatch(text):
        return _from_number(float(text))
    if not _MAIL.match(text):
        return _iso(text, zone)
    try:
        return _instant(parsedate_to_datetime(text), zone)
    except (ValueError, OverflowError):
        return None


def _from_number(value: float) -> Instant | None:
    """Return the instant; small positive numbers are counters, and 0 stands for no time at all."""
    if _EARLIEST <= value * 1000 < 0 or 1e8 <= value <= _LATEST / 1000:
        return round(value * 1000)
    return next((round(value / unit) for unit in _FINER if _RECENT <= value / unit <= _LATEST), None)


def _iso(text: str, zone: tzinfo | None) -> Instant | None:
    try:
        return _instant(datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError):
        return None


def _instant(stated: datetime, zone: tzinfo | None) -> Instant | None:
    if stated.tzinfo is None:
        if zone is None:
            return None
        stated = stated.replace(tzinfo=zone)
    ms = round(stated.timestamp() * 1000)
    return ms if _EARLIEST <= ms <= _LATEST else None
