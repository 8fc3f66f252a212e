"""The decrypting deserializer in confluent-kafka's DeserializingConsumer."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import DeserializingConsumer
from confluent_kafka.error import ValueDeserializationError
from confluent_kafka.serialization import MessageField, SerializationContext, StringDeserializer

from cipherlane import ConfigurationError, DecryptionError, Encryptor, envelope
from cipherlane.cipher import EncryptingSession
from cipherlane.confluent import Consumer, DecryptingDeserializer
from cipherlane.keys import DataKey
from processes import Cluster, Service, closing, group_settings, poll_all


@pytest.fixture
def deserializer(service: Service) -> Any:
    with closing(DecryptingDeserializer(StringDeserializer(), service.settings("consumer"))) as made:
        yield made


def test_decrypts_in_front_of_the_inner_one(
    cluster: Cluster, service: Service, deserializer: DecryptingDeserializer
) -> None:
    """CL-KAF-013, CL-ENV-001: text, null and empty; what cannot be decrypted raises and names the topic."""
    topic = cluster.topic("t")
    with Encryptor.from_settings(service.settings("producer")) as encryptor:
        cluster.write(topic, *(encryptor.encrypt(topic, value) for value in ("héllo".encode(), None, b"")))
    cluster.write(topic, b"plaintext")
    consumer: Any = DeserializingConsumer({**group_settings(cluster), "value.deserializer": deserializer})
    consumer.subscribe([topic])
    with closing(consumer):
        assert [message.value() for message in poll_all(consumer, 3)] == ["héllo", None, ""]
        with pytest.raises(ValueDeserializationError) as raised:
            poll_all(consumer, 1)
    cause = raised.value.exception
    assert isinstance(cause, DecryptionError)
    assert (cause.code, cause.topic) == ("plaintext-rejected", topic)
    message: Any = raised.value.kafka_message
    assert (message.partition(), message.offset()) == (0, 3)
    assert topic in str(raised.value)


def test_without_an_inner_one_it_gives_bytes(cluster: Cluster, service: Service) -> None:
    topic = cluster.topic("t")
    with Encryptor.from_settings(service.settings("producer")) as encryptor:
        value = encryptor.encrypt(topic, b"bytes")
    with closing(DecryptingDeserializer(None, service.settings("consumer", max_plaintext_bytes="5"))) as plain:
        assert plain(value, SerializationContext(topic, MessageField.VALUE)) == b"bytes"


def test_a_bound_record_key_is_not_known_here(deserializer: DecryptingDeserializer) -> None:
    """CL-ENV-008."""
    bound = b"\xc1\x9e\x01\x04" + bytes(56)
    with pytest.raises(DecryptionError) as raised:
        deserializer(bound, SerializationContext("t-1", MessageField.VALUE))
    assert raised.value.code == "record-key-unavailable"


@pytest.mark.parametrize(
    "context",
    [None, SerializationContext(cast("str", None), MessageField.VALUE), SerializationContext("t-1", MessageField.KEY)],
)
def test_it_is_for_values_of_known_topics(deserializer: DecryptingDeserializer, context: Any) -> None:
    """CL-KAF-006."""
    with pytest.raises(ConfigurationError):
        deserializer(b"x", context)


def test_bad_settings_are_refused_when_it_is_made(service: Service) -> None:
    """CL-CFG-001, CL-CFG-002."""
    with pytest.raises(ConfigurationError, match="not callable"):
        DecryptingDeserializer("utf-8", service.settings("consumer"))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"cipherlane\.keys\.cache\.max"):
        DecryptingDeserializer(None, service.settings("consumer", keys_cachemax=5))
    with pytest.raises(ConfigurationError, match="missing"):
        DecryptingDeserializer(None, {"bootstrap.servers": "x"})


def test_a_bound_record_key_is_known_to_the_consumer(cluster: Cluster, service: Service) -> None:
    """CL-ENV-008, CL-ENV-021: the drop-in consumer knows record keys, null ones too, and notices another."""
    topic = cluster.topic("t")
    with Encryptor.from_settings(service.settings("producer")) as encryptor:
        encryptor.encrypt(topic, b"")
        grant: Any = encryptor._keys.get(topic)
        cluster.write(topic, bound_envelope(grant.key, grant.scope, b"k"), key=b"k")
        cluster.write(topic, bound_envelope(grant.key, grant.scope, None), key=None)
        cluster.write(topic, bound_envelope(grant.key, grant.scope, b"k"), key=b"other")
    consumer = Consumer({**group_settings(cluster), **service.settings("consumer")})
    consumer.subscribe([topic])
    with closing(consumer):
        first, second, moved = poll_all(consumer, 3)
    assert (first.value(), second.value()) == (b"bound", b"bound")
    with pytest.raises(DecryptionError, match="authentication-failed"):
        moved.value()


def bound_envelope(key: DataKey, scope: str, record_key: Any) -> bytes:
    header = envelope.header(envelope.FLAG_RECORD_KEY_BOUND, key.kid)
    return EncryptingSession(key).encrypt(b"bound", envelope.additional_data(header, scope, record_key), header)
