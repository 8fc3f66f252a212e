"""Topic and value in, envelope out: policy, session, limits. Knows nothing of Kafka clients."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional

from cipherlane import envelope
from cipherlane.cipher import EncryptingSession, SessionEndedError
from cipherlane.clock import Clock, lease_clock
from cipherlane.configuration import Configuration
from cipherlane.errors import CipherlaneError, EncryptionError, ErrorCode
from cipherlane.keys import EncryptionGrant, EncryptionKeys, KeySettings, KeySource, UnencryptedMode
from cipherlane.keyservice import KeyServiceClient
from cipherlane.names import check_topic

_ATTEMPTS = 3
"""Sessions end while they are used; so do leases."""


class _Stream(NamedTuple):
    """What encrypting for a topic needs, made once for each session."""

    grant: EncryptionGrant
    session: EncryptingSession
    header: bytes
    additional_data: bytes


class Encryptor:
    """Encrypts record values. Safe for use by threads, and in forked children.

    Args:
        source: who gives the keys; closed with the encryptor
        settings: deadline, back-off and bound of the key cache
        max_plaintext: bytes
        clock: of leases and sessions
        new_session: makes the sessions
    """

    def __init__(
        self,
        source: KeySource,
        settings: KeySettings,
        *,
        max_plaintext: int,
        clock: Clock = lease_clock,
        new_session: Callable[..., EncryptingSession] = EncryptingSession,
    ) -> None:
        self._streams: dict[str, _Stream] = {}
        self._keys = EncryptionKeys(source, settings, on_wipe=self._forget, clock=clock)
        self._max_plaintext = max_plaintext
        self._clock = clock
        self._new_session = new_session

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Encryptor:
        """An encryptor from ``cipherlane.`` settings; raises ``ConfigurationError``."""
        configuration = Configuration.from_settings(settings)
        return cls(KeyServiceClient(configuration), configuration.keys, max_plaintext=configuration.max_plaintext)

    def encrypt(self, topic: str, value: Optional[bytes]) -> Optional[bytes]:
        """Makes what the broker is to store.

        Args:
            topic: to which the record goes
            value: any bytes; an empty value is encrypted; None (a tombstone) stays None, but it is a record, so the
                topic's policy is asked for it too [CL-ENV-040]

        Returns:
            the envelope; the value itself where the topic's mode is ``clear`` [CL-ENV-041]

        Raises:
            EncryptionError: nothing must be sent [CL-ENV-044]
        """
        try:
            return self._encrypt(topic, value)
        except CipherlaneError as error:
            raise _failure(error, topic) from error.__cause__
        except Exception as error:
            failure = CipherlaneError(ErrorCode.INTERNAL, f"encrypting failed: {type(error).__name__}")
            raise _failure(failure, topic) from error

    def close(self) -> None:
        """Wipes the keys and closes connections; encrypting fails from then on. May be called again."""
        self._keys.close()

    def __enter__(self) -> Encryptor:
        """Returns itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Closes."""
        self.close()

    def _encrypt(self, topic: str, value: Optional[bytes]) -> Optional[bytes]:
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
                return self._envelope(topic, grant, value)
            except SessionEndedError:
                self._forget(topic)
        raise CipherlaneError(ErrorCode.LEASE_EXPIRED, "no session could be kept open")

    def _check(self, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise CipherlaneError(ErrorCode.VALUE_TYPE, f"the value is {type(value).__name__}, not bytes")
        if len(value) > self._max_plaintext:
            raise CipherlaneError(ErrorCode.PLAINTEXT_TOO_LONG, f"{len(value)} bytes, at most {self._max_plaintext}")

    def _envelope(self, topic: str, grant: EncryptionGrant, value: bytes) -> bytes:
        stream = self._streams.get(topic) or self._open(topic, grant)
        nonce, ciphertext = stream.session.encrypt(value, stream.additional_data)
        stream.grant.usage.add(1, len(value))
        return envelope.write(stream.header, nonce, ciphertext)

    def _open(self, topic: str, grant: EncryptionGrant) -> _Stream:
        header = envelope.header(0, grant.key.kid)
        session = self._new_session(grant.key, clock=self._clock)
        stream = _Stream(grant, session, header, envelope.additional_data(header, grant.scope))
        self._streams[topic] = stream
        return stream

    def _forget(self, topic: str) -> None:
        self._streams.pop(topic, None)


def _unencrypted(mode: UnencryptedMode, value: Optional[bytes]) -> Optional[bytes]:
    if mode is UnencryptedMode.FORBID:
        raise CipherlaneError(ErrorCode.TOPIC_FORBIDDEN, "the policy forbids records in this topic")
    if value is not None and envelope.is_envelope(value):
        detail = "the topic's mode is clear, and the value starts like an envelope: readers would take it for one"
        raise CipherlaneError(ErrorCode.AMBIGUOUS_PLAINTEXT, detail)
    return value


def _failure(error: CipherlaneError, topic: object) -> EncryptionError:
    named = topic if isinstance(topic, str) else None
    return EncryptionError(error.error_code, error.detail, topic=named, kid=error.kid)
