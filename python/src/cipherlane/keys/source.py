"""What the key service may answer, and the interface through which it is asked. No HTTP here."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Mapping, Optional, Protocol, Sequence, TypeVar, Union

from cipherlane.errors import CipherlaneError

if TYPE_CHECKING:
    from cipherlane.backend import Tally
    from cipherlane.keys.data_key import DataKey

MAX_KIDS = 1000
"""Key ids in one request [CL-KEY-010]."""


class Grant:
    """Something leased."""

    __slots__ = ()

    def same_as(self, other: Grant) -> bool:
        """Whether a renewal brought the same again, so that what was built on this one stays."""
        return self == other

    def wipe(self) -> None:
        """Overwrites the key, where there is one."""

    def wipe_in_child(self) -> None:
        """The same in a forked child."""


class KeyedGrant(Grant):
    """Something leased that has a data key."""

    __slots__ = ("key", "scope")

    def __init__(self, scope: str, key: DataKey) -> None:
        self.scope = scope
        self.key = key

    def same_as(self, other: Grant) -> bool:
        """Same kid and scope."""
        return isinstance(other, KeyedGrant) and (self.scope, self.key.kid) == (other.scope, other.key.kid)

    def wipe(self) -> None:
        """Wipes the data key."""
        self.key.wipe()

    def wipe_in_child(self) -> None:
        """Wipes the data key."""
        self.key.wipe_in_child()


class DecryptionGrant(KeyedGrant):
    """The right to decrypt what one data key encrypted, in one topic."""

    __slots__ = ()


class EncryptionGrant(KeyedGrant):
    """The right to encrypt for a topic, and the count of what was encrypted."""

    __slots__ = ("usage",)

    def __init__(self, scope: str, key: DataKey) -> None:
        super().__init__(scope, key)
        self.usage = Usage()


class UnencryptedMode(Grant, enum.Enum):
    """The policy's answer for a topic that has no key."""

    CLEAR = "clear"
    FORBID = "forbid"


class PlaintextPolicy(Grant, enum.Enum):
    """How values that are not envelopes are met when reading."""

    REJECT = "reject"
    ACCEPT = "accept"


class Usage:
    """Counts the records and bytes of plaintext that were encrypted. Safe for use by threads."""

    __slots__ = ("_bytes", "_lock", "_records", "_reported", "_tallies")

    def __init__(self) -> None:
        self._records = self._bytes = 0
        self._tallies: list[Tally] = []
        self._reported = (0, 0)
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """Counts a record of so many bytes of plaintext, before compression [CL-ENV-046]."""
        with self._lock:
            self._records += 1
            self._bytes += size

    def include(self, tally: Tally) -> None:
        """Counts what a sealer encrypts, which does so by itself."""
        with self._lock:
            self._tallies.append(tally)

    @property
    def records(self) -> int:
        """Since the beginning."""
        return self._records + sum(tally.records for tally in self._tallies)

    def take(self) -> tuple[int, int]:
        """Records and bytes that were not reported yet; they are from now on."""
        with self._lock:
            size = self._bytes + sum(tally.bytes for tally in self._tallies)
            before, self._reported = self._reported, (self.records, size)
            return self._reported[0] - before[0], self._reported[1] - before[1]


@dataclass(frozen=True)
class UsageReport:
    """What was encrypted under a key since the last report."""

    kid: bytes
    records: int
    bytes: int


G_co = TypeVar("G_co", bound=Grant, covariant=True)


@dataclass(frozen=True)
class Leased(Generic[G_co]):
    """A grant and its lease, in seconds from when the request was sent."""

    grant: G_co
    refresh_in: float
    expires_in: float


EncryptionAnswer = Leased[Union[EncryptionGrant, UnencryptedMode]]


@dataclass(frozen=True)
class DecryptionAnswer:
    """One entry for each kid that was asked for."""

    plaintext: Leased[PlaintextPolicy]
    keys: Mapping[bytes, Union[Leased[DecryptionGrant], CipherlaneError]]


class KeySource(Protocol):
    """Whoever answers for keys, as :class:`cipherlane.keyservice.KeyServiceClient`. Called from several threads."""

    def encryption_key(self, topic: str, usage: Optional[UsageReport]) -> EncryptionAnswer:
        """The current key of a topic; raises ``CipherlaneError``."""

    def decryption_keys(self, topic: str, kids: Sequence[bytes]) -> DecryptionAnswer:
        """Keys for records read from a topic, 0 to 1,000 different kids; raises ``CipherlaneError``."""

    def close(self) -> None:
        """Closes connections."""
