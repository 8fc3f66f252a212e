"""What every record costs, in Python over ``cryptography``; what the names mean is said in :mod:`cipherlane.backend`.

Derived keys live in OpenSSL contexts, which overwrite them when they are freed; the bytes in between are Python's, and
gone when their memory is used again (spec/threat-model.md).
"""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any, Callable, NamedTuple, Optional, Protocol, Union

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.cmac import CMAC

from cipherlane import clock as clocks
from cipherlane import forking

SESSION_RECORDS = 2**32 - 1
SALT_SIZE = 12
_OPENING = 32  # header and salt
_CONTENT = 44

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether one thread at a time runs Python code; not so in free-threaded builds."""


class _Key(Protocol):
    @property
    def wiped(self) -> bool: ...


class Tally:
    """See :class:`cipherlane.backend.Tally`. The GIL guards it; where there is none, the short way is not taken."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records = self.bytes = 0


class Fields(NamedTuple):
    """How a record's topic and value are read, and its value written: functions of C are the quickest."""

    topic_of: Callable[[Any], Any]
    value_of: Callable[[Any], Any]
    set_value: Callable[[Any, Any], Any]


class Sealer(NamedTuple):
    """See :class:`cipherlane.backend.Sealer`."""

    seal: Callable[[Any], Optional[bytes]]
    tally: Tally


class Aead:
    """See :class:`cipherlane.backend.Aead`."""

    __slots__ = ("decrypt", "encrypt")

    def __init__(self, cipher: AESGCM) -> None:
        self.encrypt = cipher.encrypt
        self.decrypt = cipher.decrypt

    def session(
        self,
        key: _Key,
        prefix: bytes,
        counter: int,
        alive: forking.Mark,
        clock: Optional[clocks.Clock],
        until: float,
    ) -> Session:
        """See :meth:`cipherlane.backend.Aead.session`."""
        return Session(self, key, prefix, counting(counter), alive, clock or clocks.lease_clock, until)

    def opener(self, additional_data: bytes, until: float) -> Opener:
        """See :meth:`cipherlane.backend.Aead.opener`."""
        return Opener(self.decrypt, additional_data, until)


class Session:
    """See :class:`cipherlane.backend.Session`."""

    __slots__ = ("_alive", "_clock", "_count", "_encrypt", "_key", "_prefix", "_until")

    def __init__(
        self,
        aead: Aead,
        key: _Key,
        prefix: bytes,
        count: Callable[[], int],
        alive: forking.Mark,
        clock: clocks.Clock,
        until: float,
    ) -> None:
        self._encrypt = aead.encrypt
        self._key = key
        self._prefix = prefix
        self._count = count
        self._alive = alive
        self._clock = clock
        self._until = [until]

    def use_until(self, moment: float) -> None:
        """See :meth:`cipherlane.backend.Session.use_until`."""
        self._until[0] = moment

    def sealer(self, before: bytes, additional_data: bytes, longest: int) -> Sealer:
        """See :meth:`cipherlane.backend.Session.sealer`."""
        alive, clock, until, key, count, encrypt = (
            self._alive, self._clock, self._until, self._key, self._count, self._encrypt,
        )  # fmt: skip
        beginning, salt_rest, tally = before + self._prefix, self._prefix[SALT_SIZE:], Tally()

        def seal(plaintext: Any) -> Optional[bytes]:  # noqa: ANN401
            # This is what every record costs: no lock, no system call, no other Python code.
            if type(plaintext) is not bytes or len(plaintext) > longest:
                return None
            if not alive[0] or clock() >= until[0] or key.wiped:
                return None
            counter = count()
            if counter >= SESSION_RECORDS:
                return None
            tail = counter.to_bytes(4, "big")
            written = b"".join((beginning, tail, encrypt(salt_rest + tail, plaintext, additional_data)))
            tally.records += 1  # threads do not change places inside these lines
            tally.bytes += len(plaintext)
            return written

        return Sealer(seal, tally)


class Opener(NamedTuple):
    """See :class:`cipherlane.backend.Opener`."""

    decrypt: Callable[[bytes, bytes, bytes], bytes]
    additional_data: bytes
    until: float


def derive(key: Union[bytes, bytearray], salt: bytes) -> Aead:
    """See :attr:`cipherlane.backend.Backend.derive`."""
    return raw(_derived_block(key, 1, salt) + _derived_block(key, 2, salt))


def raw(key: bytes) -> Aead:
    """See :attr:`cipherlane.backend.Backend.raw`."""
    return Aead(AESGCM(key))


def _derived_block(key: Union[bytes, bytearray], counter: int, salt: bytes) -> bytes:
    # CMAC of one whole block is AES(key, block xor K1), which is what XAES-256-GCM is defined by.
    mac = CMAC(AES256(key))
    mac.update(bytes((0, counter, 0x58, 0)) + salt)
    return mac.finalize()


def counting(start: int) -> Callable[[], int]:
    """Counts from ``start``; no number is given twice, to any number of threads [CL-ENV-031]."""
    if HAS_GIL:
        return itertools.count(start).__next__  # one call of C code: the interpreter's lock is held throughout
    lock, count = threading.Lock(), itertools.count(start)

    def locked() -> int:
        with lock:
            return next(count)

    return locked


def open_one(
    openings: dict[tuple[str, bytes], Opener],
    topic: Any,  # noqa: ANN401 - whatever a client's message has
    value: Any,  # noqa: ANN401
    longest: int,
    clock: Optional[clocks.Clock],
) -> Optional[bytes]:
    """See :attr:`cipherlane.backend.Backend.open_one`."""
    try:
        decrypt, additional_data, until = openings[topic, value[:_OPENING]]
        if (clock or clocks.lease_clock)() < until and len(value) <= longest:
            return decrypt(value[_OPENING:_CONTENT], value[_CONTENT:], additional_data)
    except Exception:  # noqa: BLE001, S110 - whatever it is, the long way finds it again and names it
        pass
    return None


def open_all(
    openings: dict[tuple[str, bytes], Opener],
    records: list[Any],
    fields: Fields,
    longest: int,
    clock: Optional[clocks.Clock],
) -> list[int]:
    """See :attr:`cipherlane.backend.Backend.open_all`."""
    return [
        index for index, record in enumerate(records) if not _open_in_place(openings, record, fields, longest, clock)
    ]


def _open_in_place(
    openings: dict[tuple[str, bytes], Opener],
    record: Any,  # noqa: ANN401
    fields: Fields,
    longest: int,
    clock: Optional[clocks.Clock],
) -> bool:
    """Before the next record is looked at, so that its plaintext can have the memory of this one's ciphertext."""
    topic_of, value_of, set_value = fields
    try:
        plaintext = open_one(openings, topic_of(record), value_of(record), longest, clock)
        if plaintext is not None:
            set_value(record, plaintext)
    except Exception:  # noqa: BLE001 - as in open_one
        return False
    return plaintext is not None
