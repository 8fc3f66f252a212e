"""The cryptography of the generator against published values, and against the model's own."""

import hashlib

import pytest
from cryptography.exceptions import InvalidTag

from specheck import model
from specheck.refusal import Refused
from specheck.tink_xaes import tink_decrypt
from vectorgen import crypto
from vectorgen.twokeys import two_key_ciphertext
from vectorgen.vector import flip

NONCE = b"ABCDEFGHIJKLMNOPQRSTUVWX"


@pytest.mark.parametrize(
    ("byte", "derived"),
    [
        (b"\x01", "c8612c9ed53fe43e8e005b828a1631a0bbcb6ab2f46514ec4f439fcfd0fa969b"),
        (b"\x03", "e9c621d4cdd9b11b00a6427ad7e559aeedd66b3857646677748f8ca796cb3fd8"),
    ],
)
def test_derived_key_is_the_one_that_c2sp_publishes(byte: bytes, derived: str) -> None:
    assert crypto.derive(byte * 32, NONCE).hex() == derived


def test_ten_thousand_ciphertexts_of_c2sp() -> None:
    stream = _Stream()
    hashed = hashlib.shake_128()
    for _ in range(10_000):
        key, nonce = stream.take(32), stream.take(24)
        plaintext, aad = (stream.take(stream.take(1)[0]) for _ in range(2))
        hashed.update(crypto.xaes_encrypt(key, nonce, plaintext, aad))
    assert hashed.hexdigest(32) == "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939"


class _Stream:
    """SHAKE-128 of nothing, as C2SP's random source."""

    def __init__(self) -> None:
        self._bytes = hashlib.shake_128().digest(10_000 * (32 + 24 + 2 * 256))
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._bytes[self._at - size : self._at]


def test_key_id_by_two_implementations() -> None:
    for label in ("a", "b", "c"):
        key = crypto.drbg(label, 32)
        assert crypto.key_id(key) == model.kid_of(key)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_key_id_of_what_is_not_a_key(size: int) -> None:
    with pytest.raises(Refused, match="key-malformed"):
        model.kid_of(bytes(size))


def test_drbg_is_shake256_of_the_label() -> None:
    expected = hashlib.shake_256(b"cipherlane test vectors v1\x00label").digest(7)
    assert crypto.drbg("label", 7) == expected
    assert crypto.drbg("label", 40)[:7] == expected
    assert crypto.drbg("labels", 7) != expected


def test_two_keys_open_one_ciphertext() -> None:
    keys, nonce = (bytes(32), b"\x01" * 32), crypto.drbg("nonce", 24)
    sealed = two_key_ciphertext(keys, nonce, b"aad", b"a block of bytes")
    first, second = (tink_decrypt(key, nonce + sealed, b"aad") for key in keys)
    assert first != second
    for changed, aad in ((flip(sealed, 0), b"aad"), (flip(sealed, -1), b"aad"), (sealed, b"aae")):
        for key in keys:
            with pytest.raises(InvalidTag):
                crypto.xaes_decrypt(key, nonce, changed, aad)
            with pytest.raises(Refused, match="authentication-failed"):
                tink_decrypt(key, nonce + changed, aad)
