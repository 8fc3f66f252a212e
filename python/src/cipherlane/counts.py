"""Numbers that a client reports of itself (spec/kafka.md, "Numbers"): records that ended in an error, by code."""

from __future__ import annotations

import threading
from typing import Mapping, Union

from cipherlane import forking

Numbers = dict[str, Union[int, float, Mapping[str, int]]]
"""By name, with ``_``; ``failures_total`` is a dictionary by code."""


class Counts:
    """Counts by name. Safe for use by threads; a forked child starts from 0."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        forking.reset_in_child(self)

    def add(self, name: str) -> None:
        """Counts one."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + 1

    def all(self) -> dict[str, int]:
        """The counts that are not 0."""
        with self._lock:
            return dict(self._counts)

    def after_fork_in_child(self) -> None:
        """Starts afresh: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
