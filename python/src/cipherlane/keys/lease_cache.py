"""A bounded cache of leases: one request in flight for each, renewal off the calling thread, back-off, wipe at the end.

The same engine serves encryption keys, decryption keys and the policy on plaintext.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import Callable, Generic, Iterable, Optional, Sequence, Union

from cipherlane import forking
from cipherlane.clock import Clock, lease_clock
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys.entry import Entry, Flight, G, Name, Outcome
from cipherlane.keys.requests import Answers, Fetch, Requests
from cipherlane.keys.settings import KeySettings
from cipherlane.keys.source import KeyedGrant, Leased
from cipherlane.keys.sweeper import Sweeper
from cipherlane.spread import spread

LOOK_AGAIN = 1.0
"""Seconds for which a grant may be used without asking the cache, which then notices use and has leases renewed."""


class LeaseCache(Generic[G]):
    """See the module. Safe for use by threads; a forked child starts empty.

    Args:
        fetch: asks for grants of one topic, at most 1,000 names; may answer for more than was asked
        settings: deadline, back-off, bound
        on_wipe: told of each grant that is wiped, so that what was built on it goes too; must not call back
        clock: of the leases
    """

    _entries: dict[Name, Entry[G]]
    _requests: Requests[G]
    _next_expiry: float
    _sweeper: Sweeper

    def __init__(
        self,
        fetch: Fetch[G],
        settings: KeySettings,
        *,
        on_wipe: Callable[[Name, G], None] = lambda _name, _grant: None,
        clock: Clock = lease_clock,
    ) -> None:
        self._fetch = fetch
        self._settings = settings
        self._on_wipe = on_wipe
        self._clock = clock
        self._closed = False
        self._start_afresh()
        forking.reset_in_child(self)

    def peek(self, name: Name) -> Optional[G]:
        """The grant if it is there and its lease runs; does not wait; has it renewed when that is due [CL-KEY-006]."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        now = self._clock()
        if now >= entry.attend_at:
            return self._attend(name, entry)
        entry.used_at = now
        return entry.grant

    def get(self, names: Iterable[Name], deadline: Optional[float] = None) -> dict[Name, Outcome[G]]:
        """For each name its grant or the error; what is missing is asked for, together for each topic [CL-KEY-010].

        Args:
            names: what is needed
            deadline: moment of ``time.monotonic()`` until which to wait [CL-KEY-011]; by default as the settings say

        Raises:
            CipherlaneError: ``closed``
        """
        until = self.deadline() if deadline is None else deadline
        outcomes: dict[Name, Outcome[G]] = {}
        flights: dict[Name, Flight[G]] = {}
        with self._lock:
            if self._closed:
                raise _closed()
            now = self._clock()
            for name in names:
                known = self._known(name, now)
                if isinstance(known, Flight):
                    flights[name] = known
                else:
                    outcomes[name] = known
            self._requests.dispatch()
        for name, flight in flights.items():
            outcomes[name] = self._wait(name, flight, until)
        return outcomes

    def get_one(self, name: Name) -> G:
        """The grant of one name; raises its error."""
        outcome = self.peek(name) or self.get((name,))[name]
        if isinstance(outcome, CipherlaneError):
            raise outcome
        return outcome

    def current(self, name: Name) -> Optional[G]:
        """The grant if it is there, without any effect."""
        return self._entries.get(name, Entry()).grant

    def deadline(self) -> float:
        """Until when a call that begins now may wait, as a moment of ``time.monotonic()``."""
        return time.monotonic() + self._settings.deadline

    def sweep(self) -> float:
        """Wipes what has expired [CL-KEY-005]; the sweeper's thread calls this.

        Returns:
            seconds until the next lease ends
        """
        with self._lock:
            now = self._clock()
            if now >= self._next_expiry:
                for name, entry in self._entries.items():
                    if entry.live(now) is None:
                        self._wipe(name, entry.drop())
                ends = (entry.expires_at for entry in self._entries.values() if entry.grant is not None)
                self._next_expiry = min(ends, default=float("inf"))
            return self._next_expiry - now

    def close(self) -> None:
        """Wipes everything [CL-KEY-013]; whoever waits gets ``closed``. May be called again."""
        with self._lock:
            self._closed = True
            self._sweeper.stop()
            for name, entry in self._entries.items():
                self._wipe(name, entry.drop())
                entry.land(_closed())
            self._entries = {}
            self._requests.clear()

    def use_until(self, name: Name) -> float:
        """Until when the grant of a name may be used without asking again; its lease runs, and is not to be renewed."""
        return min(self._entries.get(name, Entry()).attend_at, self._clock() + LOOK_AGAIN)

    def grants(self) -> list[G]:
        """What is leased now."""
        with self._lock:
            return [entry.grant for entry in self._entries.values() if entry.grant is not None]

    def numbers(self) -> dict[str, Union[int, float]]:
        """What the cache reports of itself (spec/kafka.md, "Numbers")."""
        with self._lock:
            now = self._clock()
            ends = [entry.expires_at - now for entry in self._entries.values() if entry.grant is not None]
            keys = sum(isinstance(entry.grant, KeyedGrant) for entry in self._entries.values())
            return {
                "key_requests_total": self._requests.asked,
                "key_request_failures_total": self._requests.failed,
                "keys_cached": keys,
                "lease_seconds_left": max(min(ends, default=0.0), 0.0),
            }

    def __len__(self) -> int:
        """How many names are known."""
        return len(self._entries)

    def after_fork_in_child(self) -> None:
        """Starts empty: threads did not come along, and the parent's locks may be locked."""
        for entry in self._entries.values():
            if entry.grant is not None:
                entry.grant.wipe_in_child()
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._entries = {}
        self._requests = Requests(self._fetch, self._settle, self._clock, self._lock)
        self._next_expiry = float("inf")
        self._sweeper = Sweeper(self)

    # Looking up; the lock is held where it is not taken.

    def _attend(self, name: Name, entry: Entry[G]) -> Optional[G]:
        """Answers while the lease runs, and has it renewed when that is due."""
        with self._lock:
            now = self._clock()
            grant = entry.live(now)
            if grant is not None:
                entry.used_at = now
                self._renew_if_due(name, entry, now)
                self._requests.dispatch()
            return grant

    def _known(self, name: Name, now: float) -> Union[Outcome[G], Flight[G]]:
        entry = self._entries.setdefault(name, Entry())
        entry.used_at = now
        grant = entry.live(now)
        if grant is not None:
            self._renew_if_due(name, entry, now)
            return grant
        return entry.backing_off(now) or entry.flight or self._ask(name, entry)

    def _renew_if_due(self, name: Name, entry: Entry[G], now: float) -> None:
        if entry.due(now):
            self._ask(name, entry)

    def _ask(self, name: Name, entry: Entry[G]) -> Flight[G]:
        self._requests.add(name)
        return entry.depart()

    def _wait(self, name: Name, flight: Flight[G], until: float) -> Outcome[G]:
        flight.done.wait(max(0.0, until - time.monotonic()))
        if flight.outcome is not None:
            return flight.outcome
        with self._lock:
            return self._entries.get(name, Entry()).overdue()

    # Settling what came back.

    def _settle(self, names: Sequence[Name], answers: Answers[G], error: CipherlaneError, sent_at: float) -> None:
        if self._closed:
            for late in answers.values():
                if not isinstance(late, CipherlaneError):
                    late.grant.wipe()
            return
        outcomes = {name: self._take(name, answers.get(name, error), sent_at) for name in {*names, *answers}}
        asked = [(self._entries[name], outcomes[name]) for name in names]
        self._evict(frozenset(names))
        for entry, outcome in asked:
            entry.land(outcome)

    def _take(self, name: Name, answer: Union[Leased[G], CipherlaneError], sent_at: float) -> Outcome[G]:
        entry = self._entries.setdefault(name, Entry())
        now = self._clock()
        if isinstance(answer, CipherlaneError):
            return self._fail(name, entry, answer, now)
        if now >= sent_at + answer.expires_in:
            answer.grant.wipe()
            late = CipherlaneError(ErrorCode.LEASE_EXPIRED, "the answer came after its lease had ended")
            return self._fail(name, entry, late, now)
        return self._renew(name, entry, answer, sent_at)

    def _renew(self, name: Name, entry: Entry[G], answer: Leased[G], sent_at: float) -> G:
        unneeded = entry.renew(answer, sent_at, self._clock())
        if unneeded is answer.grant:
            unneeded.wipe()  # a second copy of a key that stays
        else:
            self._wipe(name, unneeded)
        self._next_expiry = min(self._next_expiry, entry.expires_at)
        self._sweeper.start()
        return entry.grant or answer.grant

    def _fail(self, name: Name, entry: Entry[G], error: CipherlaneError, now: float) -> Outcome[G]:
        backoff = spread(self._settings.retry_backoff, 0.8, 1.2)
        self._wipe(name, entry.fail(error, now + backoff))
        return entry.live(now) or error

    def _wipe(self, name: Name, grant: Optional[G]) -> None:
        if grant is not None:
            grant.wipe()
            self._on_wipe(name, grant)

    def _evict(self, asked: frozenset[Name]) -> None:
        """Makes room: the least recently used goes, but for what somebody still waits for."""
        surplus = len(self._entries) - self._settings.cache_max
        if surplus <= 0:
            return
        idle = [name for name, entry in self._entries.items() if entry.flight is None or name in asked]
        for name in heapq.nsmallest(surplus, idle, key=lambda name: self._entries[name].used_at):
            self._wipe(name, self._entries.pop(name).drop())


def _closed() -> CipherlaneError:
    return CipherlaneError(ErrorCode.CLOSED, "the client was closed")
