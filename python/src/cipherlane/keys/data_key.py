"""The data key: the one object that holds key bytes. It does not print, copy or pickle, and it can be wiped."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Union

from cipherlane import cipher
from cipherlane.errors import CipherlaneError, ErrorCode

if TYPE_CHECKING:
    from cipherlane.backend import Aead


class DataKey:
    """A data key that was checked against its kid. Safe for use by threads.

    Args:
        kid: 16 bytes
        key: 32 bytes; copied

    Raises:
        CipherlaneError: ``key-malformed`` or ``key-id-mismatch`` [CL-KEY-004] [CL-ENV-009]
    """

    __slots__ = ("_key", "_lock", "kid", "wiped")

    def __init__(self, kid: bytes, key: Union[bytes, bytearray]) -> None:
        if len(key) != cipher.KEY_SIZE:
            raise CipherlaneError(ErrorCode.KEY_MALFORMED, f"a key of {len(key)} bytes, not {cipher.KEY_SIZE}", kid=kid)
        if cipher.key_id(key) != kid:
            raise CipherlaneError(ErrorCode.KEY_ID_MISMATCH, "the key does not hash to the kid", kid=kid)
        self.kid = kid
        self.wiped = False
        self._key = bytearray(key)
        self._lock = threading.Lock()

    def derive(self, salt: bytes) -> Aead:
        """The cipher for nonces that start with ``salt`` (12 bytes).

        Raises:
            CipherlaneError: ``lease-expired`` when the key is wiped
        """
        # The lock keeps a wipe out until the derivation is done: half of a key is a key that others can guess.
        with self._lock:
            if self.wiped:
                raise CipherlaneError(ErrorCode.LEASE_EXPIRED, "the lease ended", kid=self.kid)
            return cipher.derive(self._key, salt)

    def wipe(self) -> None:
        """Overwrites the key bytes; the key is of no use from then on [CL-KEY-005]."""
        with self._lock:
            self.wipe_in_child()

    def wipe_in_child(self) -> None:
        """The same without the lock, for when no other thread can be here, as in a forked child."""
        self.wiped = True
        self._key[:] = bytes(len(self._key))

    def __del__(self) -> None:
        """Wipes a key that was dropped without a word."""
        if hasattr(self, "_key"):
            self.wipe_in_child()

    def __repr__(self) -> str:
        """The kid; never the key [CL-KEY-015]."""
        return f"DataKey(kid={self.kid.hex()})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses to be pickled or copied [CL-KEY-015]."""
        raise TypeError("a data key cannot be copied or pickled")
