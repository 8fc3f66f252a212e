"""What a lease cache knows of one name: the grant and its lease, the last failure, the request under way.

Not safe for use by threads: the cache's lock is held around all of it, but for the two fields that its fast path reads.
"""

from __future__ import annotations

import threading
from typing import Generic, NamedTuple, Optional, TypeVar, Union

from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys.source import Grant, Leased

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
_NEVER = float("-inf")


class Name(NamedTuple):
    """What a grant is for: a topic, and for decryption a kid (None: the policy on plaintext)."""

    topic: str
    kid: Optional[bytes] = None


G = TypeVar("G", bound=Grant)
Outcome = Union[G, CipherlaneError]


class Flight(Generic[G]):
    """A request that is under way, and what came of it."""

    __slots__ = ("done", "outcome")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.outcome: Optional[Outcome[G]] = None

    def land(self, outcome: Outcome[G]) -> None:
        """Tells those who wait."""
        self.outcome = outcome
        self.done.set()


class Entry(Generic[G]):
    """See the module. Times are those of the lease clock; ``attend_at`` is when the fast path must stop answering."""

    __slots__ = ("attend_at", "expires_at", "failure", "flight", "grant", "refresh_at", "retry_at", "used_at")

    def __init__(self) -> None:
        self.grant: Optional[G] = None
        self.failure: Optional[CipherlaneError] = None
        self.flight: Optional[Flight[G]] = None
        self.attend_at = self.expires_at = self.refresh_at = self.retry_at = self.used_at = _NEVER

    def live(self, now: float) -> Optional[G]:
        """The grant while its lease runs."""
        return self.grant if now < self.expires_at else None

    def backing_off(self, now: float) -> Optional[CipherlaneError]:
        """The last failure, until it may be tried again [CL-KEY-012]."""
        return self.failure if now < self.retry_at else None

    def due(self, now: float) -> bool:
        """Whether it is time to renew, and nobody does [CL-KEY-006]."""
        return self.flight is None and now >= max(self.refresh_at, self.retry_at)

    def depart(self) -> Flight[G]:
        """Notes that it is being asked for; a lease that runs serves until its end meanwhile."""
        self.flight = Flight()
        self.attend_at = self.expires_at
        return self.flight

    def land(self, outcome: Outcome[G]) -> None:
        """Tells those who wait, if any."""
        flight, self.flight = self.flight, None
        if flight is not None:
            flight.land(outcome)

    def renew(self, answer: Leased[G], sent_at: float, now: float) -> Optional[G]:
        """Takes a new lease; it began when the request was sent [CL-KEY-005].

        Returns:
            the grant that is of no use any more and must be wiped: the old one, or the new one if it brings the same
        """
        old, kept = self.grant, self.live(now)
        same = kept is not None and kept.same_as(answer.grant)
        self.grant = kept if same else answer.grant
        self.failure = None
        self.expires_at = sent_at + answer.expires_in
        self.refresh_at = self.attend_at = sent_at + answer.refresh_in
        return answer.grant if same else old

    def fail(self, error: CipherlaneError, retry_at: float) -> Optional[G]:
        """Notes a failure; one that is a refusal ends the lease at once [CL-KEY-008].

        Returns:
            the grant that must be wiped
        """
        self.failure = error
        self.retry_at = retry_at
        ended = self.drop() if error.error_code in _REFUSALS else None
        self.attend_at = min(retry_at, self.expires_at)
        return ended

    def drop(self) -> Optional[G]:
        """Ends the lease.

        Returns:
            the grant that must be wiped
        """
        grant, self.grant = self.grant, None
        self.attend_at = _NEVER
        return grant

    def overdue(self) -> CipherlaneError:
        """What a caller hears who waited as long as it may [CL-KEY-007]."""
        if self.failure is not None:
            return self.failure
        if self.expires_at > _NEVER:
            return CipherlaneError(ErrorCode.LEASE_EXPIRED, "the lease ended and no renewal came in time")
        return CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, "no answer within cipherlane.keys.deadline.ms")
