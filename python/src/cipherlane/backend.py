"""Which code does what each record costs: ``cipherlane_native``, in C, where it is installed, else ``cipherlane.pure``.

Both write and read the same bytes and raise the same errors. ``CIPHERLANE_PURE=1`` in the environment leaves the first
aside.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Callable, NamedTuple, Optional, Protocol, Union, cast

from cipherlane import forking, pure
from cipherlane.pure import Fields

INTERFACE = 2
"""What :mod:`cipherlane_native` must say of itself."""

Clock = Callable[[], float]


class Tally(Protocol):
    """What a sealer encrypted."""

    @property
    def records(self) -> int:
        """How many."""

    @property
    def bytes(self) -> int:
        """Of plaintext."""


class Sealer(Protocol):
    """Encrypts under one session and one AAD."""

    seal: Callable[[Any], Optional[bytes]]
    """Of a value: what stands before each, nonce, ciphertext and tag. None: the session ended, or the value is no
    bytes, or too long; nothing was encrypted."""

    @property
    def tally(self) -> Tally:
        """Of this sealer."""


class Session(Protocol):
    """Gives the nonces of an encrypting session, each once; see :class:`cipherlane.cipher.EncryptingSession`."""

    def use_until(self, moment: float, /) -> None:
        """Ends it at a moment of the clock."""

    def sealer(self, before: bytes, additional_data: bytes, longest: int, /) -> Sealer:
        """For values of at most ``longest`` bytes; ``before`` is what each result begins with."""


class Opener(Protocol):
    """Decrypts the envelopes of one session and one AAD, in :attr:`Backend.open_all` of the same backend."""


Openers = dict[tuple[str, bytes], Opener]
"""By topic and the first 32 bytes of the envelope, in which the records of a session are the same."""


class Aead(Protocol):
    """AES-256-GCM with a derived key. Safe for use by threads."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes, /) -> bytes:
        """Ciphertext and tag; the nonce has 12 bytes."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes, /) -> bytes:
        """Plaintext of ciphertext and tag; raises ``InvalidTag`` of ``cryptography``."""

    def session(
        self, key: object, prefix: bytes, counter: int, alive: forking.Mark, clock: Optional[Clock], until: float, /
    ) -> Session:
        """A session that ends when ``key.wiped``, in a forked child (``alive``), and at ``until`` of the clock.

        The clock None is that of the system; ``prefix`` has 20 bytes, and begins with the salt of this key.
        """

    def opener(self, additional_data: bytes, until: float, /) -> Opener:
        """Decrypts until a moment of the clock."""


class Backend(NamedTuple):
    """See the module."""

    name: str
    derive: Callable[[Union[bytes, bytearray], bytes], Aead]
    """Derives from a data key (32 bytes) and the first 12 bytes of a nonce [CL-ENV-022]."""
    raw: Callable[[bytes], Aead]
    """Of an AES key as it is, for public vectors."""
    open_one: Callable[[Openers, Any, Any, int, Optional[Clock]], Optional[bytes]]
    """Takes the openers, topic, value, the longest envelope and the clock; gives the plaintext or None. Never raises
    for a value."""
    open_all: Callable[[Openers, list[Any], Fields, int, Optional[Clock]], list[int]]
    """Puts plaintexts in the place of the values of many records; gives the indices of those that are as they were.
    Never raises for a record."""


PURE = Backend("pure", *cast("Any", (pure.derive, pure.raw, pure.open_one, pure.open_all)))


def native() -> Optional[Backend]:
    """The one in C, if it is there and fits."""
    try:
        found = importlib.import_module("cipherlane_native")
    except ImportError:
        return None
    if found.INTERFACE != INTERFACE:
        logging.getLogger(__name__).warning("cipherlane-native is of another version than cipherlane, and is not used")
        return None
    return Backend("native", found.derive, found.raw, found.open_one, found.open_all)


current: Backend = (None if os.environ.get("CIPHERLANE_PURE") == "1" else native()) or PURE
"""What new sessions and derived keys use; tests and benchmarks change it."""
