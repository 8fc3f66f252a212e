"""Asks for what is missing or due: a list by topic, and up to four daemon threads, alive only while there is work.

The lock of the cache that owns it is held around everything but the question itself.
"""

from __future__ import annotations

import threading
from typing import Callable, Generic, Mapping, Sequence, Union

from cipherlane.errors import CipherlaneError, ErrorCode, without_frames
from cipherlane.keys.entry import G, Name
from cipherlane.keys.source import MAX_KIDS, Leased

MAX_REQUESTS = 4
"""Requests in flight at once."""

Answers = Mapping[Name, Union[Leased[G], CipherlaneError]]
Fetch = Callable[[str, Sequence[Name]], Answers[G]]
Settle = Callable[[Sequence[Name], Answers[G], CipherlaneError, float], None]
"""Takes the names that were asked for, the answers, the error for those without one, and when they were asked for."""


class Requests(Generic[G]):
    """See the module.

    Args:
        fetch: asks for grants of one topic, at most 1,000 names; may answer for more than was asked
        settle: takes the outcome; the lock is held
        clock: of the leases
        lock: of the cache

    Attributes:
        asked: requests that were made
        failed: those of them that brought an error
        active: threads that ask now
    """

    def __init__(self, fetch: Fetch[G], settle: Settle[G], clock: Callable[[], float], lock: threading.Lock) -> None:
        self._fetch = fetch
        self._settle = settle
        self._clock = clock
        self._lock = lock
        self._pending: dict[str, list[Name]] = {}
        self.asked = self.failed = self.active = 0

    def add(self, name: Name) -> None:
        """Puts a name on the list."""
        self._pending.setdefault(name.topic, []).append(name)

    def clear(self) -> None:
        """Empties the list."""
        self._pending = {}

    def dispatch(self) -> None:
        """Starts threads for what is on the list."""
        for _ in range(min(len(self._pending), MAX_REQUESTS - self.active)):
            self.active += 1
            try:
                threading.Thread(target=self._work, name="cipherlane-keys", daemon=True).start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                self.active -= 1
                self._give_up()

    def _give_up(self) -> None:
        error = CipherlaneError(ErrorCode.INTERNAL, "cannot start a thread to ask the key service")
        while self._pending:
            self._settle(self._pending.popitem()[1], {}, error, self._clock())

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self.active -= 1
                    return
                topic = next(iter(self._pending))
                names = self._pending.pop(topic)
            for start in range(0, len(names), MAX_KIDS):
                self._request(topic, names[start : start + MAX_KIDS])

    def _request(self, topic: str, names: Sequence[Name]) -> None:
        sent_at = self._clock()
        answers: Answers[G] = {}
        error = CipherlaneError(ErrorCode.KEY_SERVICE_BAD_ANSWER, "the answer leaves out what was asked for")
        failed = 0
        try:
            answers = self._fetch(topic, names)
        except CipherlaneError as failure:
            error, failed = without_frames(failure), 1
        except Exception as failure:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            detail = f"asking the key service failed: {type(failure).__name__}"
            error, failed = CipherlaneError(ErrorCode.INTERNAL, detail), 1
        with self._lock:
            self.asked += 1
            self.failed += failed
            self._settle(names, answers, error, sent_at)
