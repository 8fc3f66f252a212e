"""Encryptor and decryptor on top of the keys: sessions, forks, unexpected failures."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cipherlane import forking
from cipherlane.cipher import EncryptingSession
from cipherlane.configuration import Writing
from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.errors import DecryptionError, EncryptionError
from cipherlane.pure import SESSION_RECORDS
from support import QUICK, ManualClock, MemorySource, code_of


def test_sessions_end_with_their_lease_and_their_time() -> None:
    """CL-ENV-033, CL-ENV-034."""
    clock, source = ManualClock(), MemorySource(refresh_in=2000, expires_in=2000)
    source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100), clock=clock)

    def prefix() -> bytes:
        value = encryptor.encrypt("t", b"x")
        assert value is not None
        return value[4:40]

    first = prefix()
    assert prefix() == first
    clock.now += 900
    second = prefix()
    assert second[:16] == first[:16]
    assert second[16:] != first[16:]
    source.add("t")
    clock.now += 1100
    third = prefix()
    assert third[:16] != first[:16]


def test_threads_share_both_while_keys_come_and_go() -> None:
    """CL-ENV-031: leases end in the middle; whatever was written is read, by whichever thread."""
    clock, source = ManualClock(), MemorySource(refresh_in=40, expires_in=50)
    topics = ["a", "b", "c", "d"]
    for topic in topics:
        source.add(topic)
    encryptor, decryptor = (
        Encryptor(source, QUICK, Writing(100), clock=clock),
        Decryptor(source, QUICK, max_plaintext=100, clock=clock),
    )
    written: list[tuple[str, bytes, bytes]] = []
    wrong: list[object] = []

    def work(number: int) -> None:
        for count in range(300):
            topic, plaintext = topics[(number + count) % 4], b"%d-%d" % (number, count)
            value = encryptor.encrypt(topic, plaintext)
            assert value is not None
            written.append((topic, plaintext, value))
            earlier = written[-1 - count % 7 :][:3]
            outcomes = decryptor.decrypt_all([Record(topic, value) for topic, _, value in earlier])
            outcomes += [decryptor.decrypt(topic, value) for topic, _, value in earlier]
            wrong.extend(one for one, (_, sought, _) in zip(outcomes, earlier * 2) if one != sought)
            if count % 10 == number:
                clock.now += 7
            if count % 100 == number:
                source.add(topic)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert wrong == []
    assert len({value[20:44] for _, _, value in written}) == len(written) == 2400
    assert len(source.given) > 12
    assert all(given.wiped for given in source.given[:4])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("action", ["fork", "spawn"])
def test_an_encryptor_that_is_inherited_by_a_child(action: str) -> None:
    """CL-ENV-035, CL-KEY-015: a forked child gets keys and nonces of its own; a spawned one cannot be given any."""
    source = MemorySource()
    source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100))
    mine = encryptor.encrypt("t", b"x")
    assert mine is not None
    if action == "spawn":
        with pytest.raises(TypeError):
            pickle.dumps(encryptor)
        return
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    with encryptor._keys._cache._lock, source.given[0]._lock:
        child = fork.Process(target=encrypt_in_child, args=(encryptor, source, there), daemon=True)
        child.start()
    assert here.poll(20)
    theirs, asked, old_key = here.recv()
    child.join(20)
    assert child.exitcode == 0
    after = encryptor.encrypt("t", b"x")
    assert after is not None
    nonces = {value[20:44] for value in (mine, after, *theirs)}
    assert len(nonces) == 2 + len(theirs)
    assert {value[20:40] for value in theirs} != {mine[20:40]}
    assert asked == 2
    assert old_key == bytes(32)
    assert not source.given[0].wiped


def test_what_a_forked_child_does_first() -> None:
    """CL-ENV-035, in this process, where it can be looked at: keys and ciphers go, locks are new, and it works on."""
    source = MemorySource()
    source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100))
    decryptor = Decryptor(source, QUICK, max_plaintext=100)
    value = encryptor.encrypt("t", b"x")
    assert decryptor.decrypt_all([Record("t", value), Record("t", value[:20] + b"x" * 40 if value else b"")])[0] == b"x"
    inherited = list(source.given)
    assert code_of(lambda: encryptor.encrypt("unknown", b"x")) == "topic-unknown"
    assert len(decryptor._derived) == 2
    for holder in (encryptor._keys._cache, decryptor._keys._cache, decryptor._derived):
        assert holder in set(forking._registered)
        holder._lock.acquire()  # as another thread of the parent would have
    for holder in (encryptor._keys._cache, decryptor._keys._cache, decryptor._derived):
        holder.after_fork_in_child()
    assert all(key.wiped and key._key == bytearray(32) for key in inherited)
    assert len(decryptor._derived) == 0
    assert decryptor.decrypt("t", value) == b"x"
    assert decryptor.decrypt("t", encryptor.encrypt("t", b"y")) == b"y"


def encrypt_in_child(encryptor: Encryptor, source: MemorySource, sink: Any) -> None:
    inherited = source.given[0]
    source._lock = threading.Lock()
    sink.send(([encryptor.encrypt("t", b"x") for _ in range(100)], len(source.asked), bytes(inherited._key)))


@pytest.mark.parametrize("value", ["text", bytearray(b"x"), memoryview(b"x"), 5])
def test_only_bytes_are_encrypted_and_decrypted(value: Any) -> None:
    """CL-KAF-005."""
    source = MemorySource()
    source.add("t")
    with Encryptor(source, QUICK, Writing(100)) as encryptor, pytest.raises(EncryptionError, match="value-type"):
        encryptor.encrypt("t", value)
    with Decryptor(source, QUICK, max_plaintext=100) as decryptor, pytest.raises(DecryptionError, match="value-type"):
        decryptor.decrypt("t", value)
    assert source.asked == []


def test_unexpected_failures_are_errors_and_never_plaintext(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-ENV-012, CL-ENV-044."""
    source = MemorySource()
    source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100))
    decryptor = Decryptor(source, QUICK, max_plaintext=100)
    value = encryptor.encrypt("t", b"canary")

    def out_of_memory(*_args: object) -> bytes:
        raise MemoryError("canary")

    encryptor._streams["t"].seal = out_of_memory
    monkeypatch.setattr("cipherlane.envelope.additional_data", out_of_memory)
    with pytest.raises(EncryptionError, match="internal: encrypting failed: MemoryError") as encrypting:
        encryptor.encrypt("t", b"canary")
    with pytest.raises(DecryptionError, match="internal: decrypting failed: MemoryError") as decrypting:
        decryptor.decrypt("t", value)
    for raised in (encrypting, decrypting):
        assert raised.value.topic == "t"
        assert not raised.value.retriable
        assert "canary" not in str(raised.value)


def test_a_session_that_cannot_be_kept_open_is_an_error() -> None:
    """CL-ENV-044: instead of trying for ever."""
    source = MemorySource()
    source.add("t")

    def ended(key: Any, **more: Any) -> EncryptingSession:
        return EncryptingSession(key, counter=SESSION_RECORDS, **more)

    encryptor = Encryptor(source, QUICK, Writing(100), new_session=ended)
    with pytest.raises(EncryptionError, match="lease-expired"):
        encryptor.encrypt("t", b"x")


def test_a_lease_that_ends_between_look_up_and_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-KEY-005: the wiped key is not used; a new lease is asked for."""
    clock, source = ManualClock(), MemorySource()
    source.add("t")
    value = Encryptor(source, QUICK, Writing(100)).encrypt("t", b"x")
    decryptor = Decryptor(source, QUICK, max_plaintext=100, clock=clock)
    look_up = decryptor._keys.get_all

    def look_up_slowly(*arguments: Any) -> Any:
        found = look_up(*arguments)
        clock.now += 300
        decryptor._keys._cache.sweep()
        return found

    monkeypatch.setattr(decryptor._keys, "get_all", look_up_slowly)
    source.asked.clear()
    assert decryptor.decrypt_all([Record("t", value)]) == [b"x"]
    assert len(source.asked) == 2


def test_a_key_that_is_replaced_between_look_up_and_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-ENV-034: the wiped key is not used; the record is encrypted under the new one."""
    clock, source = ManualClock(), MemorySource()
    old, _ = source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100), clock=clock)
    look_up, moments = encryptor._keys.get, [300.0]

    def look_up_slowly(topic: str) -> Any:
        found = look_up(topic)
        if moments:
            clock.now += moments.pop()
            source.add("t")
            encryptor._keys._cache.sweep()
        return found

    monkeypatch.setattr(encryptor._keys, "get", look_up_slowly)
    value = encryptor.encrypt("t", b"x")
    assert value is not None
    assert value[4:20] in source.keys
    assert value[4:20] != old


def test_the_decryptor_reports_being_closed() -> None:
    source = MemorySource()
    kid, _ = source.add("t")
    decryptor = Decryptor(source, QUICK, max_plaintext=100)
    decryptor.close()
    found = decryptor.decrypt_all([Record("t", b"\xc1\x9e\x01\x00" + kid + bytes(40)), Record("t", None)])
    assert isinstance(found[0], DecryptionError)
    assert (found[0].code, found[1]) == ("closed", None)
