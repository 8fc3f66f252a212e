"""Decryption keys: many kids at once, errors beside kids, the policy on plaintext, usage reports."""

from __future__ import annotations

import threading
from typing import Any, Optional

from cipherlane.configuration import Writing
from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys import (
    DecryptionKeys,
    KeySettings,
    Name,
    PlaintextPolicy,
)
from support import QUICK, ManualClock, MemorySource, code_of, eventually, in_flight


def test_an_answer_that_leaves_something_out_is_a_bad_answer() -> None:
    """CL-KEY-003: also if the client below had let it pass."""
    source = MemorySource()
    keys = DecryptionKeys(source, QUICK)
    original = source.decryption_keys
    source.decryption_keys = lambda topic, kids: original(topic, kids[:0])  # type: ignore[method-assign]
    assert code_of(lambda: keys.get(Name("t", bytes(16)))) == "key-service-bad-answer"


def test_kids_of_a_batch_are_asked_for_together() -> None:
    """CL-KEY-010: one call for a topic up to 1,000 kids, one more for each thousand more."""
    source = MemorySource()
    kids = [source.add("t")[0] for _ in range(2001)]
    keys = DecryptionKeys(source, QUICK)
    found = keys.get_all([Name("t", kid) for kid in kids[:1000]])
    assert [len(asked) for _, asked in source.asked] == [1000]
    assert all(not isinstance(outcome, CipherlaneError) for outcome in found.values())
    source.asked.clear()
    keys.get_all([Name("t", kid) for kid in kids] + [Name("other")])
    assert sorted((topic, len(asked)) for topic, asked in source.asked) == [("other", 0), ("t", 1), ("t", 1000)]


def test_an_error_of_one_kid_is_no_error_of_the_others() -> None:
    """CL-KEY-004, CL-KEY-012."""
    source = MemorySource()
    good, _ = source.add("t")
    destroyed, mismatched = bytes(16), b"m" * 16
    source.keys[destroyed] = CipherlaneError(ErrorCode.KEY_DESTROYED, "gone")
    source.keys[mismatched] = ("t", bytes(32))
    keys = DecryptionKeys(source, QUICK, clock=ManualClock())
    names = [Name("t", kid) for kid in (destroyed, good, mismatched)]
    found = list(keys.get_all(names).values())
    assert [getattr(outcome, "code", "ok") for outcome in found] == ["key-destroyed", "ok", "key-id-mismatch"]
    keys.get_all(names)
    assert len(source.asked) == 1


def test_an_answer_that_comes_after_close_is_wiped() -> None:
    """CL-KEY-013: what is good in it and what is not."""
    source = MemorySource()
    good, _ = source.add("t")
    keys = DecryptionKeys(source, QUICK)
    gate = threading.Event()
    source.before = lambda: gate.wait(10)
    found: list[Any] = []
    names = [Name("t", good), Name("t", bytes(16))]
    waiting = threading.Thread(target=lambda: found.extend(keys.get_all(names).values()))
    waiting.start()
    eventually(lambda: source.asked)
    keys.close()
    waiting.join(10)
    assert [error.code for error in found] == ["closed", "closed"]
    gate.set()
    eventually(lambda: source.given and source.given[0].wiped)


def test_the_policy_on_plaintext_is_leased_like_a_key() -> None:
    """CL-KEY-005, CL-KEY-006: it comes with every answer, and ends."""
    clock, source = ManualClock(), MemorySource()
    source.plaintext = PlaintextPolicy.ACCEPT
    kid, _ = source.add("t")
    keys = DecryptionKeys(source, QUICK, clock=clock)
    keys.get(Name("t", kid))
    assert keys.get(Name("t")) is PlaintextPolicy.ACCEPT
    assert len(source.asked) == 1
    source.plaintext = PlaintextPolicy.REJECT
    clock.now += 300
    assert keys.get(Name("t")) is PlaintextPolicy.REJECT
    assert source.asked[1] == ("t", [])


def test_due_keys_of_a_topic_are_renewed_together() -> None:
    """CL-KEY-006, CL-KEY-010: while a request is under way, what falls due is collected for the next."""
    clock, source = ManualClock(), MemorySource()
    kids = [source.add("t")[0] for _ in range(50)]
    keys = DecryptionKeys(source, QUICK, clock=clock)
    names = [Name("t", kid) for kid in kids]
    keys.get_all(names)
    clock.now += 150
    gate = threading.Event()
    source.before = lambda: gate.wait(10)
    for _ in range(20):
        assert all(not isinstance(outcome, CipherlaneError) for outcome in keys.get_all(names).values())
    gate.set()
    eventually(lambda: not in_flight(keys))
    assert [len(asked) for _, asked in source.asked] == [50, 50]


def test_a_batch_of_more_kids_than_the_cache_holds_is_read_all_the_same() -> None:
    """CL-KEY-013: what had to make room is asked for again."""
    source = MemorySource()
    encryptor = Encryptor(source, QUICK, Writing(100))
    values: list[Optional[bytes]] = []
    for number in range(40):
        source.add(f"t{number}", scope="s")
        values.append(encryptor.encrypt(f"t{number}", b"%d" % number))
    decryptor = Decryptor(source, KeySettings(cache_max=16), max_plaintext=100)
    found = decryptor.decrypt_all([Record("t", value) for value in values])
    assert found == [b"%d" % number for number in range(40)]
    assert len(decryptor._keys._cache) <= 16
    assert len(decryptor._derived) <= 16


def test_usage_is_reported_with_the_next_request() -> None:
    """Records and bytes of plaintext, under the kid that they were encrypted with, each once."""
    clock, source = ManualClock(), MemorySource()
    kid, _ = source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100), clock=clock)
    for size in (10, 0, 32):
        encryptor.encrypt("t", bytes(size))
    clock.now += 150
    encryptor.encrypt("t", b"")
    eventually(lambda: len(source.usage) == 2 and not in_flight(encryptor._keys))
    clock.now += 150
    encryptor.encrypt("t", b"")
    eventually(lambda: len(source.usage) == 3 and not in_flight(encryptor._keys))
    first, second, third = source.usage
    assert first is None
    assert second is not None
    assert third is not None
    assert (second.kid, second.bytes) == (kid, 42)
    assert second.records + third.records in {4, 5}  # the record that set off the request is in it, or in the next
