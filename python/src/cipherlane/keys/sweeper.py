"""The thread that wipes keys when their leases end, also when nobody asks for them."""

from __future__ import annotations

import threading
import weakref
from typing import Optional, Protocol

_LONGEST_SLEEP = 1.0
"""Seconds. Waiting leaves out time in suspend, leases do not: this bounds how late a key is wiped after waking up."""


class Sweepable(Protocol):
    """Something in which leases end."""

    def sweep(self) -> float:
        """Wipes what has expired; returns the seconds until the next lease ends."""


class Sweeper:
    """Sweeps one object, from the first ``start`` until ``stop``, or until the object or the interpreter is gone."""

    def __init__(self, target: Sweepable) -> None:
        self._target = weakref.ref(target)
        self._wake = threading.Event()
        self._stopped = False
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Starts the thread if it does not run, else has it look again."""
        if self._thread is not None:
            self._wake.set()
            return
        self._thread = threading.Thread(target=self._run, name="cipherlane-sweeper", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def stop(self) -> None:
        """Ends the thread."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            target = self._target()
            if target is None:
                return
            pause = target.sweep()
            del target
            self._wake.wait(min(max(pause, 0.0), _LONGEST_SLEEP))
            self._wake.clear()
