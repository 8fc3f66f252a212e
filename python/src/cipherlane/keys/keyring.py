"""The keys that an encryptor or a decryptor holds, and what each asks the key source."""

from __future__ import annotations

from typing import Callable, Collection, Optional, Sequence, Union

from cipherlane.clock import Clock, lease_clock
from cipherlane.errors import CipherlaneError
from cipherlane.keys.entry import Name, Outcome
from cipherlane.keys.lease_cache import Answers, LeaseCache
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
        self._cache: LeaseCache[TopicGrant] = LeaseCache(
            self._fetch, settings, on_wipe=lambda name, _grant: on_wipe(name.topic), clock=clock
        )

    def get(self, topic: str) -> TopicGrant:
        """What the policy says of a topic, with its key; raises ``CipherlaneError``."""
        return self._cache.get_one(Name(topic))

    def close(self) -> None:
        """Wipes the keys [CL-KEY-013]."""
        self._cache.close()
        self._source.close()

    def _fetch(self, topic: str, _names: Sequence[Name]) -> Answers[TopicGrant]:
        return {Name(topic): self._source.encryption_key(topic, self._usage(topic))}

    def _usage(self, topic: str) -> Optional[UsageReport]:
        """What was encrypted since the last request. A report that is lost with its request is not repeated."""
        grant = self._cache.current(Name(topic))
        if not isinstance(grant, EncryptionGrant):
            return None
        records, size = grant.usage.take()
        return UsageReport(grant.key.kid, records, size) if records else None


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

    def deadline(self) -> float:
        """Until when a call that begins now may wait, as a moment of ``time.monotonic()`` [CL-KEY-011]."""
        return self._cache.deadline()

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
