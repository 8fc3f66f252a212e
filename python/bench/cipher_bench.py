"""Costs of encrypting and decrypting one value, against the bare AES-256-GCM call of the same library.

CPU time of the process, warm: key, session and derived cipher are there, as they are for all but the first record.
Prints progress to stderr and one JSON object to stdout; the same goes to build/bench/python-cipher.json.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Callable, Optional, Sequence

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cipherlane import Decryptor, Encryptor
from cipherlane.cipher import key_id
from cipherlane.configuration import Writing
from cipherlane.keys import (
    DataKey,
    DecryptionAnswer,
    DecryptionGrant,
    EncryptionAnswer,
    EncryptionGrant,
    KeySettings,
    Leased,
    PlaintextPolicy,
    UsageReport,
)
from report import Row, pair, publish

SIZES = (128, 1024, 8192)
RUNS = 7
RECORDS = 20_000
TOPIC = "bench"


class OneKey:
    """Gives one key, as the key service would; asked once in each benchmark."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._kid = key_id(self._key)

    def encryption_key(self, _topic: str, _usage: Optional[UsageReport]) -> EncryptionAnswer:
        """The key."""
        return Leased(EncryptionGrant(TOPIC, DataKey(self._kid, self._key)), 86_400, 86_400)

    def decryption_keys(self, _topic: str, kids: Sequence[bytes]) -> DecryptionAnswer:
        """The key."""
        granted = {kid: Leased(DecryptionGrant(TOPIC, DataKey(kid, self._key)), 86_400, 86_400) for kid in kids}
        return DecryptionAnswer(Leased(PlaintextPolicy.REJECT, 86_400, 86_400), granted)

    def close(self) -> None:
        """Nothing to close."""


def micros_per_call(work: Callable[[], object]) -> float:
    """CPU time of one call, over many."""
    started = time.process_time_ns()
    for _ in range(RECORDS):
        work()
    return (time.process_time_ns() - started) / RECORDS / 1000


def pairs(size: int) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """For each operation the bare cipher's call and ours."""
    plaintext, additional_data, nonce = os.urandom(size), os.urandom(27), os.urandom(12)
    bare = AESGCM(os.urandom(32))
    ciphertext = bare.encrypt(nonce, plaintext, additional_data)
    source = OneKey()
    encryptor = Encryptor(source, KeySettings(), Writing(1 << 20))
    decryptor = Decryptor(source, KeySettings(), max_plaintext=1 << 20)
    envelope = encryptor.encrypt(TOPIC, plaintext)
    if decryptor.decrypt(TOPIC, envelope) != plaintext:
        raise RuntimeError("what was encrypted does not decrypt")
    return {
        "encrypt": (
            lambda: bare.encrypt(nonce, plaintext, additional_data),
            lambda: encryptor.encrypt(TOPIC, plaintext),
        ),
        "decrypt": (
            lambda: bare.decrypt(nonce, ciphertext, additional_data),
            lambda: decryptor.decrypt(TOPIC, envelope),
        ),
    }


def rows(case: str, bare: Callable[[], object], ours: Callable[[], object]) -> list[Row]:
    """Measures a pair, interleaved, after a warm-up that does not count."""
    micros_per_call(bare), micros_per_call(ours)
    measured = [(micros_per_call(bare), micros_per_call(ours)) for _ in range(RUNS)]
    beyond = statistics.median(second - first for first, second in measured)
    return pair(case, ("raw-cipher", "cipherlane"), measured, beyond_the_cipher=round(beyond, 3))


def main() -> None:
    """Runs all cases."""
    made = [
        row
        for size in SIZES
        for operation, calls in pairs(size).items()
        for row in rows(f"{operation}/{size}B", *calls)
    ]
    publish("python-cipher", "cpu_us_per_record", RUNS, made)


if __name__ == "__main__":
    main()
