"""Costs of encrypting and decrypting one value, against the bare AES-256-GCM call of the same library.

CPU time of the process, warm: key, session and derived cipher are there, as they are for all but the first record.
Prints progress to stderr and one JSON object to stdout; the same goes to build/bench/python-cipher.json.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from typing import Callable, Optional, Sequence

from confluent_kafka import Message
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cipherlane import Decryptor, Encryptor, backend, pure
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
from report import Row, compare, publish

SIZES = (128, 1024, 8192)
RUNS = 7
RECORDS = 20_000
BATCH = 500
"""Records that a consumer hands over together."""
ROWS = ("raw-cipher", "cipherlane", "cipherlane-native")
TOPIC = "bench"


FIELDS = pure.Fields(Message.topic, Message.value, Message.set_value)


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


def micros_per_record(work: Callable[[], object], records_of_call: int) -> float:
    """CPU time of one record, over many."""
    started = time.process_time_ns()
    for _ in range(RECORDS // records_of_call):
        work()
    return (time.process_time_ns() - started) / RECORDS / 1000


def ours(size: int, chosen: Optional[backend.Backend]) -> dict[str, Callable[[], object]]:
    """For each operation our call, with one of the ciphers."""
    if chosen is None:
        raise RuntimeError("cipherlane-native is not installed: make setup")
    backend.current = chosen
    plaintext, source = os.urandom(size), OneKey()
    encryptor = Encryptor(source, KeySettings(), Writing(1 << 20))
    decryptor = Decryptor(source, KeySettings(), max_plaintext=1 << 20)
    envelope = encryptor.encrypt(TOPIC, plaintext)
    if decryptor.decrypt(TOPIC, envelope) != plaintext:
        raise RuntimeError("what was encrypted does not decrypt")
    envelopes = [envelope] * BATCH
    messages = [Message(topic=TOPIC, value=envelope) for _ in range(BATCH)]
    return {
        "encrypt": lambda: encryptor.encrypt(TOPIC, plaintext),
        "decrypt": lambda: decryptor.decrypt(TOPIC, envelope),
        "decrypt-batch": lambda: whole_batch(decryptor, messages, envelopes),
    }


def whole_batch(decryptor: Decryptor, messages: list[Message], envelopes: list[Optional[bytes]]) -> None:
    """As a consumer does it: once a second records go the long way. What puts the envelopes back is counted too."""
    for index in decryptor.decrypt_all_at_once(messages, FIELDS):
        decryptor.decrypt(TOPIC, envelopes[index])
    deque(map(Message.set_value, messages, envelopes), 0)


def calls_of(size: int) -> dict[str, list[Callable[[], object]]]:
    """For each operation the bare cipher's call and ours."""
    plaintext, additional_data, nonce = os.urandom(size), os.urandom(27), os.urandom(12)
    bare = AESGCM(os.urandom(32))
    ciphertext = bare.encrypt(nonce, plaintext, additional_data)
    found: dict[str, list[Callable[[], object]]] = {
        "encrypt": [lambda: bare.encrypt(nonce, plaintext, additional_data)],
        "decrypt": [lambda: bare.decrypt(nonce, ciphertext, additional_data)],
        "decrypt-batch": [lambda: [bare.decrypt(nonce, ciphertext, additional_data) for _ in range(BATCH)]],
    }
    for chosen in (backend.PURE, backend.native()):
        for operation, call in ours(size, chosen).items():
            found[operation].append(call)
    return found


def rows(case: str, calls: Sequence[Callable[[], object]], records_of_call: int) -> list[Row]:
    """Measures in turns, after a warm-up that does not count."""
    for call in calls:
        micros_per_record(call, records_of_call)
    measured = [[micros_per_record(call, records_of_call) for call in calls] for _ in range(RUNS)]
    found = compare(case, ROWS, measured)
    for index, row in enumerate(found):
        row["beyond_the_cipher"] = round(statistics.median(run[index] - run[0] for run in measured), 3)
    return found


def main() -> None:
    """Runs all cases."""
    made = [
        row
        for size in SIZES
        for operation, calls in calls_of(size).items()
        for row in rows(f"{operation}/{size}B", calls, BATCH if "batch" in operation else 1)
    ]
    publish("python-cipher", "cpu_us_per_record", RUNS, made)


if __name__ == "__main__":
    main()
