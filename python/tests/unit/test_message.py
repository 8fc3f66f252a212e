"""The message that stands for one that cannot be decrypted, without a broker."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import confluent_kafka
import pytest

from cipherlane.confluent import UndecryptableMessage
from cipherlane.errors import DecryptionError, ErrorCode

ERROR = DecryptionError(ErrorCode.KEY_UNKNOWN, "no such key", topic="t", partition=3, offset=4, kid=bytes(16))
FULL: dict[str, Any] = {
    "topic": "t", "partition": 3, "offset": 4, "key": b"k", "value": b"canary", "headers": [("a", b"1"), ("a", None)],
    "timestamp": (1, 1234567890123), "leader_epoch": 7, "delivery_count": 2, "latency": 0.5,
}  # fmt: skip
READERS = ("topic", "partition", "offset", "key", "headers", "timestamp", "leader_epoch", "delivery_count", "latency")


def undecryptable(fields: dict[str, Any]) -> UndecryptableMessage:
    return UndecryptableMessage(confluent_kafka.Message(**fields), ERROR)


def same(value: Any) -> Any:
    return value


@pytest.mark.parametrize("duplicate", [same, copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("fields", [FULL, {"topic": "t", "value": b"canary"}, {**FULL, "key": None, "headers": []}])
def test_all_but_the_value_is_kept(fields: dict[str, Any], duplicate: Any) -> None:
    """CL-KAF-010, CL-KAF-012."""
    original = confluent_kafka.Message(**fields)
    message = duplicate(undecryptable(fields))
    assert isinstance(message, confluent_kafka.Message)
    assert isinstance(message, UndecryptableMessage)
    assert {name: getattr(message, name)() for name in READERS} == {name: getattr(original, name)() for name in READERS}
    assert len(message) == 6
    for read in (message.value, message.deserialized_value):
        with pytest.raises(DecryptionError) as raised:
            read()
        assert str(raised.value) == str(ERROR)
    assert b"canary" not in pickle.dumps(message)
    assert "canary" not in repr(message)
    assert "key-unknown" in repr(message)
    assert confluent_kafka.Message.value(message) is None
    assert message.as_plain_message().value() is None


def test_it_is_not_passed_over() -> None:
    """CL-ENV-012: an empty value that was refused is no empty message."""
    empty: Any = confluent_kafka.Message(topic="t", value=b"")
    assert not empty
    assert UndecryptableMessage(empty, ERROR)
    assert len(UndecryptableMessage(empty, ERROR)) == 0


def test_reading_again_and_again_does_not_grow_the_traceback() -> None:
    message = undecryptable(FULL)
    depths = []
    for _ in range(3):
        with pytest.raises(DecryptionError) as raised:
            message.value()
        depths.append(len(raised.traceback))
    assert len(set(depths)) == 1


def test_a_value_that_is_set_does_not_cover_the_error() -> None:
    message = undecryptable(FULL)
    message.set_value(b"something")
    with pytest.raises(DecryptionError):
        message.value()
