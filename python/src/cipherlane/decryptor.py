"""Topic and stored value in, plaintext out: parse, policy, keys, decrypt, decompress, in that order.

Knows nothing of Kafka clients.
"""

from __future__ import annotations

import enum
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

from cipherlane import compression, envelope
from cipherlane.cipher import DerivedKeys
from cipherlane.clock import Clock, lease_clock
from cipherlane.configuration import Configuration
from cipherlane.envelope import Envelope
from cipherlane.errors import CipherlaneError, DecryptionError, ErrorCode
from cipherlane.keys import DecryptionGrant, DecryptionKeys, KeySettings, KeySource, Name, PlaintextPolicy
from cipherlane.keyservice import KeyServiceClient
from cipherlane.names import check_topic


class _Unavailable(enum.Enum):
    RECORD_KEY = enum.auto()


RECORD_KEY_UNAVAILABLE = _Unavailable.RECORD_KEY
"""The reader does not know the record key; None, in its place, says that the record key is null."""

RecordKey = Union[bytes, None, _Unavailable]


class Record(NamedTuple):
    """What the decryptor needs of a record; partition and offset are only for errors."""

    topic: str
    value: Optional[bytes]
    record_key: RecordKey = RECORD_KEY_UNAVAILABLE
    partition: Optional[int] = None
    offset: Optional[int] = None


class _Parsed(NamedTuple):
    """A record that needs something leased: the key that its envelope names, or the policy on plaintext."""

    record: Record
    needs: Name
    envelope: Optional[Envelope]


_Step = Union[_Parsed, DecryptionError, None]
_Grant = Union[DecryptionGrant, PlaintextPolicy]

Decrypted = Union[bytes, None, DecryptionError]


class Decryptor:
    """Decrypts record values. Safe for use by threads, and in forked children.

    Args:
        source: who gives the keys; closed with the decryptor
        settings: deadline, back-off and bound of the key cache
        max_plaintext: bytes
        clock: of the leases
    """

    def __init__(
        self, source: KeySource, settings: KeySettings, *, max_plaintext: int, clock: Clock = lease_clock
    ) -> None:
        self._derived = DerivedKeys()
        self._keys = DecryptionKeys(source, settings, on_wipe=self._derived.forget, clock=clock)
        self._max_plaintext = max_plaintext
        self._cache_max = settings.cache_max

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Decryptor:
        """A decryptor from ``cipherlane.`` settings; raises ``ConfigurationError``."""
        configuration = Configuration.from_settings(settings)
        return cls(KeyServiceClient(configuration), configuration.keys, max_plaintext=configuration.max_plaintext)

    def decrypt(
        self,
        topic: str,
        value: Optional[bytes],
        record_key: RecordKey = RECORD_KEY_UNAVAILABLE,
        *,
        partition: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> Optional[bytes]:
        """Reads one value.

        Args:
            topic: from which the record was read
            value: as stored; None stays None [CL-ENV-001]
            record_key: None is a null record key; left out, it is not known
            partition: named in errors
            offset: named in errors

        Returns:
            the plaintext; the value itself if it is not encrypted and the policy accepts that

        Raises:
            DecryptionError: there is nothing to show [CL-ENV-012]
        """
        outcome = self._decrypt_one(Record(topic, value, record_key, partition, offset))
        if isinstance(outcome, DecryptionError):
            raise outcome
        return outcome

    def decrypt_all(self, records: Iterable[Record]) -> list[Decrypted]:
        """Reads many values; the keys that they need are asked for together [CL-KEY-010].

        Returns:
            in the order of the records: for each the plaintext, None for None, or the error
        """
        deadline = self._keys.deadline()
        outcomes: list[Decrypted] = []
        for steps, names in self._in_parts(records):
            grants = self._keys.get_all(names, deadline)
            outcomes += [
                self._finish(step, grants[step.needs]) if isinstance(step, _Parsed) else step for step in steps
            ]
        return outcomes

    def close(self) -> None:
        """Wipes the keys and closes connections; decrypting fails from then on. May be called again."""
        self._keys.close()

    def __enter__(self) -> Decryptor:
        """Returns itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Closes."""
        self.close()

    def _decrypt_one(self, record: Record) -> Decrypted:
        step = self._parse(record)
        return self._finish(step, self._grant(step.needs)) if isinstance(step, _Parsed) else step

    def _in_parts(self, records: Iterable[Record]) -> Iterator[tuple[list[_Step], set[Name]]]:
        """Parses the records, in parts that need no more keys than the cache holds: usually one."""
        steps: list[_Step] = []
        names: set[Name] = set()
        for step in map(self._parse, records):
            if isinstance(step, _Parsed):
                if len(names) >= self._cache_max and step.needs not in names:
                    yield steps, names
                    steps, names = [], set()
                names.add(step.needs)
            steps.append(step)
        yield steps, names

    def _parse(self, record: Record) -> _Step:
        """Steps 1 to 8 of the specification: what needs no key."""
        try:
            return self._parsed(record)
        except CipherlaneError as error:
            return _failure(error, record)

    def _parsed(self, record: Record) -> Optional[_Parsed]:
        topic, value, record_key = record[:3]
        check_topic(topic)
        if value is None:
            return None
        if not isinstance(value, bytes):
            raise CipherlaneError(ErrorCode.VALUE_TYPE, f"the value is {type(value).__name__}, not bytes")
        if not envelope.is_envelope(value):
            return _Parsed(record, Name(topic), None)
        parsed = envelope.parse(value)
        if not parsed.compressed and len(value) - envelope.OVERHEAD > self._max_plaintext:
            detail = f"{len(value) - envelope.OVERHEAD} bytes, at most {self._max_plaintext}"
            raise CipherlaneError(ErrorCode.PLAINTEXT_TOO_LONG, detail, kid=parsed.kid)
        if parsed.record_key_bound and record_key is RECORD_KEY_UNAVAILABLE:
            detail = "the envelope binds the record key, which is not known here"
            raise CipherlaneError(ErrorCode.RECORD_KEY_UNAVAILABLE, detail, kid=parsed.kid)
        return _Parsed(record, Name(topic, parsed.kid), parsed)

    def _grant(self, name: Name) -> Union[_Grant, CipherlaneError]:
        try:
            return self._keys.get(name)
        except CipherlaneError as error:
            return error

    def _finish(self, step: _Parsed, grant: Union[_Grant, CipherlaneError]) -> Decrypted:
        """Steps 9 to 11, and the policy on plaintext."""
        outcome = self._attempt(step, grant)
        if isinstance(outcome, DecryptionError) and isinstance(grant, DecryptionGrant) and grant.key.wiped:
            # Since it was looked up the lease ended, or the key had to make room for others.
            return self._attempt(step, self._grant(step.needs))
        return outcome

    def _attempt(self, step: _Parsed, grant: Union[_Grant, CipherlaneError]) -> Decrypted:
        try:
            if isinstance(grant, CipherlaneError):
                raise grant  # noqa: TRY301 - one way to name the record
            return self._opened(step, grant)
        except CipherlaneError as error:
            return _failure(error, step.record, step.needs.kid)
        except Exception as error:  # noqa: BLE001 - one bad record must not take its neighbours with it
            detail = f"decrypting failed: {type(error).__name__}"
            return _failure(CipherlaneError(ErrorCode.INTERNAL, detail), step.record, step.needs.kid)

    def _opened(self, step: _Parsed, grant: _Grant) -> Optional[bytes]:
        if step.envelope is None:
            return _unencrypted(grant, step.record.value)
        assert isinstance(grant, DecryptionGrant)  # what a name with a kid gives
        return self._plaintext(step.envelope, grant, step.record.record_key)

    def _plaintext(self, parsed: Envelope, grant: DecryptionGrant, record_key: RecordKey) -> bytes:
        known_key = None if record_key is RECORD_KEY_UNAVAILABLE else record_key
        additional_data = envelope.additional_data(parsed.header, grant.scope, known_key)
        content = self._derived.decrypt(grant.key, parsed.nonce, parsed.ciphertext, additional_data)
        return compression.decompress(content, self._max_plaintext) if parsed.compressed else content


def _unencrypted(grant: _Grant, value: Optional[bytes]) -> Optional[bytes]:
    if grant is not PlaintextPolicy.ACCEPT:
        detail = "the record is not encrypted, and the topic's policy takes no plaintext"
        raise CipherlaneError(ErrorCode.PLAINTEXT_REJECTED, detail)
    return value


def _failure(error: CipherlaneError, record: Record, kid: Optional[bytes] = None) -> DecryptionError:
    return DecryptionError(
        error.error_code,
        error.detail,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        kid=error.kid or kid,
    )
