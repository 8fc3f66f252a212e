"""XAES-256-GCM, sessions, and the cache of derived keys."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
from typing import Any

import pytest
import tink
from tink import aead, cleartext_keyset_handle
from tink.proto import tink_pb2, x_aes_gcm_pb2

from cipherlane.cipher import (
    DerivedKeys,
    EncryptingSession,
    SessionEndedError,
    decrypt,
    key_id,
)
from cipherlane.errors import CipherlaneError
from cipherlane.keys import DataKey
from cipherlane.pure import SESSION_RECORDS
from support import ManualClock, new_key


def data_key() -> DataKey:
    return DataKey(*new_key())


def tink_aead(key: bytes) -> Any:
    """Tink's X-AES-GCM with this key: RAW prefix, 12-byte salt."""
    aead.register()
    inner = x_aes_gcm_pb2.XAesGcmKey(version=0, params=x_aes_gcm_pb2.XAesGcmParams(salt_size=12), key_value=key)
    keyset = tink_pb2.Keyset(primary_key_id=1)
    keyset.key.add(
        key_data=tink_pb2.KeyData(
            type_url="type.googleapis.com/google.crypto.tink.XAesGcmKey",
            value=inner.SerializeToString(),
            key_material_type=tink_pb2.KeyData.SYMMETRIC,
        ),
        status=tink_pb2.ENABLED,
        key_id=1,
        output_prefix_type=tink_pb2.RAW,
    )
    reader = tink.BinaryKeysetReader(keyset.SerializeToString())
    return cleartext_keyset_handle.read(reader).primitive(aead.Aead)


@pytest.mark.parametrize("size", [0, 1, 16, 1000, 70_000])
def test_tink_opens_what_we_write_and_we_open_what_tink_writes(size: int) -> None:
    """CL-ENV-022."""
    kid, key = new_key()
    ours, theirs = EncryptingSession(DataKey(kid, key)), tink_aead(key)
    plaintext, additional_data = os.urandom(size), os.urandom(30)
    written = ours.encrypt(plaintext, additional_data)
    assert theirs.decrypt(written, additional_data) == plaintext
    other = theirs.encrypt(plaintext, additional_data)
    assert opened(DerivedKeys(), DataKey(kid, key), other, additional_data) == plaintext
    with pytest.raises(tink.TinkError):
        theirs.decrypt(written, additional_data + b"x")


def test_no_nonce_is_used_twice_by_64_threads() -> None:
    """CL-ENV-030, CL-ENV-031."""
    session = EncryptingSession(data_key())
    nonces: list[bytes] = []

    def work() -> None:
        nonces.extend(session.encrypt(b"", b"")[:24] for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(nonces)) == len(nonces) == 64 * 500
    assert {nonce[:20] for nonce in nonces} == {nonces[0][:20]}
    assert sorted(int.from_bytes(nonce[20:], "big") for nonce in nonces) == list(range(64 * 500))


def test_sessions_draw_their_own_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-ENV-030: 20 bytes of os.urandom."""
    key = data_key()
    assert len({EncryptingSession(key).encrypt(b"", b"")[:20] for _ in range(100)}) == 100
    monkeypatch.setattr(os, "urandom", lambda size: bytes(range(size)))
    assert EncryptingSession(key).encrypt(b"", b"")[:24] == bytes(range(20)) + bytes(4)


def test_a_session_ends_after_its_last_record() -> None:
    """CL-ENV-032: FFFFFFFE is the last counter."""
    session = EncryptingSession(data_key(), counter=SESSION_RECORDS - 1)
    assert session.encrypt(b"", b"")[20:24] == b"\xff\xff\xff\xfe"
    for _ in range(3):
        with pytest.raises(SessionEndedError):
            session.encrypt(b"", b"")


def test_a_session_ends_after_15_minutes() -> None:
    """CL-ENV-033."""
    clock = ManualClock()
    session = EncryptingSession(data_key(), clock=clock)
    clock.now += 899.999
    session.encrypt(b"", b"")
    clock.now += 0.001
    with pytest.raises(SessionEndedError):
        session.encrypt(b"", b"")


def test_a_session_ends_with_its_key() -> None:
    """CL-ENV-034."""
    key = data_key()
    session = EncryptingSession(key)
    session.encrypt(b"", b"")
    key.wipe()
    with pytest.raises(SessionEndedError):
        session.encrypt(b"", b"")
    with pytest.raises(SessionEndedError):
        EncryptingSession(key)


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(make_copy: Any) -> None:
    """CL-ENV-031: a copy would use nonces again."""
    with pytest.raises(TypeError, match="copied"):
        make_copy(EncryptingSession(data_key()))


def in_child(session: EncryptingSession, sink: Any) -> None:
    try:
        sink.send(session.encrypt(b"", b"")[:24])
    except SessionEndedError:
        sink.send(None)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_use_its_parents_session() -> None:
    """CL-ENV-035."""
    session = EncryptingSession(data_key())
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=in_child, args=(session, there), daemon=True)
    child.start()
    assert here.poll(20)
    assert here.recv() is None
    child.join(20)
    assert child.exitcode == 0
    session.encrypt(b"", b"")


def encrypted(key: DataKey) -> bytes:
    return EncryptingSession(key).encrypt(b"x", b"")


def opened(derived: DerivedKeys, key: DataKey, written: bytes, additional_data: bytes = b"") -> bytes:
    nonce = written[:24]
    return decrypt(derived.cipher(key, nonce), nonce, written[24:], additional_data)


def test_derived_keys_are_bounded_and_the_oldest_goes() -> None:
    """The limit of 4,096, here of 3; a cipher that was dropped is derived again."""
    derived, key = DerivedKeys(3), data_key()
    records = [encrypted(key) for _ in range(5)]
    for record in records[:3]:
        opened(derived, key, record)
    opened(derived, key, records[0])  # used again: the second is the oldest now
    opened(derived, key, records[3])
    assert len(derived) == 3
    kept = {salt for _, salt in derived._ciphers}
    assert kept == {records[index][:12] for index in (0, 2, 3)}
    assert opened(derived, key, records[1]) == b"x"
    assert len(derived) == 3
    assert DerivedKeys()._limit == 4096


def test_what_was_derived_goes_with_its_key() -> None:
    """CL-KEY-005."""
    derived, key, other = DerivedKeys(), data_key(), data_key()
    opened(derived, key, encrypted(key))
    opened(derived, other, encrypted(other))
    derived.forget(key.kid)
    assert {kid for kid, _ in derived._ciphers} == {other.kid}


def test_a_wiped_key_derives_nothing() -> None:
    """CL-KEY-005."""
    kid, key = new_key()
    data = DataKey(kid, key)
    record = encrypted(data)
    data.wipe()
    assert data._key == bytearray(32)
    with pytest.raises(CipherlaneError, match="lease-expired"):
        opened(DerivedKeys(), data, record)


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_only_keys_of_32_bytes(size: int) -> None:
    """CL-KEY-004."""
    with pytest.raises(CipherlaneError, match="key-malformed"):
        DataKey(bytes(16), bytes(size))


def test_only_keys_that_hash_to_their_kid() -> None:
    """CL-KEY-004, CL-ENV-009."""
    kid, key = new_key()
    for wrong in (bytes(16), kid[:-1] + bytes([kid[-1] ^ 1]), kid[:15]):
        with pytest.raises(CipherlaneError, match="key-id-mismatch"):
            DataKey(wrong, key)
    assert DataKey(key_id(key), key).kid == kid
