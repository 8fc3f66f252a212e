"""A bounded cache of leases: one request in flight for each, renewal off the calling thread, back-off, wipe at the end.

The same engine serves encryption keys, decryption keys and the policy on plaintext. What is missing or due is put on a
list by topic; up to four daemon threads, alive only while there is work, ask for whatever the list holds for a topic.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from dataclasses import dataclass
from typing import Callable, Generic, Iterable, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union

from cipherlane import forking
from cipherlane.clock import Clock, lease_clock
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys.source import MAX_KIDS, Grant, Leased
from cipherlane.keys.sweeper import Sweeper

MAX_REQUESTS = 4
"""Requests in flight at once."""

_REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_UNKNOWN,
        ErrorCode.TOPIC_FORBIDDEN,
        ErrorCode.NOT_AUTHORIZED,
        ErrorCode.SCOPE_MISMATCH,
        ErrorCode.KEY_UNKNOWN,
        ErrorCode.KEY_DESTROYED,
        ErrorCode.UNAUTHENTICATED,
    }
)


class Name(NamedTuple):
    """What a grant is for: a topic, and for decryption a kid (None: the policy on plaintext)."""

    topic: str
    kid: Optional[bytes] = None


G = TypeVar("G", bound=Grant)
Outcome = Union[G, CipherlaneError]
Answers = Mapping[Name, Union[Leased[G], CipherlaneError]]
Fetch = Callable[[str, Sequence[Name]], Answers[G]]


@dataclass(frozen=True)
class KeySettings:
    """Deadline and back-off in seconds, and how many grants are held at once."""

    deadline: float = 10.0
    retry_backoff: float = 0.5
    cache_max: int = 10_000


class _Flight(Generic[G]):
    """A request that is under way, and what came of it."""

    __slots__ = ("done", "outcome")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.outcome: Optional[Outcome[G]] = None

    def land(self, outcome: Outcome[G]) -> None:
        self.outcome = outcome
        self.done.set()


class _Entry(Generic[G]):
    """What is known of one name. ``attend_at``: from then on the fast path must not answer."""

    __slots__ = ("attend_at", "expires_at", "failure", "flight", "grant", "refresh_at", "retry_at", "used_at")

    def __init__(self) -> None:
        self.grant: Optional[G] = None
        self.failure: Optional[CipherlaneError] = None
        self.flight: Optional[_Flight[G]] = None
        self.attend_at = self.expires_at = self.refresh_at = self.retry_at = self.used_at = float("-inf")


class LeaseCache(Generic[G]):
    """See the module. Safe for use by threads; a forked child starts empty.

    Args:
        fetch: asks for grants of one topic, at most 1,000 names; may answer for more than was asked
        settings: deadline, back-off, bound
        on_wipe: told of each grant that is wiped, so that what was built on it goes too
        clock: of the leases
    """

    _entries: dict[Name, _Entry[G]]
    _pending: dict[str, list[Name]]
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
        if deadline is None:
            deadline = time.monotonic() + self._settings.deadline
        outcomes: dict[Name, Outcome[G]] = {}
        flights: dict[Name, _Flight[G]] = {}
        with self._lock:
            self._check_open()
            now = self._clock()
            for name in names:
                known = self._known(name, now)
                if isinstance(known, _Flight):
                    flights[name] = known
                else:
                    outcomes[name] = known
            self._dispatch()
        for name, flight in flights.items():
            outcomes[name] = self._wait(name, flight, deadline)
        return outcomes

    def get_one(self, name: Name) -> G:
        """The grant of one name; raises its error."""
        outcome = self.peek(name) or self.get((name,))[name]
        if isinstance(outcome, CipherlaneError):
            raise outcome
        return outcome

    def current(self, name: Name) -> Optional[G]:
        """The grant if it is there, without any effect."""
        entry = self._entries.get(name)
        return entry.grant if entry is not None else None

    def sweep(self) -> float:
        """Wipes what has expired [CL-KEY-005]; the sweeper's thread calls this.

        Returns:
            seconds until the next lease ends
        """
        with self._lock:
            now = self._clock()
            if now >= self._next_expiry:
                for name, entry in self._entries.items():
                    if now >= entry.expires_at:
                        self._wipe(name, entry)
                ends = (entry.expires_at for entry in self._entries.values() if entry.grant is not None)
                self._next_expiry = min(ends, default=float("inf"))
            return self._next_expiry - now

    def close(self) -> None:
        """Wipes everything [CL-KEY-013]; whoever waits gets ``closed``. May be called again."""
        with self._lock:
            self._closed = True
            self._sweeper.stop()
            for name, entry in self._entries.items():
                self._wipe(name, entry)
                if entry.flight is not None:
                    entry.flight.land(_closed())
            self._entries = {}
            self._pending = {}

    def __len__(self) -> int:
        """How many names are known."""
        return len(self._entries)

    def after_fork_in_child(self) -> None:
        """Starts empty: threads did not come along, and the parent's locks may be locked."""
        for entry in self._entries.values():
            if entry.grant is not None:
                entry.grant.wipe_in_child()
        self._start_afresh()

    # Looking up. The lock is held from here on, except where it is taken.

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._entries = {}
        self._pending = {}
        self._requests = 0
        self._next_expiry = float("inf")
        self._sweeper = Sweeper(self)

    def _check_open(self) -> None:
        if self._closed:
            raise _closed()

    def _attend(self, name: Name, entry: _Entry[G]) -> Optional[G]:
        with self._lock:
            now = self._clock()
            if entry.grant is None or now >= entry.expires_at:
                return None
            entry.used_at = now
            self._renew_if_due(name, entry, now)
            self._dispatch()
            return entry.grant

    def _known(self, name: Name, now: float) -> Union[Outcome[G], _Flight[G]]:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = _Entry()
        entry.used_at = now
        if entry.grant is not None and now < entry.expires_at:
            self._renew_if_due(name, entry, now)
            return entry.grant
        if entry.failure is not None and now < entry.retry_at:
            return entry.failure
        return entry.flight or self._ask(name, entry)

    def _renew_if_due(self, name: Name, entry: _Entry[G], now: float) -> None:
        if entry.flight is None and now >= max(entry.refresh_at, entry.retry_at):
            self._ask(name, entry)
            entry.attend_at = entry.expires_at

    def _ask(self, name: Name, entry: _Entry[G]) -> _Flight[G]:
        flight: _Flight[G] = _Flight()
        entry.flight = flight
        self._pending.setdefault(name.topic, []).append(name)
        return flight

    def _wait(self, name: Name, flight: _Flight[G], deadline: float) -> Outcome[G]:
        flight.done.wait(max(0.0, deadline - time.monotonic()))
        return flight.outcome or self._overdue(name)

    def _overdue(self, name: Name) -> CipherlaneError:
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None and entry.failure is not None:
                return entry.failure
            if entry is not None and entry.expires_at > float("-inf"):
                return CipherlaneError(ErrorCode.LEASE_EXPIRED, "the lease ended and no renewal came in time")
            return CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, "no answer within cipherlane.keys.deadline.ms")

    # Asking.

    def _dispatch(self) -> None:
        for _ in range(min(len(self._pending), MAX_REQUESTS - self._requests)):
            self._requests += 1
            try:
                threading.Thread(target=self._work, name="cipherlane-keys", daemon=True).start()
            except RuntimeError:  # no more threads, or the interpreter is ending
                self._requests -= 1
                self._give_up()

    def _give_up(self) -> None:
        for topic in list(self._pending):
            error = CipherlaneError(ErrorCode.INTERNAL, "cannot start a thread to ask the key service")
            self._settle(self._pending.pop(topic), {}, error, self._clock())

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._requests -= 1
                    return
                topic = next(iter(self._pending))
                names = self._pending.pop(topic)
            for start in range(0, len(names), MAX_KIDS):
                self._request(topic, names[start : start + MAX_KIDS])

    def _request(self, topic: str, names: Sequence[Name]) -> None:
        sent_at = self._clock()
        answers: Answers[G] = {}
        error: CipherlaneError = CipherlaneError(
            ErrorCode.KEY_SERVICE_BAD_ANSWER, "the answer leaves out what was asked for"
        )
        try:
            answers = self._fetch(topic, names)
        except CipherlaneError as failure:
            error = _without_frames(failure)
        except Exception as failure:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            error = CipherlaneError(ErrorCode.INTERNAL, f"asking the key service failed: {type(failure).__name__}")
        with self._lock:
            self._settle(names, answers, error, sent_at)

    # Settling what came back.

    def _settle(self, names: Sequence[Name], answers: Answers[G], error: CipherlaneError, sent_at: float) -> None:
        if self._closed:
            _wipe_all(answers)
            return
        asked = frozenset(names)
        for name in asked.union(answers):
            entry = self._entries.get(name)
            if entry is None:
                entry = self._entries[name] = _Entry()
            answer = answers.get(name, error)
            if isinstance(answer, CipherlaneError):
                outcome = self._fail(name, entry, answer)
            else:
                outcome = self._renew(name, entry, answer, sent_at)
            if entry.flight is not None and name in asked:
                entry.flight.land(outcome)
                entry.flight = None
        self._evict()

    def _renew(self, name: Name, entry: _Entry[G], answer: Leased[G], sent_at: float) -> Outcome[G]:
        expires_at = sent_at + answer.expires_in
        if self._clock() >= expires_at:
            answer.grant.wipe()
            return self._fail(
                name,
                entry,
                CipherlaneError(ErrorCode.LEASE_EXPIRED, "the answer came after its lease had ended"),
            )
        self._replace(name, entry, answer.grant)
        entry.failure = None
        entry.expires_at = expires_at
        entry.refresh_at = entry.attend_at = sent_at + answer.refresh_in
        self._next_expiry = min(self._next_expiry, expires_at)
        self._sweeper.start()
        return entry.grant or answer.grant

    def _replace(self, name: Name, entry: _Entry[G], grant: G) -> None:
        if entry.grant is not None and self._clock() < entry.expires_at and entry.grant.same_as(grant):
            grant.wipe()
            return
        self._wipe(name, entry)
        entry.grant = grant

    def _fail(self, name: Name, entry: _Entry[G], error: CipherlaneError) -> Outcome[G]:
        backoff = self._settings.retry_backoff
        entry.failure = error
        entry.retry_at = self._clock() + backoff * random.uniform(0.8, 1.2)  # noqa: S311 - spreads requests, hides nothing
        if error.error_code in _REFUSALS:
            self._wipe(name, entry)
        entry.attend_at = min(entry.retry_at, entry.expires_at)
        return entry.grant if entry.grant is not None and self._clock() < entry.expires_at else error

    def _wipe(self, name: Name, entry: _Entry[G]) -> None:
        grant, entry.grant = entry.grant, None
        if grant is not None:
            entry.attend_at = float("-inf")
            grant.wipe()
            self._on_wipe(name, grant)

    def _evict(self) -> None:
        surplus = len(self._entries) - self._settings.cache_max
        if surplus <= 0:
            return
        idle = [name for name, entry in self._entries.items() if entry.flight is None]
        for name in heapq.nsmallest(surplus, idle, key=lambda name: self._entries[name].used_at):
            self._wipe(name, self._entries.pop(name))


def _wipe_all(answers: Answers[G]) -> None:
    for answer in answers.values():
        if not isinstance(answer, CipherlaneError):
            answer.grant.wipe()


def _without_frames(error: CipherlaneError) -> CipherlaneError:
    """The error without its traceback: the frames' local variables may hold an answer with keys [CL-KEY-015]."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _closed() -> CipherlaneError:
    return CipherlaneError(ErrorCode.CLOSED, "the client was closed")
