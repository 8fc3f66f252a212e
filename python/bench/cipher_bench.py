"""Costs of encrypting and decrypting one value, against the bare AES-256-GCM call of the same library.

CPU time of the process, warm: key, session and derived cipher are there, as they are for all but the first record.
Prints progress to stderr and one JSON object to stdout; the same goes to build/bench/python-cipher.json.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

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

NAME = "python-cipher"
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


def rows(case: str, bare: Callable[[], object], ours: Callable[[], object]) -> list[dict[str, Any]]:
    """Measures a pair, interleaved, after a warm-up that does not count."""
    micros_per_call(bare), micros_per_call(ours)
    measured = [(micros_per_call(bare), micros_per_call(ours)) for _ in range(RUNS)]
    print(f"{case}: {statistics.median(one for _, one in measured):.2f} us", file=sys.stderr)
    baseline = summary([one for one, _ in measured])
    ratio = statistics.median(ours_one / bare_one for bare_one, ours_one in measured)
    return [
        {"case": case, "row": "raw-cipher", **baseline},
        {
            "case": case,
            "row": "cipherlane",
            **summary([one for _, one in measured]),
            "baseline": "raw-cipher",
            "ratio": round(ratio, 2),
        },
    ]


def summary(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "value": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }


def processor() -> str:
    """The name of the processor, where the system tells."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    """Runs all cases."""
    result = {
        "benchmark": NAME,
        "unit": "cpu_us_per_record",
        "runs": RUNS,
        "machine": {"cores": os.cpu_count(), "cpu": processor()},
        "rows": [
            row
            for size in SIZES
            for operation, pair in pairs(size).items()
            for row in rows(f"{operation}/{size}B", *pair)
        ],
    }
    line = json.dumps(result)
    folder = Path("build/bench")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.json").write_text(line + "\n", encoding="utf-8")
    print(line)


if __name__ == "__main__":
    main()
