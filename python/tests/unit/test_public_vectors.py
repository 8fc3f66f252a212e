"""Vectors that others made: C2SP's accumulated ones for XAES-256-GCM, and Wycheproof's for what it is built of.

Wycheproof's files come with its Go module, from the module proxy; they are not copied here.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cipherlane import backend, cipher
from cipherlane.cipher import EncryptingSession
from cipherlane.errors import CipherlaneError
from cipherlane.keys import DataKey

WYCHEPROOF = "github.com/c2sp/wycheproof@v0.0.0-20260902155932-3fa63dd0344a"

ITERATIONS = 10_000
ACCUMULATED = "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939"
"""https://c2sp.org/XAES-256-GCM, "Test Vectors": all ciphertexts of 10,000 random inputs, hashed."""


def test_accumulated_vectors_of_xaes() -> None:
    """CL-ENV-022: keys, nonces, plaintexts and additional data from SHAKE128 of nothing."""
    drawn = memoryview(hashlib.shake_128(b"").digest(ITERATIONS * 600))
    at = 0

    def draw(size: int) -> bytes:
        nonlocal at
        at += size
        return bytes(drawn[at - size : at])

    results = hashlib.shake_128()
    for _ in range(ITERATIONS):
        key, nonce = draw(32), draw(24)
        plaintext = draw(draw(1)[0])
        additional_data = draw(draw(1)[0])
        session = EncryptingSession(
            DataKey(cipher.key_id(key), key),
            prefix=nonce[:20],
            counter=min(int.from_bytes(nonce[20:], "big"), 2**32 - 2),
        )
        written = session.encrypt(plaintext, additional_data)
        assert written[:24] == nonce
        results.update(written[24:])
        assert cipher.decrypt(cipher.derive(key, nonce[:12]), nonce, written[24:], additional_data) == plaintext
    assert results.hexdigest(32) == ACCUMULATED


@functools.lru_cache(maxsize=1)
def wycheproof() -> Path:
    """The folder of the vectors; a failure to get them is a failure of the test."""
    command = ["go", "mod", "download", "-json", WYCHEPROOF]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100, cwd="/")
    return Path(json.loads(found.stdout)["Dir"]) / "testvectors_v1"


def vectors(file: str, **wanted: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cases of the groups that have these sizes: what is to be, and the case with its hexadecimal members as bytes."""
    groups = json.loads((wycheproof() / file).read_text(encoding="utf-8"))["testGroups"]
    chosen = [group for group in groups if all(group[name] == size for name, size in wanted.items())]
    assert chosen
    for group in chosen:
        for case in group["tests"]:
            hexadecimal = {"key", "iv", "aad", "msg", "ct", "tag", "ikm", "salt", "info", "okm"} & set(case)
            yield case["result"], {**case, **{name: bytes.fromhex(case[name]) for name in hexadecimal}}


def test_aes_256_gcm() -> None:
    """CL-ENV-022, CL-ENV-010: through our own decryption too."""
    count = 0
    for result, case in vectors("aes_gcm_test.json", keySize=256, ivSize=96, tagSize=128):
        gcm, nonce, sealed = backend.current.raw(case["key"]), bytes(12) + case["iv"], case["ct"] + case["tag"]
        count += 1
        if result == "valid":
            assert gcm.encrypt(case["iv"], case["msg"], case["aad"]) == sealed
            assert cipher.decrypt(gcm, nonce, sealed, case["aad"]) == case["msg"]
            continue
        with pytest.raises(InvalidTag):
            gcm.decrypt(case["iv"], sealed, case["aad"])
        with pytest.raises(CipherlaneError, match="authentication-failed"):
            cipher.decrypt(gcm, nonce, sealed, case["aad"])
    assert count > 50


def test_hkdf_sha256() -> None:
    """CL-ENV-020: the function that makes key ids."""
    count = 0
    for result, case in vectors("hkdf_sha256_test.json"):
        count += 1
        if result == "valid":
            hkdf = HKDF(SHA256(), case["size"], salt=case["salt"], info=case["info"])
            assert hkdf.derive(case["ikm"]) == case["okm"]
        else:
            with pytest.raises(ValueError, match="larger"):
                HKDF(SHA256(), case["size"], salt=case["salt"], info=case["info"])
    assert count > 50


def test_aes_256_cmac() -> None:
    """CL-ENV-022: the function that derives keys."""
    count = 0
    for result, case in vectors("aes_cmac_test.json", keySize=256, tagSize=128):
        mac = CMAC(AES256(case["key"]))
        mac.update(case["msg"])
        count += 1
        if result == "valid":
            mac.verify(case["tag"])
        else:
            with pytest.raises(InvalidSignature):
                mac.verify(case["tag"])
    assert count > 50
