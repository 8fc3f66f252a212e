"""The envelope's bytes, beyond the vectors: every flipped bit, every cut, and properties."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cipherlane import cipher, envelope
from cipherlane.cipher import EncryptingSession
from cipherlane.decryptor import Decryptor, Record
from cipherlane.errors import CipherlaneError, DecryptionError
from cipherlane.keys import DataKey
from support import QUICK, MemorySource

SIZES = (0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 90, 100, 128)

record_keys = st.none() | st.binary(max_size=40)


def make(source: MemorySource, plaintext: bytes, flags: int = 0, record_key: Optional[bytes] = None) -> bytes:
    kid, key = source.add("t")
    header = envelope.header(flags, kid)
    session = EncryptingSession(DataKey(kid, key))
    return session.encrypt(plaintext, envelope.additional_data(header, "t", record_key), header)


def refusals(source: MemorySource, values: list[bytes]) -> list[Any]:
    with Decryptor(source, QUICK, max_plaintext=1 << 20) as decryptor:
        return decryptor.decrypt_all([Record("t", value, b"k") for value in values])


@pytest.mark.parametrize("size", SIZES)
def test_every_flipped_bit_is_refused(size: int) -> None:
    """CL-ENV-002 to CL-ENV-012: 20 envelopes, each with each of its bits flipped."""
    source = MemorySource()
    value = make(source, os.urandom(size), envelope.FLAG_RECORD_KEY_BOUND if size % 2 else 0, b"k")
    broken = []
    for bit in range(8 * len(value)):
        flipped = bytearray(value)
        flipped[bit // 8] ^= 1 << (bit % 8)
        broken.append(bytes(flipped))
    outcomes = refusals(source, [*broken, value])
    assert isinstance(outcomes.pop(), bytes)
    assert all(isinstance(outcome, DecryptionError) for outcome in outcomes)
    codes = {outcome.code for outcome in outcomes}
    assert codes == {
        "plaintext-rejected", "unsupported-version", "unsupported-flags", "key-unknown", "authentication-failed",
    }  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_every_cut_is_refused(size: int) -> None:
    """CL-ENV-004, CL-ENV-006, CL-ENV-010: 20 envelopes, cut at every byte, from the end and from the front."""
    source = MemorySource()
    value = make(source, os.urandom(size))
    cuts = [value[:end] for end in range(len(value))]
    outcomes = refusals(source, [*cuts, *(value[start:] for start in range(1, len(value)))])
    assert all(isinstance(outcome, DecryptionError) for outcome in outcomes)
    expected = ["plaintext-rejected"] * 2 + ["envelope-too-short"] * 58 + ["authentication-failed"] * size
    assert [outcome.code for outcome in outcomes[: len(cuts)]] == expected


@given(st.binary(max_size=200), st.sampled_from([0, 4]), record_keys)
def test_what_is_written_is_read(plaintext: bytes, flags: int, record_key: Optional[bytes]) -> None:
    """CL-ENV-021, CL-ENV-022, CL-ENV-043."""
    source = MemorySource()
    value = make(source, plaintext, flags, record_key)
    assert len(value) == len(plaintext) + envelope.OVERHEAD
    assert envelope.parse(value).record_key_bound == bool(flags)
    with Decryptor(source, QUICK, max_plaintext=1 << 20) as decryptor:
        assert decryptor.decrypt("t", value, record_key) == plaintext


@given(st.binary(max_size=120))
def test_parsing_takes_any_bytes(rest: bytes) -> None:
    """CL-ENV-004 to CL-ENV-007: an envelope, or an error of its own; what was parsed is what was written."""
    value = envelope.MAGIC + rest
    try:
        parsed = envelope.parse(value)
    except CipherlaneError as error:
        assert error.layer == "parse"
        return
    assert envelope.header(parsed.flags, parsed.kid) == parsed.header
    assert parsed.header + parsed.nonce + parsed.ciphertext == value


@given(st.text("abc._-XYZ019", min_size=1, max_size=249), record_keys, record_keys, st.sampled_from([0, 4]))
def test_additional_data_is_injective(scope: str, one: Optional[bytes], other: Optional[bytes], flags: int) -> None:
    """CL-ENV-021: a bound null key, an empty one and any other differ; unbound keys do not matter."""
    header = envelope.header(flags, bytes(16))
    same = envelope.additional_data(header, scope, one) == envelope.additional_data(header, scope, other)
    assert same == (flags == 0 or one == other)
    assert envelope.additional_data(header, scope)[20:22] == struct.pack(">H", len(scope))


@pytest.mark.parametrize("flags", [2, 3, 8, 16, 32, 64, 128, 255])
def test_unknown_flags_are_not_written(flags: int) -> None:
    """CL-ENV-043."""
    with pytest.raises(ValueError, match="flags"):
        envelope.header(flags, bytes(16))


@pytest.mark.parametrize("kid", [b"", bytes(15), bytes(17)])
def test_a_kid_of_a_wrong_size_is_not_written(kid: bytes) -> None:
    with pytest.raises(ValueError, match="kid"):
        envelope.header(0, kid)


@pytest.mark.parametrize("scope", ["", "s" * 250])
def test_a_scope_of_a_wrong_size_is_not_bound(scope: str) -> None:
    """CL-ENV-021."""
    with pytest.raises(ValueError, match="scope"):
        envelope.additional_data(envelope.header(0, bytes(16)), scope)


def test_a_record_key_over_the_limit_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is two gibibytes: it is lowered here, not reached."""
    monkeypatch.setattr(envelope, "MAX_RECORD_KEY_SIZE", 8)
    header = envelope.header(envelope.FLAG_RECORD_KEY_BOUND, bytes(16))
    assert envelope.additional_data(header, "s", bytes(8)).endswith(bytes(8))
    with pytest.raises(CipherlaneError, match="plaintext-too-long"):
        envelope.additional_data(header, "s", bytes(9))


def test_the_kid_is_the_hash_of_the_key_computed_another_way() -> None:
    """CL-ENV-020, by RFC 5869 written out with HMAC of the standard library."""
    key = os.urandom(32)
    pseudo_random_key = hmac.new(bytes(32), key, hashlib.sha256).digest()
    expected = hmac.new(pseudo_random_key, b"cipherlane v1 key id\x01", hashlib.sha256).digest()[:16]
    assert cipher.key_id(key) == expected
