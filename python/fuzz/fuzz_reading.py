"""Coverage-guided fuzzing (atheris) of everything that reads bytes from outside: values, answers, settings.

    make fuzz FUZZ_SECONDS=60

A crash is an exception of another kind than the one that callers are told of, or plaintext where there can be none.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

with atheris.instrument_imports(include=["cipherlane"]):
    from cipherlane import compression, envelope
    from cipherlane.configuration import Configuration, Writing
    from cipherlane.decryptor import Decryptor, Record
    from cipherlane.encryptor import Encryptor
    from cipherlane.errors import CipherlaneError, DecryptionError
    from cipherlane.keyservice import answers

from support import QUICK, MemorySource

LIMIT = 1 << 16
NAMES = ["keyservice.urls", "keys.cache.max", "failure.action", "record.key.topics", "dead.letter.topic"]

SOURCE = MemorySource(refresh_in=86_400, expires_in=86_400)
KID, _KEY = SOURCE.add("t")
SEALED = Encryptor(SOURCE, QUICK, Writing(LIMIT)).encrypt("t", b"the plaintext") or b""
DECRYPTOR = Decryptor(SOURCE, QUICK, max_plaintext=LIMIT)


def read_value(data: bytes) -> None:
    """A value from Kafka: refused, for there is one envelope that is right, and this is it or it is not."""
    for value in (data, SEALED[:4] + KID + data, SEALED[: len(data) % len(SEALED)] + data):
        outcome = DECRYPTOR.decrypt_all([Record("t", value, b"k", 0, 0)])[0]
        if value == SEALED:
            assert outcome == b"the plaintext"
        else:
            assert isinstance(outcome, DecryptionError)
            assert outcome.code != "internal"


def parse_envelope(data: bytes) -> None:
    """What is parsed is written back the same."""
    try:
        parsed = envelope.parse(envelope.MAGIC + data)
    except CipherlaneError:
        return
    assert parsed.header + parsed.nonce + parsed.ciphertext == envelope.MAGIC + data


def read_answer(data: bytes) -> None:
    """An answer of the key service."""
    for status, kind in ((200, "application/json"), (403, "application/problem+json"), (500, "")):
        for read in (answers.encryption_key, functools.partial(answers.decryption_keys, [KID])):
            with contextlib.suppress(CipherlaneError):
                read(status, kind, data)


def decompress(data: bytes) -> None:
    """An authentic frame that is none, or too long."""
    for frame in (data, b"\x28\xb5\x2f\xfd" + data):
        with contextlib.suppress(CipherlaneError):
            assert len(compression.decompress(frame, 1000)) <= 1000


def read_settings(data: bytes) -> None:
    """Settings, as text of any kind."""
    provider = atheris.FuzzedDataProvider(data)
    settings = {}
    for _ in range(provider.ConsumeIntInRange(0, 8)):
        settings["cipherlane." + provider.PickValueInList(NAMES)] = provider.ConsumeUnicode(40)
    with contextlib.suppress(CipherlaneError):
        Configuration.from_settings({"cipherlane.keyservice.tls.ca": "a", **settings})


TARGETS = (read_value, parse_envelope, read_answer, decompress, read_settings)


def one_input(data: bytes) -> None:
    """The first byte chooses the target."""
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
