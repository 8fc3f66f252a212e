"""The two ciphers behind one face: what both refuse, and which one is used."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Optional

import pytest
from confluent_kafka import Message
from cryptography.exceptions import InvalidTag

from cipherlane import Decryptor, Encryptor, backend, forking, pure
from cipherlane.configuration import Writing
from support import QUICK, ManualClock, MemorySource

KEY, SALT = os.urandom(32), os.urandom(12)
PREFIX = SALT + os.urandom(8)
HEADER = bytes(20)


def session(clock: Optional[Any] = None, *, counter: int = 0, until: float = 1e18, mark: Any = None) -> backend.Session:
    key = SimpleNamespace(wiped=False)
    aead = backend.current.derive(KEY, SALT)
    return aead.session(key, PREFIX, counter, forking.mark() if mark is None else mark, clock, until)


def envelopes(*values: bytes) -> list[Any]:
    seal = session().sealer(HEADER, b"aad", 1000).seal
    return [seal(value) for value in values]


def openers(until: float = 1e18) -> backend.Openers:
    return {("t", HEADER + SALT): backend.current.derive(KEY, SALT).opener(b"aad", until)}


FIELDS = pure.Fields(Message.topic, Message.value, Message.set_value)


def messages(*records: tuple[Any, Any]) -> list[Any]:
    """Of topics and values."""
    return [Message(topic=topic, value=value) for topic, value in records]


def open_all(
    known: backend.Openers, records: list[Any], longest: int = 100, clock: Optional[Any] = None
) -> tuple[list[Any], list[int]]:
    """The values afterwards, and which were left."""
    missed = backend.current.open_all(known, records, FIELDS, longest, clock)
    return [record.value() for record in records], missed


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=r"32|key"):
        backend.current.derive(bytes(size), SALT)


def test_values_open_together_and_each_bad_one_stays_alone() -> None:
    """CL-ENV-012: nothing that one value does touches another."""
    good = envelopes(b"a", b"", b"c" * 900, b"d")
    flipped = good[0][:-1] + bytes((good[0][-1] ^ 1,))
    values = [good[0], None, flipped, good[1], "text", good[2], b"", good[3], good[0][:59], bytearray(good[0])]
    expected = [b"a", None, flipped, b"", "text", b"c" * 900, b"", b"d", values[8]]
    found, missed = open_all(openers(), messages(*(("t", value) for value in values)), 960)
    assert found[:9] == expected
    assert missed == [1, 2, 4, 6, 8, *([9] if found[9] == values[9] else [])]
    assert backend.current.open_one(openers(), "t", good[2], 959, None) is None
    assert backend.current.open_one(openers(), "t", good[2], 960, None) == b"c" * 900


@pytest.mark.parametrize("topic", ["u", None, b"t", 5, ["t"]])
def test_another_topic_or_none_opens_nothing(topic: Any) -> None:
    value = envelopes(b"a")[0]
    assert backend.current.open_one(openers(), topic, value, 100, None) is None
    assert open_all(openers(), messages(("t", value), (topic, value), ("t", value))) == ([b"a", value, b"a"], [1])


@pytest.mark.parametrize("what", ["topic_of", "value_of", "set_value"])
def test_a_record_that_cannot_be_read_or_written_is_left(what: str) -> None:
    def fails(record: Any, *_: Any) -> Any:
        if record is records[1]:
            raise RuntimeError("no such thing")
        return getattr(FIELDS, what)(record, *_)

    value = envelopes(b"a")[0]
    records = messages(*[("t", value)] * 3)
    assert backend.current.open_all(openers(), records, FIELDS._replace(**{what: fails}), 100, None) == [1]
    assert [record.value() for record in records] == [b"a", value, b"a"]


def test_a_list_that_shrinks_meanwhile_ends_there() -> None:
    def shrinking(record: Any, plaintext: Any) -> None:
        record.set_value(plaintext)
        del records[1:]

    value = envelopes(b"a")[0]
    records = messages(*[("t", value)] * 3)
    assert backend.current.open_all(openers(), records, FIELDS._replace(set_value=shrinking), 100, None) == []
    assert [record.value() for record in records] == [b"a"]


def test_an_opener_ends_with_its_lease() -> None:
    """CL-KEY-005."""
    clock, value = ManualClock(), envelopes(b"a")[0]
    known = openers(until=1001)
    assert open_all(known, messages(("t", value)), clock=clock) == ([b"a"], [])
    clock.now = 1001
    assert open_all(known, messages(("t", value)), clock=clock) == ([value], [0])


def test_a_clock_that_fails_opens_and_encrypts_nothing() -> None:
    def broken() -> float:
        raise OSError("no clock")

    value = envelopes(b"a")[0]
    assert backend.current.open_one(openers(), "t", value, 100, broken) is None
    assert open_all(openers(), messages(("t", value)), clock=broken) == ([value], [0])


@pytest.mark.parametrize("what", ["lease", "fork", "records", "wiped"])
def test_a_session_that_ended_encrypts_nothing(what: str) -> None:
    """CL-ENV-032, CL-ENV-034, CL-ENV-035."""
    clock, mark = ManualClock(), bytearray(b"\x01")
    used = session(clock, counter=2**32 - 2, until=2000, mark=mark)
    sealer = used.sealer(HEADER, b"aad", 10)
    assert sealer.seal(b"x") is not None
    if what == "lease":
        used.use_until(1000)
    elif what == "fork":
        mark[0] = 0
    assert what == "wiped" or sealer.seal(b"x") is None
    assert (sealer.tally.records, sealer.tally.bytes) == (1, 1)


@pytest.mark.parametrize("value", [b"x" * 11, None, "x", bytearray(b"x"), 1])
def test_the_short_way_leaves_other_values_alone(value: Any) -> None:
    sealer = session().sealer(HEADER, b"aad", 10)
    assert sealer.seal(value) is None
    assert sealer.tally.records == 0


def test_nothing_that_holds_a_key_can_be_pickled() -> None:
    """CL-KEY-015."""
    aead = backend.current.derive(KEY, SALT)
    for holder in (aead, session(), session().sealer(HEADER, b"", 1).seal):
        with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
            pickle.dumps(holder)


def test_a_tag_that_does_not_fit_is_refused() -> None:
    """CL-ENV-010."""
    aead = backend.current.raw(KEY)
    for bad in (b"", bytes(15), bytes(16), bytes(40)):
        with pytest.raises(InvalidTag):
            aead.decrypt(bytes(12), bad, b"")
    for nonce in (b"", bytes(7), bytes(13)):
        written = aead.encrypt(bytes(12), b"x", b"")
        with pytest.raises((ValueError, InvalidTag)):
            aead.decrypt(nonce, written, b"")


def test_without_the_one_in_c_the_one_in_python_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cipherlane_native", None)
    assert backend.native() is None


def test_one_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setitem(sys.modules, "cipherlane_native", SimpleNamespace(INTERFACE=0))
    assert backend.native() is None
    assert "another version" in caplog.text


def test_the_environment_leaves_it_aside(in_language: str) -> None:
    command = [sys.executable, "-c", "from cipherlane import backend; print(backend.current.name)"]
    named = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    assert named == {"python": "pure", "c": "native"}[in_language]


def test_many_records_are_decrypted_in_pieces() -> None:
    source = MemorySource()
    source.add("t")
    encryptor = Encryptor(source, QUICK, Writing(100))
    decryptor = Decryptor(source, QUICK, max_plaintext=100)
    stored: list[Any] = [encryptor.encrypt("t", str(number).encode()) for number in range(2500)]
    assert decryptor.decrypt("t", stored[0]) == b"0"
    stored[1700] = b"plaintext"
    records = messages(*(("t", value) for value in stored))
    assert decryptor.decrypt_all_at_once(records, FIELDS) == [1700]
    expected = [b"plaintext" if number == 1700 else str(number).encode() for number in range(2500)]
    assert [record.value() for record in records] == expected
    assert decryptor.numbers()["records_decrypted_total"] == 2500
    encryptor.close()
    decryptor.close()
