"""The clients that serialize, and the serializer on its own."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.error import ConsumeError, ValueDeserializationError, ValueSerializationError
from confluent_kafka.serialization import (
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringDeserializer,
    StringSerializer,
)

from cipherlane import DecryptionError, EncryptionError
from cipherlane.confluent import (
    ConfigurationError,
    Consumer,
    DecryptingDeserializer,
    DeserializingConsumer,
    EncryptingSerializer,
    SerializingProducer,
)
from processes import Cluster, Service, closing, group_settings, poll_all


def serializing(cluster: Cluster, service: Service, **more: Any) -> Any:
    own = {"key.serializer": IntegerSerializer(), "value.serializer": StringSerializer("utf_8")}
    return SerializingProducer({"bootstrap.servers": cluster.bootstrap, **own, **service.settings("producer", **more)})


def deserializing(cluster: Cluster, service: Service, topic: str, **more: Any) -> Any:
    own = {"key.deserializer": IntegerDeserializer(), "value.deserializer": StringDeserializer("utf_8")}
    consumer = DeserializingConsumer({**group_settings(cluster), **own, **service.settings("consumer", **more)})
    consumer.subscribe([topic])
    return consumer


def test_values_of_types_there_and_back(cluster: Cluster, service: Service) -> None:
    """CL-KAF-030 too: the serialized record key is bound."""
    topic = cluster.topic("t")
    told: list[Any] = []
    with serializing(cluster, service, record_key_topics="t-*") as producer:
        assert confluent_kafka.SerializingProducer in type(producer).__mro__
        for key, value in ((1, "one"), (2, ""), (3, None)):
            producer.produce(topic, key, value, on_delivery=lambda _error, message: told.append(message.value()))
        producer.flush(30)
    assert told == [b"one", b"", None]
    with deserializing(cluster, service, topic) as consumer:
        assert confluent_kafka.DeserializingConsumer in type(consumer).__mro__
        messages = poll_all(consumer, 3)
    assert [(message.key(), message.deserialized_value()) for message in messages] == [(1, "one"), (2, ""), (3, None)]
    with pytest.raises(EncryptionError, match="closed"):
        producer._encryptor.encrypt(topic, b"x")
    with pytest.raises(DecryptionError, match="closed"):
        consumer._reader.decryptor.decrypt(topic, b"x")


def test_what_cannot_be_encrypted_or_decrypted_raises(cluster: Cluster, service: Service) -> None:
    """CL-KAF-001, CL-KAF-013: an encryption error as it is, a decryption error as that of the deserializer."""
    topic = cluster.topic("t")
    with serializing(cluster, service) as producer, pytest.raises(EncryptionError, match="topic-forbidden"):
        producer.produce("forbidden-x", 1, "x")
    cluster.write(topic, b"plain", key=bytes(4))
    with deserializing(cluster, service, topic) as consumer:
        with pytest.raises(ValueDeserializationError) as raised:
            poll_all(consumer, 1)
        assert isinstance(raised.value, ConsumeError)
        assert isinstance(raised.value.exception, DecryptionError)
        assert raised.value.exception.code == "plaintext-rejected"
        message = raised.value.kafka_message
        assert message is not None
        assert (message.topic(), message.offset()) == (topic, 0)
        consumer.commit(message, asynchronous=False)
        with pytest.raises(NotImplementedError):
            consumer.consume(1)


def test_skipping_while_deserializing(cluster: Cluster, service: Service) -> None:
    """CL-KAF-021."""
    topic = cluster.topic("t")
    cluster.write(topic, b"plain", key=bytes(4))
    with serializing(cluster, service) as producer:
        producer.produce(topic, 1, "x")
    with deserializing(cluster, service, topic, failure_action="skip") as consumer:
        assert poll_all(consumer, 1)[0].value() == "x"
        assert consumer.cipherlane_numbers()["skipped_total"] == 1


@pytest.mark.parametrize("action", ["skip", "dead-letter", "mark"])
def test_actions_that_a_deserializer_cannot_take(cluster: Cluster, service: Service, action: str) -> None:
    """CL-KAF-026."""
    settings = service.settings("consumer", failure_action=action)
    with pytest.raises(ConfigurationError, match=r"failure\.action: a deserializer can only fail"):
        DecryptingDeserializer(None, settings)
    if action == "mark":
        with pytest.raises(ConfigurationError, match=r"failure\.action: mark is not for"):
            DeserializingConsumer({**group_settings(cluster), **settings})


def test_the_serializer_on_its_own(cluster: Cluster, service: Service) -> None:
    """In a producer of confluent-kafka: null stays null, and the inner serializer is called first."""
    topic = cluster.topic("t")
    serializer = EncryptingSerializer(StringSerializer("utf_8"), {"linger.ms": 1, **service.settings("producer")})
    settings = {"bootstrap.servers": cluster.bootstrap, "value.serializer": serializer}
    with closing(serializer), confluent_kafka.SerializingProducer(settings) as producer:
        producer.produce(topic, value="text")
        producer.produce(topic, value=None)
        with pytest.raises(ValueSerializationError, match="topic-forbidden"):
            producer.produce("forbidden-x", value="text")
        producer.flush(30)
    with closing(Consumer({**group_settings(cluster), **service.settings("consumer")})) as consumer:
        consumer.subscribe([topic])
        assert [message.value() for message in poll_all(consumer, 2)] == [b"text", None]


def test_what_the_serializer_refuses(service: Service) -> None:
    """CL-KAF-006, CL-KAF-031, CL-CFG-001."""
    value = SerializationContext("t-x", MessageField.VALUE)
    with closing(EncryptingSerializer(None, service.settings("producer", record_key_topics="t-bound"))) as serializer:
        assert len(serializer(b"x", value) or b"") == 61
        with pytest.raises(ConfigurationError, match="record keys are never encrypted"):
            serializer(b"x", SerializationContext("t-x", MessageField.KEY))
        for without_topic in (None, SerializationContext(None, MessageField.VALUE)):  # type: ignore[arg-type]
            with pytest.raises(ConfigurationError, match="with the topic"):
                serializer(b"x", without_topic)
        with pytest.raises(EncryptionError, match="record-key-unavailable"):
            serializer(b"x", SerializationContext("t-bound", MessageField.VALUE))
        with pytest.raises(EncryptionError, match="value-type"):
            serializer("text", value)
    not_callable: Any = "utf_8"
    with pytest.raises(ConfigurationError, match="not callable"):
        EncryptingSerializer(not_callable, service.settings("producer"))
    with pytest.raises(ConfigurationError, match="nearest"):
        EncryptingSerializer(None, {**service.settings("producer"), "cipherlane.x": 1})
