"""The keys that an encryptor or a decryptor holds, and what each asks the key source."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Collection, Optional, Sequence, Union

from cipherlane import forking
from cipherlane.clock import Clock, lease_clock
from cipherlane.errors import CipherlaneError
from cipherlane.keys.entry import Name, Outcome
from cipherlane.keys.lease_cache import LeaseCache
from cipherlane.keys.requests import Answers
from cipherlane.keys.settings import KeySettings
from cipherlane.keys.source import (
    DecryptionGrant,
    EncryptionGrant,
    KeySource,
    Leased,
    PlaintextPolicy,
    UnencryptedMode,
    UsageReport,
)

LAST_REPORT = 1.0
"""Seconds that closing may take to report what was encrypted [CL-KEY-017]."""

TopicGrant = Union[EncryptionGrant, UnencryptedMode]
ReadingGrant = Union[DecryptionGrant, PlaintextPolicy]


class EncryptionKeys:
    """The current key, or the mode without a key, of each topic. Safe for use by threads.

    Args:
        source: who is asked
        settings: deadline, back-off, bound
        on_wipe: told the topic whose grant was wiped
        clock: of the leases
    """

    def __init__(
        self,
        source: KeySource,
        settings: KeySettings,
        *,
        on_wipe: Callable[[str], None] = lambda _topic: None,
        clock: Clock = lease_clock,
    ) -> None:
        self._source = source
        self._on_wipe = on_wipe
        self._cache: LeaseCache[TopicGrant] = LeaseCache(self._fetch, settings, on_wipe=self._wiped, clock=clock)
        self._records_before = 0
        self._unreported: dict[str, UsageReport] = {}
        forking.reset_in_child(self)

    def get(self, topic: str) -> TopicGrant:
        """What the policy says of a topic, with its key; raises ``CipherlaneError``."""
        return self._cache.get_one(Name(topic))

    def use_until(self, topic: str) -> float:
        """Until when what :meth:`get` gave may be used without asking again: a moment of the clock."""
        return self._cache.use_until(Name(topic))

    def records(self) -> int:
        """Records encrypted since the beginning."""
        grants = self._cache.grants()
        return self._records_before + sum(grant.usage.records for grant in grants if isinstance(grant, EncryptionGrant))

    def numbers(self) -> dict[str, Union[int, float]]:
        """What the cache reports of itself (spec/kafka.md, "Numbers")."""
        return self._cache.numbers()

    def close(self) -> None:
        """Wipes the keys [CL-KEY-013], and reports what was encrypted since the last report [CL-KEY-017]."""
        self._cache.close()
        unreported = self._unreported
        self._unreported = {}
        if unreported:
            reporter = threading.Thread(target=self._report, args=(unreported,), name="cipherlane-report", daemon=True)
            with contextlib.suppress(RuntimeError):  # the interpreter is ending
                reporter.start()
                reporter.join(LAST_REPORT)
        self._source.close()

    def after_fork_in_child(self) -> None:
        """What the parent encrypted, the parent reports."""
        self._records_before = 0
        self._unreported = {}

    def _wiped(self, name: Name, grant: TopicGrant) -> None:
        self._on_wipe(name.topic)
        if isinstance(grant, EncryptionGrant):
            self._records_before += grant.usage.records
            report = _report_of(grant)
            if report is not None:
                self._unreported[name.topic] = report

    def _fetch(self, topic: str, _names: Sequence[Name]) -> Answers[TopicGrant]:
        return {Name(topic): self._source.encryption_key(topic, self._usage(topic))}

    def _usage(self, topic: str) -> Optional[UsageReport]:
        """What was encrypted since the last request. A report that is lost with its request is not repeated."""
        left_over = self._unreported.pop(topic, None)
        grant = self._cache.current(Name(topic))
        return left_over or (_report_of(grant) if isinstance(grant, EncryptionGrant) else None)

    def _report(self, reports: dict[str, UsageReport]) -> None:
        until = time.monotonic() + LAST_REPORT
        for topic, report in reports.items():
            if time.monotonic() < until:
                with contextlib.suppress(Exception):  # that this fails is not an error
                    self._source.encryption_key(topic, report).grant.wipe()


class DecryptionKeys:
    """Keys by topic and kid, and the policy on plaintext by topic. Safe for use by threads.

    Args:
        source: who is asked
        settings: deadline, back-off, bound
        on_wipe: told the kid of a key that was wiped
        clock: of the leases
    """

    def __init__(
        self,
        source: KeySource,
        settings: KeySettings,
        *,
        on_wipe: Callable[[bytes], None] = lambda _kid: None,
        clock: Clock = lease_clock,
    ) -> None:
        self._source = source
        self._on_wipe = on_wipe
        self._cache: LeaseCache[ReadingGrant] = LeaseCache(self._fetch, settings, on_wipe=self._wiped, clock=clock)

    def get(self, name: Name) -> ReadingGrant:
        """A key (the name has a kid) or the policy on plaintext (it has none); raises ``CipherlaneError``."""
        return self._cache.get_one(name)

    def get_all(self, names: Collection[Name], deadline: Optional[float] = None) -> dict[Name, Outcome[ReadingGrant]]:
        """Many at once, at most as many as the cache holds; for each a grant or an error [CL-KEY-010]."""
        try:
            return self._cache.get(names, deadline)
        except CipherlaneError as error:
            return dict.fromkeys(names, error)

    def use_until(self, name: Name) -> float:
        """Until when what :meth:`get` gave may be used without asking again: a moment of the clock."""
        return self._cache.use_until(name)

    def deadline(self) -> float:
        """Until when a call that begins now may wait, as a moment of ``time.monotonic()`` [CL-KEY-011]."""
        return self._cache.deadline()

    def numbers(self) -> dict[str, Union[int, float]]:
        """What the cache reports of itself (spec/kafka.md, "Numbers")."""
        return self._cache.numbers()

    def close(self) -> None:
        """Wipes the keys [CL-KEY-013]."""
        self._cache.close()
        self._source.close()

    def _wiped(self, _name: Name, grant: ReadingGrant) -> None:
        if isinstance(grant, DecryptionGrant):
            self._on_wipe(grant.key.kid)

    def _fetch(self, topic: str, names: Sequence[Name]) -> Answers[ReadingGrant]:
        kids = [name.kid for name in names if name.kid is not None]
        answer = self._source.decryption_keys(topic, kids)
        found: dict[Name, Union[Leased[ReadingGrant], CipherlaneError]] = {Name(topic): answer.plaintext}
        found.update((Name(topic, kid), key) for kid, key in answer.keys.items())
        return found


def _report_of(grant: EncryptionGrant) -> Optional[UsageReport]:
    records, size = grant.usage.take()
    return UsageReport(grant.key.kid, records, size) if records else None
