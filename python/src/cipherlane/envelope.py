"""Envelope v1: the one place that reads and writes its bytes and builds the AAD (spec/envelope.md).

Knows nothing of keys, of the network, and of Kafka.
"""

from __future__ import annotations

import enum
import functools
import struct
from typing import NamedTuple, Optional, Union

from cipherlane.errors import CipherlaneError, ErrorCode

MAGIC = b"\xc1\x9e"
VERSION = 1
OVERHEAD = 60
"""Bytes by which an envelope is longer than what the cipher was given."""

FLAG_ZSTD = 0b001
FLAG_RECORD_KEY_BOUND = 0b100

HEADER_SIZE = 20
NONCE_SIZE = 24
KID_SIZE = 16
MAX_SCOPE_SIZE = 249
MAX_RECORD_KEY_SIZE = 2_147_483_647

_KNOWN_FLAGS = frozenset({0, FLAG_ZSTD, FLAG_RECORD_KEY_BOUND, FLAG_ZSTD | FLAG_RECORD_KEY_BOUND})
_CIPHERTEXT_OFFSET = HEADER_SIZE + NONCE_SIZE
_NULL_RECORD_KEY_SIZE = 0xFFFFFFFF


class _Unavailable(enum.Enum):
    RECORD_KEY = enum.auto()


RECORD_KEY_UNAVAILABLE = _Unavailable.RECORD_KEY
"""The record key is not known; None, in its place, says that the record key is null."""

RecordKey = Union[bytes, None, _Unavailable]


class Envelope(NamedTuple):
    """The fields of an envelope whose form was checked; its content was not."""

    flags: int
    kid: bytes
    """16 bytes"""
    nonce: bytes
    """24 bytes"""
    ciphertext: bytes
    """ciphertext and tag, 16 bytes or more"""
    header: bytes
    """bytes 0 to 19, as they were read: the first part of the AAD"""

    @property
    def compressed(self) -> bool:
        """Whether the plaintext is one zstd frame."""
        return self.flags & FLAG_ZSTD != 0

    @property
    def record_key_bound(self) -> bool:
        """Whether the record key is part of the AAD."""
        return self.flags & FLAG_RECORD_KEY_BOUND != 0


def is_envelope(value: bytes) -> bool:
    """Whether a value is an envelope: the magic alone decides [CL-ENV-002] [CL-ENV-003]."""
    return value[:2] == MAGIC


def parse(value: bytes) -> Envelope:
    """Reads an envelope: steps 4 to 7 of the specification, in their order.

    Args:
        value: bytes that start with the magic (:func:`is_envelope`)

    Raises:
        CipherlaneError: ``envelope-too-short`` [CL-ENV-004] [CL-ENV-006], ``unsupported-version`` [CL-ENV-005],
            ``unsupported-flags`` [CL-ENV-007]
    """
    if len(value) == len(MAGIC):
        raise _too_short(len(value))
    if value[2] != VERSION:
        raise CipherlaneError(ErrorCode.UNSUPPORTED_VERSION, f"envelope version {value[2]}, known is {VERSION}")
    if len(value) < OVERHEAD:
        raise _too_short(len(value))
    flags = value[3]
    if flags not in _KNOWN_FLAGS:
        raise CipherlaneError(ErrorCode.UNSUPPORTED_FLAGS, f"envelope flags {flags:08b} are not known")
    return Envelope(
        flags,
        value[4:HEADER_SIZE],
        value[HEADER_SIZE:_CIPHERTEXT_OFFSET],
        value[_CIPHERTEXT_OFFSET:],
        value[:HEADER_SIZE],
    )


def header(flags: int, kid: bytes) -> bytes:
    """Bytes 0 to 19 of an envelope [CL-ENV-043].

    Raises:
        ValueError: unknown flags, or a kid that is not 16 bytes
    """
    if flags not in _KNOWN_FLAGS or len(kid) != KID_SIZE:
        raise ValueError("flags or size of kid")
    return MAGIC + bytes((VERSION, flags)) + kid


def additional_data(envelope_header: bytes, scope: str, record_key: Optional[bytes] = None) -> bytes:
    """The AAD [CL-ENV-021].

    Args:
        envelope_header: bytes 0 to 19; its flags say whether the record key is part of the AAD
        scope: 1 to 249 bytes
        record_key: used only if the flags bind it; None is a null key

    Raises:
        CipherlaneError: ``plaintext-too-long`` for a record key over 2,147,483,647 bytes
        ValueError: a scope of a wrong size
    """
    data = envelope_header + _sized(scope)
    if envelope_header[3] & FLAG_RECORD_KEY_BOUND:
        return data + _bound_record_key(record_key)
    return data


@functools.lru_cache(maxsize=1024)
def _sized(scope: str) -> bytes:
    """A scope behind its size; remembered, because every record asks."""
    name = scope.encode()
    if not 1 <= len(name) <= MAX_SCOPE_SIZE:
        raise ValueError("size of scope")
    return struct.pack(">H", len(name)) + name


def _bound_record_key(record_key: Optional[bytes]) -> bytes:
    if record_key is None:
        return struct.pack(">I", _NULL_RECORD_KEY_SIZE)
    if len(record_key) > MAX_RECORD_KEY_SIZE:
        raise CipherlaneError(ErrorCode.PLAINTEXT_TOO_LONG, "the bound record key is longer than 2147483647 bytes")
    return struct.pack(">I", len(record_key)) + record_key


def _too_short(size: int) -> CipherlaneError:
    return CipherlaneError(ErrorCode.ENVELOPE_TOO_SHORT, f"{size} bytes, an envelope has at least {OVERHEAD}")
