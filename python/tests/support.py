"""What several tests need: vectors, keys, a key source in memory, and a clock that stands still."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Union

import pytest

from cipherlane.cipher import key_id
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys import (
    DataKey,
    DecryptionAnswer,
    DecryptionGrant,
    EncryptionAnswer,
    EncryptionGrant,
    KeySettings,
    Leased,
    PlaintextPolicy,
    UnencryptedMode,
    UsageReport,
)

if sys.version_info >= (3, 14):
    from compression import zstd as zstd  # noqa: PLC0414 - for the tests
else:
    from backports import zstd as zstd  # noqa: PLC0414 - for the tests

REPOSITORY = Path(__file__).resolve().parents[2]
VECTORS = REPOSITORY / "spec" / "vectors"

QUICK = KeySettings(deadline=5.0, retry_backoff=0.5, cache_max=10_000)


def vectors(kind: str) -> list[Any]:
    """The vectors of a kind; no file, or an empty one, is a failure and not a test less."""
    found = json.loads((VECTORS / f"{kind}.json").read_text(encoding="utf-8"))
    assert found["kind"] == kind
    assert found["vectors"]
    return list(found["vectors"])


def by_id(vector: Any) -> str:
    return str(vector["id"])


def new_key() -> tuple[bytes, bytes]:
    """A random data key: kid and key."""
    key = os.urandom(32)
    return key_id(key), key


def error_code(code: str) -> ErrorCode:
    return next(known for known in ErrorCode if known.code == code)


def eventually(condition: Callable[[], object], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.002)


def in_flight(keys: Any) -> bool:
    cache = keys._cache
    with cache._lock:
        return bool(cache._requests.active > 0)


def code_of(action: Callable[[], object]) -> str:
    with pytest.raises(CipherlaneError) as raised:
        action()
    return raised.value.code


class ManualClock:
    """Stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class MemorySource:
    """Answers for keys from memory, and remembers what it was asked.

    ``before`` runs in front of each answer: it may wait, or raise.
    """

    def __init__(self, *, refresh_in: float = 150, expires_in: float = 300) -> None:
        self.lease = (refresh_in, expires_in)
        self.plaintext = PlaintextPolicy.REJECT
        self.topics: dict[str, Union[tuple[str, bytes, bytes], UnencryptedMode]] = {}
        self.keys: dict[bytes, Union[tuple[str, bytes], CipherlaneError]] = {}
        self.asked: list[tuple[str, list[bytes]]] = []
        self.usage: list[Optional[UsageReport]] = []
        self.before: Callable[[], object] = lambda: None
        self.given: list[DataKey] = []
        self.closed = False
        self._lock = threading.Lock()

    def add(self, topic: str, scope: Optional[str] = None) -> tuple[bytes, bytes]:
        """A new current key for a topic."""
        kid, key = new_key()
        self.topics[topic] = (scope or topic, kid, key)
        self.keys[kid] = (scope or topic, key)
        return kid, key

    def encryption_key(self, topic: str, usage: Optional[UsageReport]) -> EncryptionAnswer:
        with self._lock:
            self.asked.append((topic, []))
            self.usage.append(usage)
        self.before()
        found = self.topics.get(topic)
        if found is None:
            raise CipherlaneError(ErrorCode.TOPIC_UNKNOWN, "no rule")
        if isinstance(found, UnencryptedMode):
            return Leased(found, *self.lease)
        scope, kid, key = found
        return Leased(EncryptionGrant(scope, self._give(kid, key)), *self.lease)

    def decryption_keys(self, topic: str, kids: Sequence[bytes]) -> DecryptionAnswer:
        with self._lock:
            self.asked.append((topic, list(kids)))
        self.before()
        return DecryptionAnswer(Leased(self.plaintext, *self.lease), {kid: self._answer(kid) for kid in kids})

    def close(self) -> None:
        self.closed = True

    def _answer(self, kid: bytes) -> Union[Leased[DecryptionGrant], CipherlaneError]:
        found = self.keys.get(kid, CipherlaneError(ErrorCode.KEY_UNKNOWN, "no such key"))
        if isinstance(found, CipherlaneError):
            return CipherlaneError(found.error_code, found.detail)
        scope, key = found
        try:
            return Leased(DecryptionGrant(scope, self._give(kid, key)), *self.lease)
        except CipherlaneError as error:
            return error

    def _give(self, kid: bytes, key: bytes) -> DataKey:
        given = DataKey(kid, key)
        with self._lock:
            self.given.append(given)
        return given
