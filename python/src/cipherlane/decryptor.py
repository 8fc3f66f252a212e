"""Topic and stored value in, plaintext out: parse, policy, keys, decrypt, decompress, in that order.

Knows nothing of Kafka clients.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

from cipherlane import backend, compression, envelope, forking
from cipherlane.backend import Opener
from cipherlane.cipher import DERIVED_KEYS, DerivedKeys, decrypt
from cipherlane.clock import Clock, lease_clock, unless_of_system
from cipherlane.configuration import Configuration
from cipherlane.counts import Counts, Numbers
from cipherlane.envelope import RECORD_KEY_UNAVAILABLE, Envelope, RecordKey
from cipherlane.errors import CipherlaneError, DecryptionError, ErrorCode
from cipherlane.holder import KeyHolder
from cipherlane.keys import DecryptionGrant, DecryptionKeys, KeySettings, KeySource, Name, PlaintextPolicy
from cipherlane.keyservice import KeyServiceClient
from cipherlane.names import check_topic
from cipherlane.pure import SALT_SIZE, Fields

_AT_ONCE = 1000
"""Records decrypted in one go, without a look at what other threads do."""


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


class Decryptor(KeyHolder):
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
        self._backend = backend.current
        self._openings: dict[tuple[str, bytes], Opener] = {}  # by topic and what all records of a session begin with
        self._keys = DecryptionKeys(source, settings, on_wipe=self._forget, clock=clock)
        self._clock = unless_of_system(clock)
        self._max_plaintext = max_plaintext
        self._longest = max_plaintext + envelope.OVERHEAD
        self._cache_max = settings.cache_max
        self._decrypted = self._accepted = 0
        self._failures = Counts()
        forking.reset_in_child(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Decryptor:
        """A decryptor from ``cipherlane.`` settings; raises ``ConfigurationError``."""
        return cls.from_configuration(Configuration.from_settings(settings))

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> Decryptor:
        """A decryptor from settings that were read; raises ``ConfigurationError`` when a PEM file cannot be used."""
        source = KeyServiceClient(configuration)
        return cls(source, configuration.keys, max_plaintext=configuration.writing.max_plaintext)

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
        plaintext = self.decrypt_at_once(topic, value)
        if plaintext is not None:
            return plaintext
        outcome = self._decrypt_one(Record(topic, value, record_key, partition, offset))
        if isinstance(outcome, DecryptionError):
            raise outcome
        return outcome

    def decrypt_at_once(self, topic: Optional[str], value: Optional[bytes]) -> Optional[bytes]:
        """The short way, for a record like one before it: never waits, never raises.

        Args:
            topic: from which the record was read
            value: as stored

        Returns:
            the plaintext, or None: then ask :meth:`decrypt` or :meth:`decrypt_all`, which say why
        """
        plaintext = self._backend.open_one(self._openings, topic, value, self._longest, self._clock)
        if plaintext is not None:
            self._decrypted += 1
        return plaintext

    def decrypt_all_at_once(self, records: list[Any], fields: Fields) -> list[int]:
        """The same for many records, each of which gets its plaintext in the place of its value.

        Args:
            records: messages of a client
            fields: how to read and write them

        Returns:
            the indices of those that were left as they are
        """
        if len(records) > _AT_ONCE:
            return self._in_pieces(records, fields)
        missed = self._backend.open_all(self._openings, records, fields, self._longest, self._clock)
        self._decrypted += len(records) - len(missed)
        return missed

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

    def numbers(self) -> Numbers:
        """What this decryptor did (spec/kafka.md, "Numbers")."""
        return {
            "records_decrypted_total": self._decrypted,
            "plaintext_accepted_total": self._accepted,
            "failures_total": self._failures.all(),
            **self._keys.numbers(),
        }

    def close(self) -> None:
        """Wipes the keys and closes connections; decrypting fails from then on. May be called again."""
        self._keys.close()

    def after_fork_in_child(self) -> None:
        """Lets go of the parent's derived keys."""
        self._openings = {}

    def _forget(self, kid: bytes) -> None:
        self._openings = {}
        self._derived.forget(kid)

    def _in_pieces(self, records: list[Any], fields: Fields) -> list[int]:
        """Lets other threads run in between, and keys go that are wiped."""
        missed: list[int] = []
        for start in range(0, len(records), _AT_ONCE):
            of_piece = self.decrypt_all_at_once(records[start : start + _AT_ONCE], fields)
            missed += [start + index for index in of_piece]
        return missed

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
            return self._failure(error, record)

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
            return self._failure(error, step.record, step.needs.kid)
        except Exception as error:  # noqa: BLE001 - one bad record must not take its neighbours with it
            detail = f"decrypting failed: {type(error).__name__}"
            return self._failure(CipherlaneError(ErrorCode.INTERNAL, detail), step.record, step.needs.kid)

    def _opened(self, step: _Parsed, grant: _Grant) -> Optional[bytes]:
        if step.envelope is None:
            accepted = _unencrypted(grant, step.record.value)
            self._accepted += 1
            return accepted
        assert isinstance(grant, DecryptionGrant)  # what a name with a kid gives
        plaintext = self._plaintext(step, step.envelope, grant)
        self._decrypted += 1
        return plaintext

    def _plaintext(self, step: _Parsed, parsed: Envelope, grant: DecryptionGrant) -> bytes:
        record_key = None if step.record.record_key is RECORD_KEY_UNAVAILABLE else step.record.record_key
        additional_data = envelope.additional_data(parsed.header, grant.scope, record_key)
        until = self._keys.use_until(step.needs)
        cipher = self._derived.cipher(grant.key, parsed.nonce)
        content = decrypt(cipher, parsed.nonce, parsed.ciphertext, additional_data)
        if parsed.compressed:
            return compression.decompress(content, self._max_plaintext)
        if not parsed.record_key_bound:
            self._remember(step, parsed, cipher.opener(additional_data, until))
        if grant.key.wiped:  # meanwhile: what was derived from it must not stay behind
            self._forget(parsed.kid)
        return content

    def _remember(self, step: _Parsed, parsed: Envelope, opener: Opener) -> None:
        openings = self._openings
        if len(openings) >= DERIVED_KEYS:
            openings.clear()
        openings[step.record.topic, parsed.header + parsed.nonce[:SALT_SIZE]] = opener

    def _failure(self, error: CipherlaneError, record: Record, kid: Optional[bytes] = None) -> DecryptionError:
        self._failures.add(error.code)
        return DecryptionError(
            error.error_code,
            error.detail,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            kid=error.kid or kid,
        )


def _unencrypted(grant: _Grant, value: Optional[bytes]) -> Optional[bytes]:
    if grant is not PlaintextPolicy.ACCEPT:
        detail = "the record is not encrypted, and the topic's policy takes no plaintext"
        raise CipherlaneError(ErrorCode.PLAINTEXT_REJECTED, detail)
    return value
