"""The clock of leases and sessions: runs on through suspend, does not follow the wall clock (spec/decisions/0004)."""

from __future__ import annotations

import functools
import threading
import time
from typing import Callable, Optional

Clock = Callable[[], float]
"""Seconds since some moment; never goes back."""


class LargerAdvanceClock:
    """Advances by the larger of what the monotonic and the wall clock advanced: for systems without a better one.

    A wall clock that is set forward ends leases early, which is safe; one that is set back changes nothing.
    """

    def __init__(self, monotonic: Clock = time.monotonic, wall: Clock = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._last = (monotonic(), wall())
        self._now = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Seconds since this clock was made."""
        with self._lock:
            last_monotonic, last_wall = self._last
            self._last = (self._monotonic(), self._wall())
            self._now += max(self._last[0] - last_monotonic, self._last[1] - last_wall, 0.0)
            return self._now


def _of_this_system() -> Clock:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return LargerAdvanceClock()


lease_clock: Clock = _of_this_system()
"""The clock of this system."""


def unless_of_system(clock: Clock) -> Optional[Clock]:
    """The clock, or None for that of this system where C code can read it by itself."""
    return None if clock is lease_clock and hasattr(time, "CLOCK_BOOTTIME") else clock
