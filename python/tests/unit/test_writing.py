"""What a writer does beyond the cipher: compression, bound record keys, usage, numbers."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cipherlane import compression, envelope
from cipherlane.configuration import Writing
from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.errors import CipherlaneError, EncryptionError, ErrorCode
from cipherlane.keys import KeySettings, UnencryptedMode
from cipherlane.names import TopicSet
from support import QUICK, ManualClock, MemorySource, code_of, eventually, in_flight, zstd

TEXT = b"claim " * 200
WRITING = Writing(10_000, TopicSet(("zip*",)), 100, TopicSet(("bound*",)))


def source_for(*topics: str) -> MemorySource:
    source = MemorySource()
    for topic in topics:
        source.add(topic)
    return source


def encryptor_for(source: MemorySource, **more: Any) -> Encryptor:
    return Encryptor(source, QUICK, WRITING, **more)


def written(encryptor: Encryptor, topic: str, value: bytes, **more: Any) -> bytes:
    made = encryptor.encrypt(topic, value, **more)
    assert made is not None
    return made


@pytest.mark.parametrize("repeat", [1, 2])
def test_values_are_compressed_where_it_is_on_and_helps(repeat: int) -> None:
    """CL-ENV-045, CL-ENV-043: from 100 bytes on, in the topics named, one frame that states its size."""
    source = source_for("zip", "other")
    noise = os.urandom(500)
    with encryptor_for(source) as encryptor, Decryptor(source, QUICK, max_plaintext=10_000) as decryptor:
        for _ in range(repeat):
            cases = [
                ("zip", TEXT, 1),
                ("zip", noise, 0),
                ("zip", bytes(99), 0),
                ("zip", bytes(100), 1),
                ("zip", b"", 0),
            ]
            for topic, value, flags in [*cases, ("other", TEXT, 0)]:
                made = written(encryptor, topic, value)
                assert made[3] == flags
                assert (len(made) < len(value) + 60) == bool(flags)
                assert decryptor.decrypt(topic, made) == value
    frame = compression.compress(TEXT)
    assert frame is not None
    assert zstd.get_frame_info(frame).decompressed_size == len(TEXT)
    assert compression.compress(b"") is None


def test_limit_and_usage_count_the_value_before_compression() -> None:
    """CL-ENV-046, CL-ENV-042."""
    source = source_for("zip")
    encryptor = encryptor_for(source)
    assert len(written(encryptor, "zip", bytes(10_000))) < 200
    assert code_of(lambda: encryptor.encrypt("zip", bytes(10_001))) == "plaintext-too-long"
    encryptor.close()
    report = source.usage[-1]
    assert report is not None
    assert (report.records, report.bytes) == (1, 10_000)


@pytest.mark.parametrize("record_key", [b"key", b"", None])
def test_the_record_key_is_bound(record_key: Optional[bytes]) -> None:
    """CL-KAF-030, CL-KAF-031: a null key is known; no other key opens the value; nor does a reader without one."""
    source = source_for("bound")
    with encryptor_for(source) as encryptor, Decryptor(source, QUICK, max_plaintext=10_000) as decryptor:
        made = written(encryptor, "bound", b"x", record_key=record_key)
        assert made[3] == envelope.FLAG_RECORD_KEY_BOUND
        assert decryptor.decrypt("bound", made, record_key) == b"x"
        for other in {b"key", b"", None, b"kez"} - {record_key}:
            assert code_of(lambda other=other: decryptor.decrypt("bound", made, other)) == "authentication-failed"  # type: ignore[misc]
        assert code_of(lambda: decryptor.decrypt("bound", made)) == "record-key-unavailable"


def test_a_topic_that_binds_needs_the_record_key() -> None:
    """CL-KAF-031: unknown or of another type it is refused; a null value, and a topic in the clear, need none."""
    source = source_for("bound", "zip")
    source.topics["bound-clear"] = UnencryptedMode.CLEAR
    with encryptor_for(source) as encryptor:
        assert code_of(lambda: encryptor.encrypt("bound", b"x")) == "record-key-unavailable"
        wrong: Any = "text"
        assert code_of(lambda: encryptor.encrypt("bound", b"x", wrong)) == "value-type"
        assert encryptor.encrypt("bound", None) is None
        assert encryptor.encrypt("bound-clear", b"x") == b"x"
        assert written(encryptor, "zip", b"x", record_key=b"key")[3] == 0


def test_binding_and_compression_together() -> None:
    """CL-KAF-030, CL-ENV-045."""
    source = source_for("bound-zip")
    both = Writing(10_000, TopicSet(("*zip",)), 0, TopicSet(("bound*",)))
    with Encryptor(source, QUICK, both) as encryptor, Decryptor(source, QUICK, max_plaintext=10_000) as decryptor:
        made = written(encryptor, "bound-zip", TEXT, record_key=b"k")
        assert made[3] == envelope.FLAG_RECORD_KEY_BOUND | envelope.FLAG_ZSTD
        assert decryptor.decrypt_all([Record("bound-zip", made, b"k")]) == [TEXT]


def test_whatever_is_written_is_read_back_and_nothing_else_is() -> None:
    """CL-ENV-040, CL-ENV-045, CL-KAF-030, CL-ENV-010: every value, key and setting; any changed byte is noticed."""
    topics = ("zip", "bound", "bound-zip", "other")
    source = source_for(*topics)
    every_way = Writing(10_000, TopicSet(("*zip",)), 0, TopicSet(("bound*",)))

    @given(st.binary(max_size=300), st.none() | st.binary(max_size=20), st.sampled_from(topics))
    def holds(value: bytes, record_key: Optional[bytes], topic: str) -> None:
        made = written(encryptor, topic, value, record_key=record_key)
        assert decryptor.decrypt_all([Record(topic, made, record_key)]) == [value]
        place = len(value) * 7 % (len(made) - 4) + 4
        changed = made[:place] + bytes([made[place] ^ 1]) + made[place + 1 :]
        assert code_of(lambda: decryptor.decrypt(topic, changed, record_key)) in {
            "authentication-failed",
            "key-unknown",
        }

    with Encryptor(source, QUICK, every_way) as encryptor, Decryptor(source, QUICK, max_plaintext=10_000) as decryptor:
        holds()


def test_closing_reports_what_was_encrypted_once() -> None:
    """CL-KEY-017: for each topic, what was not reported yet; keys that come with the answer are wiped."""
    source = source_for("a", "b", "unused")
    encryptor = encryptor_for(source)
    for topic, value in (("a", b"12345"), ("a", b"1"), ("b", b"123")):
        encryptor.encrypt(topic, value)
    encryptor.encrypt("unused", None)
    encryptor.close()
    encryptor.close()
    reports = {(report.records, report.bytes) for report in source.usage if report is not None}
    assert reports == {(2, 6), (1, 3)}
    assert sum(report is not None for report in source.usage) == 2
    assert source.closed
    assert all(key.wiped for key in source.given)


@pytest.mark.parametrize("how", ["fails", "hangs", "no thread"])
def test_a_last_report_that_fails_is_no_error(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-KEY-017: and takes no longer than a second."""
    source = source_for("a", "b")
    encryptor = encryptor_for(source)
    encryptor.encrypt("a", b"x")
    encryptor.encrypt("b", b"x")
    go_on = threading.Event()

    def fail() -> None:
        if how == "hangs":
            go_on.wait(20)
        raise CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, "gone")

    def no_thread(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    source.before = fail
    if how == "no thread":
        monkeypatch.setattr(threading.Thread, "start", no_thread)
    began = time.monotonic()
    encryptor.close()
    assert time.monotonic() - began < 5
    assert source.closed
    go_on.set()


def test_what_was_encrypted_under_a_key_that_went_is_reported_with_the_next_request() -> None:
    """spec/key-service.md: the kid of the report is that of the old key."""
    clock, source = ManualClock(), source_for("a")
    encryptor = encryptor_for(source, clock=clock)
    old = written(encryptor, "a", b"12345")[4:20]
    clock.now += 300
    encryptor._keys._cache.sweep()
    source.add("a")
    new = written(encryptor, "a", b"1")[4:20]
    report = source.usage[1]
    assert report is not None
    assert (report.kid, report.records, report.bytes) == (old, 1, 5)
    encryptor.close()
    report = source.usage[2]
    assert report is not None
    assert (report.kid, report.records, report.bytes) == (new, 1, 1)


def test_a_forked_child_reports_only_its_own() -> None:
    """CL-KEY-017, CL-ENV-035, in this process, where it can be looked at."""
    source = source_for("a")
    encryptor = encryptor_for(source)
    encryptor.encrypt("a", b"x")
    for holder in (encryptor, encryptor._keys, encryptor._keys._cache, encryptor._failures):
        holder.after_fork_in_child()
    assert encryptor.numbers()["records_encrypted_total"] == 0
    encryptor.close()
    assert source.usage == [None]


def test_numbers_of_an_encryptor_and_a_decryptor() -> None:
    """spec/kafka.md, "Numbers": by name, failures by code."""
    clock, source = ManualClock(), source_for("a", "bound")
    encryptor = encryptor_for(source, clock=clock)
    decryptor = Decryptor(source, QUICK, max_plaintext=10_000, clock=clock)
    assert encryptor.numbers()["lease_seconds_left"] == 0
    values = [encryptor.encrypt("a", b"x") for _ in range(3)]
    written(encryptor, "bound", b"x", record_key=None)
    for _ in range(2):
        with pytest.raises(EncryptionError):
            encryptor.encrypt("nowhere", b"x")
    clock.now += 10
    assert encryptor.numbers() == {
        "records_encrypted_total": 4,
        "failures_total": {"topic-unknown": 2},
        "key_requests_total": 3,
        "key_request_failures_total": 1,
        "keys_cached": 2,
        "lease_seconds_left": 290,
    }
    clock.now += 290
    encryptor._keys._cache.sweep()
    assert (encryptor.numbers()["records_encrypted_total"], encryptor.numbers()["keys_cached"]) == (4, 0)
    assert decryptor.decrypt_all([Record("a", value) for value in values]) == [b"x"] * 3
    assert decryptor.decrypt("a", values[0]) == b"x"
    assert code_of(lambda: decryptor.decrypt("a", b"plain")) == "plaintext-rejected"
    source.plaintext = type(source.plaintext)("accept")
    assert decryptor.decrypt("b", b"plain") == b"plain"
    assert decryptor.numbers() == {
        "records_decrypted_total": 4,
        "plaintext_accepted_total": 1,
        "failures_total": {"plaintext-rejected": 1},
        "key_requests_total": 2,
        "key_request_failures_total": 0,
        "keys_cached": 1,
        "lease_seconds_left": 300,
    }


def test_use_is_noticed_every_second_and_leases_are_renewed() -> None:
    """CL-KEY-006: the short way does not keep a lease from being renewed, in either direction."""
    clock, source = ManualClock(), source_for("a")
    source.lease = (2.5, 10)
    encryptor = encryptor_for(source, clock=clock)
    decryptor = Decryptor(source, QUICK, max_plaintext=100, clock=clock)
    value = encryptor.encrypt("a", b"x")
    assert decryptor.decrypt("a", value) == b"x"
    for _ in range(40):
        clock.now += 0.5
        assert decryptor.decrypt("a", encryptor.encrypt("a", b"y")) == b"y"
        eventually(lambda: not in_flight(encryptor._keys) and not in_flight(decryptor._keys))
    asked = len(source.asked)
    assert 10 <= asked <= 18


@pytest.mark.parametrize("limit", [3])
def test_the_short_way_of_reading_is_bounded_and_checks_the_limit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """spec/limits.md: derived keys are bounded; CL-ENV-013 holds on the short way too."""
    monkeypatch.setattr("cipherlane.decryptor.DERIVED_KEYS", limit)
    source = source_for("a")
    values = [written(encryptor_for(source), "a", b"x") for _ in range(5)]
    long = encryptor_for(source)
    fits, too_long = written(long, "a", bytes(100)), written(long, "a", bytes(101))
    decryptor = Decryptor(source, KeySettings(), max_plaintext=100)
    for value in values:
        assert decryptor.decrypt("a", value) == b"x"
        assert len(decryptor._openings) <= limit
    assert decryptor.decrypt("a", fits) == bytes(100)
    assert decryptor.decrypt_at_once("a", fits) == bytes(100)
    assert decryptor.decrypt_at_once("a", too_long) is None
    assert decryptor.decrypt_at_once("other", fits) is None
    assert code_of(lambda: decryptor.decrypt("a", too_long)) == "plaintext-too-long"
    for cut in range(2, 60):
        assert decryptor.decrypt_at_once("a", fits[:cut]) is None
        assert code_of(lambda cut=cut: decryptor.decrypt("a", fits[:cut])) == "envelope-too-short"  # type: ignore[misc]


def test_what_a_wipe_meets_under_way_does_not_stay_behind() -> None:
    """CL-KEY-005: the lease ends while a record is being opened."""
    source = source_for("a")
    value = written(encryptor_for(source), "a", b"x")
    decryptor = Decryptor(source, QUICK, max_plaintext=100)
    derive = decryptor._derived.cipher

    def derive_and_end(key: Any, nonce: bytes) -> Any:
        cipher = derive(key, nonce)
        decryptor._keys._cache.close()
        return cipher

    decryptor._derived.cipher = derive_and_end  # type: ignore[method-assign]
    decryptor.decrypt("a", value)
    assert len(decryptor._derived) == 0
    assert decryptor._openings == {}


def test_without_the_interpreters_lock_records_go_the_careful_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-ENV-031 in free-threaded builds: what one thread at a time may do without a lock, is done with one."""
    monkeypatch.setattr("cipherlane.encryptor.HAS_GIL", False)
    monkeypatch.setattr("cipherlane.pure.HAS_GIL", False)
    source = source_for("a")
    encryptor = encryptor_for(source)
    values: list[bytes] = []

    def work() -> None:
        values.extend(written(encryptor, "a", b"12") for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({value[20:44] for value in values}) == 800
    assert encryptor.encrypt_at_once("a", b"12") is None
    encryptor.close()
    report = source.usage[-1]
    assert report is not None
    assert (report.records, report.bytes) == (800, 1600)
