"""A service that is down is not waited for again and again: who asks it meanwhile is told at once. Pure, but for its lock."""

import threading
from collections.abc import Callable

__all__ = ["Circuit"]

_FIRST_S = 1.0
_MOST_S = 60.0


class Circuit:
    """Closed while the service answers; open for a while after it did not, longer each time in a row.

    Args:
        monotonic: Seconds on a clock that never goes back.

    Source:
        Michael Nygard, "Release It!", 2007, "Circuit Breaker".
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._failures = 0
        self._closes_at = float("-inf")

    def admits(self) -> bool:
        """Return whether the service may be asked. After a failure one caller may try it, the others wait for the outcome."""
        with self._lock:
            now = self._monotonic()
            if now < self._closes_at:
                return False
            if self._failures:
                self._closes_at = now + _MOST_S
            return True

    def succeeded(self) -> None:
        """The service answered."""
        with self._lock:
            self._failures, self._closes_at = 0, float("-inf")

    def failed(self) -> None:
        """The service did not answer."""
        with self._lock:
            self._closes_at = self._monotonic() + min(_MOST_S, _FIRST_S * 2**self._failures)
            self._failures = min(self._failures + 1, 16)
