"""XAES-256-GCM (C2SP), the key id, and encrypting sessions (spec/envelope.md).

Knows nothing of topics, of the network, and of Kafka. Derived keys live in OpenSSL contexts, which overwrite them when
they are freed; the bytes in between are Python's, and gone when their memory is used again (spec/threat-model.md).
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections import OrderedDict
from typing import Callable, Optional, Protocol, Union

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cipherlane import forking
from cipherlane.clock import lease_clock
from cipherlane.errors import CipherlaneError, ErrorCode

KEY_SIZE = 32
SALT_SIZE = 12
"""First part of the 24-byte nonce: it goes into the derived key."""
PREFIX_SIZE = 20
SESSION_RECORDS = 2**32 - 1
SESSION_SECONDS = 15 * 60.0
DERIVED_KEYS = 4096

_KEY_ID_INFO = b"cipherlane v1 key id"
_KEY_ID_SIZE = 16

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread at a time runs Python code; not so in free-threaded builds."""

KeyBytes = Union[bytes, bytearray]


def key_id(key: KeyBytes) -> bytes:
    """The kid that commits to a data key of 32 bytes [CL-ENV-020]."""
    return HKDF(SHA256(), _KEY_ID_SIZE, salt=None, info=_KEY_ID_INFO).derive(key)


def derive(key: KeyBytes, salt: bytes) -> AESGCM:
    """The AES-256-GCM cipher for nonces that start with ``salt`` [CL-ENV-022].

    Args:
        key: data key, 32 bytes
        salt: first 12 bytes of the nonce
    """
    return AESGCM(_derived_block(key, 1, salt) + _derived_block(key, 2, salt))


def _derived_block(key: KeyBytes, counter: int, salt: bytes) -> bytes:
    # CMAC of one whole block is AES(key, block xor K1), which is what XAES-256-GCM is defined by.
    mac = CMAC(AES256(key))
    mac.update(bytes((0, counter, 0x58, 0)) + salt)
    return mac.finalize()


class Key(Protocol):
    """What the cipher needs of a data key; :class:`cipherlane.keys.DataKey` is one."""

    @property
    def kid(self) -> bytes:
        """16 bytes."""

    @property
    def wiped(self) -> bool:
        """Whether the lease ended."""

    def derive(self, salt: bytes) -> AESGCM:
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

    __slots__ = ("_alive", "_clock", "_encrypt", "_ends_at", "_next", "_prefix", "_until", "key")

    def __init__(
        self,
        key: Key,
        *,
        clock: Callable[[], float] = lease_clock,
        prefix: Optional[bytes] = None,
        counter: int = 0,
    ) -> None:
        self.key = key
        self._prefix = os.urandom(PREFIX_SIZE) if prefix is None else prefix
        self._encrypt = _begin(key, self._prefix[:SALT_SIZE]).encrypt
        self._next = counting(counter)
        self._alive = forking.mark()
        self._clock = clock
        self._ends_at = clock() + SESSION_SECONDS
        self._until = [self._ends_at]

    def use_until(self, moment: float) -> None:
        """Has :meth:`encrypt` refuse from a moment of the clock on, until this is called again."""
        self._until[0] = min(moment, self._ends_at)

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
        written = self.sealer(additional_data, before)(plaintext)
        if written is None:
            raise SessionEndedError
        return written

    def sealer(self, additional_data: bytes, before: bytes) -> Callable[[bytes], Optional[bytes]]:
        """What :meth:`encrypt` does for one AAD and one beginning, made once for many records.

        Returns:
            a function of the plaintext; its result is None when the session ended
        """
        alive, clock, until, key, count, encrypt = (
            self._alive, self._clock, self._until, self.key, self._next, self._encrypt,
        )  # fmt: skip
        beginning, salt_rest = before + self._prefix, self._prefix[SALT_SIZE:]

        def seal(plaintext: bytes) -> Optional[bytes]:
            # This is what every record costs: no lock, no system call, no other Python code.
            if not alive[0] or clock() >= until[0] or key.wiped:
                return None
            counter = count()
            if counter >= SESSION_RECORDS:
                return None
            tail = counter.to_bytes(4, "big")
            return b"".join((beginning, tail, encrypt(salt_rest + tail, plaintext, additional_data)))

        return seal

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses: a copy would use nonces again."""
        raise TypeError("an encrypting session cannot be copied or pickled")


def counting(start: int) -> Callable[[], int]:
    """Counts from ``start``; no number is given twice, to any number of threads [CL-ENV-031]."""
    if HAS_GIL:
        return itertools.count(start).__next__  # one call of C code: the interpreter's lock is held throughout
    lock, count = threading.Lock(), itertools.count(start)

    def locked() -> int:
        with lock:
            return next(count)

    return locked


def _begin(key: Key, salt: bytes) -> AESGCM:
    try:
        return key.derive(salt)
    except CipherlaneError:
        raise SessionEndedError from None


def decrypt(cipher: AESGCM, nonce: bytes, ciphertext: bytes, additional_data: bytes) -> bytes:
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
        self._ciphers: OrderedDict[tuple[bytes, bytes], AESGCM] = OrderedDict()
        self._lock = threading.Lock()
        forking.reset_in_child(self)

    def cipher(self, key: Key, nonce: bytes) -> AESGCM:
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

    def _add(self, name: tuple[bytes, bytes], cipher: AESGCM) -> AESGCM:
        with self._lock:
            self._ciphers[name] = cipher
            if len(self._ciphers) > self._limit:
                self._ciphers.popitem(last=False)
        return cipher

    def after_fork_in_child(self) -> None:
        """Starts empty: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self._ciphers = OrderedDict()
