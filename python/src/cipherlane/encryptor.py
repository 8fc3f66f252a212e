"""Topic and value in, envelope out: policy, session, compression, limits. Knows nothing of Kafka clients."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NoReturn, Optional

from cipherlane import compression, envelope, forking
from cipherlane.cipher import EncryptingSession, SessionEndedError
from cipherlane.clock import Clock, lease_clock
from cipherlane.configuration import Configuration, Writing
from cipherlane.counts import Counts, Numbers
from cipherlane.envelope import RECORD_KEY_UNAVAILABLE, RecordKey
from cipherlane.errors import CipherlaneError, EncryptionError, ErrorCode
from cipherlane.holder import KeyHolder
from cipherlane.keys import EncryptionGrant, EncryptionKeys, KeySettings, KeySource, UnencryptedMode
from cipherlane.keyservice import KeyServiceClient
from cipherlane.names import check_topic
from cipherlane.pure import HAS_GIL

_ATTEMPTS = 3
"""Sessions end while they are used; so do leases."""


class _Stream:
    """What encrypting for a topic needs, made once for each session.

    Attributes:
        seal: the short way, for values that are neither compressed nor bound to the record key
    """

    __slots__ = ("binds", "compress_from", "flags", "grant", "seal", "session", "usage")

    def __init__(self, topic: str, grant: EncryptionGrant, session: EncryptingSession, writing: Writing) -> None:
        self.grant = grant
        self.session = session
        self.usage = grant.usage
        self.binds = topic in writing.record_key_topics
        self.compress_from = writing.compression_min if topic in writing.compression_topics else None
        self.flags = envelope.FLAG_RECORD_KEY_BOUND if self.binds else 0
        header = envelope.header(0, grant.key.kid)
        longest = -1 if self.binds or not HAS_GIL else writing.max_plaintext
        if self.compress_from is not None:
            longest = min(longest, self.compress_from - 1)
        sealer = session.sealer(envelope.additional_data(header, grant.scope), header, longest)
        self.seal = sealer.seal
        self.usage.include(sealer.tally)

    def write(self, value: bytes, record_key: RecordKey) -> bytes:
        """The envelope of a value, whichever way it goes; raises ``SessionEndedError``."""
        content, flags = value, self.flags
        if self.compress_from is not None and len(value) >= self.compress_from:
            frame = compression.compress(value)
            content, flags = (value, flags) if frame is None else (frame, flags | envelope.FLAG_ZSTD)
        header = envelope.header(flags, self.grant.key.kid)
        additional_data = envelope.additional_data(header, self.grant.scope, self._known(record_key))
        written = self.session.encrypt(content, additional_data, header)
        self.usage.add(len(value))
        return written

    def _known(self, record_key: RecordKey) -> Optional[bytes]:
        if not self.binds:
            return None
        if record_key is RECORD_KEY_UNAVAILABLE:
            detail = "the topic's values are bound to the record key, which is not known here"
            raise CipherlaneError(ErrorCode.RECORD_KEY_UNAVAILABLE, detail)
        if record_key is not None and not isinstance(record_key, bytes):
            raise CipherlaneError(ErrorCode.VALUE_TYPE, f"the record key is {type(record_key).__name__}, not bytes")
        return record_key


class Encryptor(KeyHolder):
    """Encrypts record values. Safe for use by threads, and in forked children.

    Args:
        source: who gives the keys; closed with the encryptor
        settings: deadline, back-off and bound of the key cache
        writing: limit, compression and bound record keys
        clock: of leases and sessions
        new_session: makes the sessions
    """

    def __init__(
        self,
        source: KeySource,
        settings: KeySettings,
        writing: Writing,
        *,
        clock: Clock = lease_clock,
        new_session: Callable[..., EncryptingSession] = EncryptingSession,
    ) -> None:
        self._streams: dict[str, _Stream] = {}
        self._keys = EncryptionKeys(source, settings, on_wipe=self._forget, clock=clock)
        self._writing = writing
        self._clock = clock
        self._new_session = new_session
        self._failures = Counts()
        forking.reset_in_child(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Encryptor:
        """An encryptor from ``cipherlane.`` settings; raises ``ConfigurationError``."""
        return cls.from_configuration(Configuration.from_settings(settings))

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> Encryptor:
        """An encryptor from settings that were read; raises ``ConfigurationError`` when a PEM file cannot be used."""
        return cls(KeyServiceClient(configuration), configuration.keys, configuration.writing)

    def encrypt(
        self, topic: str, value: Optional[bytes], record_key: RecordKey = RECORD_KEY_UNAVAILABLE
    ) -> Optional[bytes]:
        """Makes what the broker is to store. May wait for a key, at most ``cipherlane.keys.deadline.ms``.

        Args:
            topic: to which the record goes
            value: any bytes; an empty value is encrypted; None (a tombstone) stays None, but it is a record, so the
                topic's policy is asked for it too [CL-ENV-040]
            record_key: None is a null record key; left out, it is not known, and topics that bind it are refused

        Returns:
            the envelope; the value itself where the topic's mode is ``clear`` [CL-ENV-041]

        Raises:
            EncryptionError: nothing must be sent [CL-ENV-044]
        """
        try:
            return self.encrypt_at_once(topic, value) or self._encrypt(topic, value, record_key)
        except CipherlaneError as error:
            self._fail(error, topic)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing is sent
            failure = CipherlaneError(ErrorCode.INTERNAL, f"encrypting failed: {type(error).__name__}")
            failure.__cause__ = error
            self._fail(failure, topic)

    def encrypt_at_once(self, topic: str, value: Optional[bytes]) -> Optional[bytes]:
        """The short way, for what is the same as in the record before it: never waits, never raises for a record.

        Returns:
            the envelope, or None: then ask :meth:`encrypt`
        """
        stream = self._streams.get(topic)
        return None if stream is None else stream.seal(value)

    def numbers(self) -> Numbers:
        """What this encryptor did (spec/kafka.md, "Numbers")."""
        return {
            "records_encrypted_total": self._keys.records(),
            "failures_total": self._failures.all(),
            **self._keys.numbers(),
        }

    def close(self) -> None:
        """Wipes the keys, reports what was encrypted since the last report, and closes connections.

        Encrypting fails from then on. May be called again. Waits no longer than a second for the report [CL-KEY-017].
        """
        self._keys.close()

    def after_fork_in_child(self) -> None:
        """Lets go of the parent's sessions and the keys in them."""
        self._streams = {}

    def _encrypt(self, topic: str, value: Optional[bytes], record_key: RecordKey) -> Optional[bytes]:
        check_topic(topic)
        if value is not None:
            self._check(value)
        for _ in range(_ATTEMPTS):
            grant = self._keys.get(topic)
            if isinstance(grant, UnencryptedMode):
                return _unencrypted(grant, value)
            if value is None:
                return None
            try:
                return self._stream(topic, grant).write(value, record_key)
            except SessionEndedError:
                self._forget(topic)
        raise CipherlaneError(ErrorCode.LEASE_EXPIRED, "no session could be kept open")

    def _check(self, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise CipherlaneError(ErrorCode.VALUE_TYPE, f"the value is {type(value).__name__}, not bytes")
        if len(value) > self._writing.max_plaintext:
            detail = f"{len(value)} bytes, at most {self._writing.max_plaintext}"
            raise CipherlaneError(ErrorCode.PLAINTEXT_TOO_LONG, detail)

    def _stream(self, topic: str, grant: EncryptionGrant) -> _Stream:
        stream = self._streams.get(topic)
        if stream is None or stream.grant is not grant:
            session = self._new_session(grant.key, clock=self._clock)
            stream = self._streams[topic] = _Stream(topic, grant, session, self._writing)
        stream.session.use_until(self._keys.use_until(topic))
        return stream

    def _forget(self, topic: str) -> None:
        self._streams.pop(topic, None)

    def _fail(self, error: CipherlaneError, topic: object) -> NoReturn:
        self._failures.add(error.code)
        named = topic if isinstance(topic, str) else None
        raise EncryptionError(error.error_code, error.detail, topic=named, kid=error.kid) from error.__cause__


def _unencrypted(mode: UnencryptedMode, value: Optional[bytes]) -> Optional[bytes]:
    if mode is UnencryptedMode.FORBID:
        raise CipherlaneError(ErrorCode.TOPIC_FORBIDDEN, "the policy forbids records in this topic")
    if value is not None and envelope.is_envelope(value):
        detail = "the topic's mode is clear, and the value starts like an envelope: readers would take it for one"
        raise CipherlaneError(ErrorCode.AMBIGUOUS_PLAINTEXT, detail)
    return value
