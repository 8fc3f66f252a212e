"""XAES-256-GCM (C2SP), the key id, and encrypting sessions (spec/envelope.md).

What each record costs is in :mod:`cipherlane.backend`. Knows nothing of topics, of the network, and of Kafka.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Callable, Optional, Protocol, Union

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cipherlane import backend, forking
from cipherlane.backend import Aead, Sealer
from cipherlane.clock import lease_clock, unless_of_system
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.pure import SALT_SIZE

KEY_SIZE = 32
PREFIX_SIZE = 20
SESSION_SECONDS = 15 * 60.0
DERIVED_KEYS = 4096

_KEY_ID_INFO = b"cipherlane v1 key id"
_KEY_ID_SIZE = 16

KeyBytes = Union[bytes, bytearray]


def key_id(key: KeyBytes) -> bytes:
    """The kid that commits to a data key of 32 bytes [CL-ENV-020]."""
    return HKDF(SHA256(), _KEY_ID_SIZE, salt=None, info=_KEY_ID_INFO).derive(key)


def derive(key: KeyBytes, salt: bytes) -> Aead:
    """The AES-256-GCM cipher for nonces that start with ``salt`` [CL-ENV-022].

    Args:
        key: data key, 32 bytes
        salt: first 12 bytes of the nonce
    """
    return backend.current.derive(key, salt)


class Key(Protocol):
    """What the cipher needs of a data key; :class:`cipherlane.keys.DataKey` is one."""

    @property
    def kid(self) -> bytes:
        """16 bytes."""

    @property
    def wiped(self) -> bool:
        """Whether the lease ended."""

    def derive(self, salt: bytes) -> Aead:
        """The cipher for a salt; raises ``lease-expired`` when the key is wiped."""


class SessionEndedError(Exception):
    """This session must encrypt nothing more; start a new one."""


class EncryptingSession:
    """Encrypts up to 2^32 - 1 records under one data key, in one process, for 15 minutes. Safe for use by threads.

    Args:
        key: the data key
        clock: seconds, as :func:`cipherlane.clock.lease_clock`
        prefix: 20 bytes, given by tests only; otherwise from the operating system [CL-ENV-030]
        counter: of the first record, given by tests only

    Raises:
        SessionEndedError: the key's lease ended already
    """

    __slots__ = ("_ends_at", "_session", "key")

    def __init__(
        self,
        key: Key,
        *,
        clock: Callable[[], float] = lease_clock,
        prefix: Optional[bytes] = None,
        counter: int = 0,
    ) -> None:
        self.key = key
        prefix = os.urandom(PREFIX_SIZE) if prefix is None else prefix
        self._ends_at = clock() + SESSION_SECONDS
        aead, read = _begin(key, prefix[:SALT_SIZE]), unless_of_system(clock)
        self._session = aead.session(key, prefix, counter, forking.mark(), read, self._ends_at)

    def use_until(self, moment: float) -> None:
        """Has :meth:`encrypt` refuse from a moment of the clock on, until this is called again."""
        self._session.use_until(min(moment, self._ends_at))

    def encrypt(self, plaintext: bytes, additional_data: bytes, before: bytes = b"") -> bytes:
        """Encrypts one record.

        Args:
            plaintext: any bytes
            additional_data: the AAD
            before: what the result begins with, as it is

        Returns:
            ``before``, the nonce (24 bytes), and ciphertext with tag

        Raises:
            SessionEndedError: after 2^32 - 1 records [CL-ENV-032], after 15 minutes [CL-ENV-033], when the key's lease
                ended or is to be looked at again [CL-ENV-034], and in a forked child [CL-ENV-035]
        """
        written = self.sealer(additional_data, before, len(plaintext)).seal(bytes(plaintext))
        if written is None:
            raise SessionEndedError
        return written

    def sealer(self, additional_data: bytes, before: bytes, longest: int) -> Sealer:
        """What :meth:`encrypt` does for one AAD and one beginning, made once for many records.

        Args:
            additional_data: the AAD
            before: what each result begins with, as it is
            longest: of the values, in bytes; it encrypts no longer ones
        """
        return self._session.sealer(before, additional_data, longest)

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses: a copy would use nonces again."""
        raise TypeError("an encrypting session cannot be copied or pickled")


def _begin(key: Key, salt: bytes) -> Aead:
    try:
        return key.derive(salt)
    except CipherlaneError:
        raise SessionEndedError from None


def decrypt(cipher: Aead, nonce: bytes, ciphertext: bytes, additional_data: bytes) -> bytes:
    """Decrypts and verifies [CL-ENV-010].

    Args:
        cipher: of :meth:`DerivedKeys.cipher` for this nonce
        nonce: 24 bytes
        ciphertext: with tag
        additional_data: the AAD

    Raises:
        CipherlaneError: ``authentication-failed``
    """
    try:
        return cipher.decrypt(nonce[SALT_SIZE:], ciphertext, additional_data)
    except InvalidTag:
        detail = "the tag does not fit: the bytes, the scope or the bound record key were changed"
        raise CipherlaneError(ErrorCode.AUTHENTICATION_FAILED, detail) from None


class DerivedKeys:
    """Keeps the ciphers that it derived, by kid and first 12 bytes of the nonce, at most 4,096.

    Safe for use by threads.
    """

    def __init__(self, limit: int = DERIVED_KEYS) -> None:
        self._limit = limit
        self._ciphers: OrderedDict[tuple[bytes, bytes], Aead] = OrderedDict()
        self._lock = threading.Lock()
        forking.reset_in_child(self)

    def cipher(self, key: Key, nonce: bytes) -> Aead:
        """The cipher for a nonce (24 bytes), derived or remembered; raises ``lease-expired`` when the key is wiped."""
        name = (key.kid, nonce[:SALT_SIZE])
        with self._lock:
            cipher = self._ciphers.get(name)
            if cipher is not None:
                self._ciphers.move_to_end(name)
                return cipher
        return self._add(name, key.derive(name[1]))

    def forget(self, kid: bytes) -> None:
        """Drops everything derived from a data key, when its lease ends [CL-KEY-005]."""
        with self._lock:
            for name in [name for name in self._ciphers if name[0] == kid]:
                del self._ciphers[name]

    def __len__(self) -> int:
        """How many ciphers are kept."""
        return len(self._ciphers)

    def _add(self, name: tuple[bytes, bytes], cipher: Aead) -> Aead:
        with self._lock:
            self._ciphers[name] = cipher
            if len(self._ciphers) > self._limit:
                self._ciphers.popitem(last=False)
        return cipher

    def after_fork_in_child(self) -> None:
        """Starts empty: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self._ciphers = OrderedDict()
