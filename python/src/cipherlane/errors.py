"""The errors of this package: one tree, one code for each cause (spec/errors.md).

``CipherlaneError``
    base of all; what the layers below the encryptor and the decryptor raise

    ``ConfigurationError`` (also a ``ValueError``)
        a setting is missing, unknown, malformed or out of range; raised when a client is made
    ``EncryptionError``
        a value was not encrypted; nothing must be sent
    ``DecryptionError``
        a value was not decrypted; there is nothing to show

Each has ``code`` and ``layer`` as in the specification, ``retriable`` (it will pass by itself), and, where they are
known, ``topic``, ``partition``, ``offset`` and ``kid``. No error holds a key or bytes of a record.
"""

from __future__ import annotations

import enum
from typing import Optional


class ErrorCode(enum.Enum):
    """A cause: its code, its layer, and whether it passes by itself [CL-ERR-004]."""

    CONFIGURATION_INVALID = ("configuration-invalid", "configuration")
    VALUE_TYPE = ("value-type", "input")
    TOPIC_INVALID = ("topic-invalid", "input")
    PLAINTEXT_TOO_LONG = ("plaintext-too-long", "input")
    AMBIGUOUS_PLAINTEXT = ("ambiguous-plaintext", "input")
    ENVELOPE_TOO_SHORT = ("envelope-too-short", "parse")
    UNSUPPORTED_VERSION = ("unsupported-version", "parse")
    UNSUPPORTED_FLAGS = ("unsupported-flags", "parse")
    RECORD_KEY_UNAVAILABLE = ("record-key-unavailable", "parse")
    TOPIC_UNKNOWN = ("topic-unknown", "policy")
    TOPIC_FORBIDDEN = ("topic-forbidden", "policy")
    NOT_AUTHORIZED = ("not-authorized", "policy")
    SCOPE_MISMATCH = ("scope-mismatch", "policy")
    PLAINTEXT_REJECTED = ("plaintext-rejected", "policy")
    KEY_UNKNOWN = ("key-unknown", "key-id")
    KEY_DESTROYED = ("key-destroyed", "key-id")
    KEY_MALFORMED = ("key-malformed", "key-id")
    KEY_ID_MISMATCH = ("key-id-mismatch", "key-id")
    AUTHENTICATION_FAILED = ("authentication-failed", "decryption")
    DECOMPRESSION_FAILED = ("decompression-failed", "decryption")
    UNAUTHENTICATED = ("unauthenticated", "key-service")
    REQUEST_INVALID = ("request-invalid", "key-service")
    REQUEST_TOO_LARGE = ("request-too-large", "key-service")
    NOT_FOUND = ("not-found", "key-service")
    KEY_SERVICE_UNAVAILABLE = ("key-service-unavailable", "key-service", True)
    KEY_SERVICE_BAD_ANSWER = ("key-service-bad-answer", "key-service")
    KEY_SERVICE_INTERNAL = ("internal", "key-service", True)
    AUDIT_UNAVAILABLE = ("audit-unavailable", "key-service", True)
    LEASE_EXPIRED = ("lease-expired", "key-service", True)
    CLOSED = ("closed", "client")
    INTERNAL = ("internal", "client")

    def __init__(self, code: str, layer: str, retriable: bool = False) -> None:  # noqa: FBT001, FBT002
        self.code = code
        self.layer = layer
        self.retriable = retriable


class CipherlaneError(Exception):
    """A failure with its cause and, where they are known, the record it is about.

    Args:
        error_code: the cause
        detail: what happened and what to do, without keys and without record bytes
        topic, partition, offset: the record's place
        kid: the id of the data key that the envelope names (16 bytes)
    """

    def __init__(
        self,
        error_code: ErrorCode,
        detail: str,
        *,
        topic: Optional[str] = None,
        partition: Optional[int] = None,
        offset: Optional[int] = None,
        kid: Optional[bytes] = None,
    ) -> None:
        super().__init__(detail)
        self.error_code = error_code
        self.detail = detail
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.kid = kid

    @property
    def code(self) -> str:
        """The code of spec/errors.md, for example ``authentication-failed``."""
        return self.error_code.code

    @property
    def layer(self) -> str:
        """The layer that refused, for example ``decryption``."""
        return self.error_code.layer

    @property
    def retriable(self) -> bool:
        """Whether the failure passes by itself, so that trying again later makes sense."""
        return self.error_code.retriable

    def __str__(self) -> str:
        """The code, the detail, and the record's place."""
        place = {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "kid": self.kid.hex() if self.kid is not None else None,
        }
        known = ", ".join(f"{name} {value}" for name, value in place.items() if value is not None)
        return f"{self.code}: {self.detail}" + (f" ({known})" if known else "")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the fields: errors cross process boundaries in worker pools."""
        return _restore, (
            type(self),
            self.error_code,
            self.detail,
            self.topic,
            self.partition,
            self.offset,
            self.kid,
        )


class ConfigurationError(CipherlaneError, ValueError):
    """A setting is missing, unknown, malformed or out of range [CL-CFG-002]."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.CONFIGURATION_INVALID, detail)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the detail."""
        return ConfigurationError, (self.detail,)


class EncryptionError(CipherlaneError):
    """A value was not encrypted; nothing must be sent [CL-ENV-044]."""


class DecryptionError(CipherlaneError):
    """A value was not decrypted; there is nothing to show [CL-ENV-012]."""


def without_frames(error: CipherlaneError) -> CipherlaneError:
    """The error without its traceback: the frames' local variables may hold an answer with keys [CL-KEY-015]."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _restore(
    kind: type[CipherlaneError],
    error_code: ErrorCode,
    detail: str,
    topic: Optional[str],
    partition: Optional[int],
    offset: Optional[int],
    kid: Optional[bytes],
) -> CipherlaneError:
    return kind(error_code, detail, topic=topic, partition=partition, offset=offset, kid=kid)
