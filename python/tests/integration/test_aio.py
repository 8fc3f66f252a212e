"""The asyncio clients, against a real broker and a real key service."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import confluent_kafka.aio
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.error import ValueDeserializationError
from confluent_kafka.serialization import StringDeserializer, StringSerializer

from cipherlane import DecryptionError, EncryptionError
from cipherlane.confluent import ConfigurationError, UndecryptableMessage, aio
from processes import Cluster, Service, group_settings, start_service

# To a type checker, confluent-kafka's classes can be neither entered nor awaited.
AIOProducer: Any = aio.AIOProducer
AIOConsumer: Any = aio.AIOConsumer
AsyncSerializingProducer: Any = aio.AsyncSerializingProducer
AsyncDeserializingConsumer: Any = aio.AsyncDeserializingConsumer


def producer_settings(cluster: Cluster, service: Service, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap, **service.settings("producer", **more)}


def consumer_settings(cluster: Cluster, service: Service, **more: Any) -> dict[str, Any]:
    return {**group_settings(cluster), "enable.auto.offset.store": False, **service.settings("consumer", **more)}


async def gathered(consumer: Any, count: int) -> list[Any]:
    messages: list[Any] = []
    until = time.monotonic() + 30
    while len(messages) < count and time.monotonic() < until:
        messages += await consumer.consume(count - len(messages), 1.0)
    assert len(messages) == count
    return messages


def test_there_and_back(cluster: Cluster, service: Service) -> None:
    """CL-KAF-003, CL-ENV-040, CL-KAF-030: futures give messages with the application's value."""
    topic = cluster.topic("t")
    values = [b"one", "two", None, b"", b"five"]

    async def there() -> list[Any]:
        settings = producer_settings(cluster, service, record_key_topics="t-*")
        async with AIOProducer(settings, buffer_timeout=0.1) as producer:
            assert confluent_kafka.aio.AIOProducer in type(producer).__mro__
            sent = [await producer.produce(topic, value, "k", partition=0) for value in values]
            await producer.flush()
            assert producer.cipherlane_numbers()["records_encrypted_total"] == 4
            return [(await future).value() for future in sent]

    async def back() -> list[Any]:
        async with AIOConsumer(consumer_settings(cluster, service)) as consumer:
            assert confluent_kafka.aio.AIOConsumer in type(consumer).__mro__
            await consumer.subscribe([topic])
            messages = await gathered(consumer, 4)
            last = await consumer.poll(10)
            await consumer.store_offsets(last)
            await consumer.commit(last, asynchronous=False)
            assert consumer.cipherlane_numbers()["records_decrypted_total"] == 4
            return [message.value() for message in [*messages, last]]

    expected = [b"one", b"two", None, b"", b"five"]
    assert asyncio.run(there()) == expected
    assert asyncio.run(back()) == expected


def test_what_cannot_be_encrypted_is_not_sent(cluster: Cluster, service: Service) -> None:
    """CL-KAF-001."""

    async def run() -> None:
        async with AIOProducer(producer_settings(cluster, service)) as producer:
            for topic, value in (("forbidden-x", b"x"), ("nowhere", None), ("t-x", 5)):
                with pytest.raises(EncryptionError):
                    await producer.produce(topic, value)
            with pytest.raises(NotImplementedError):
                await producer.produce("t-x", b"x", headers={"a": b"b"})
            assert len(producer) == 0

    asyncio.run(run())


def test_waiting_for_a_key_does_not_stop_the_loop(cluster: Cluster, tmp_path: Path) -> None:
    """CL-KEY-011: the loop goes on while the key service does not answer."""
    own = start_service(tmp_path / "ks")
    settings = producer_settings(cluster, own, keys_deadline_ms=1500)
    own.process.send_signal(19)  # SIGSTOP: connections are taken, nothing is answered

    async def run() -> int:
        turns = 0
        async with AIOProducer(settings) as producer:
            waiting = asyncio.ensure_future(producer.produce("t-x", b"x"))
            while not waiting.done():
                await asyncio.sleep(0.01)
                turns += 1
            with pytest.raises(EncryptionError, match="key-service-unavailable"):
                await waiting
        return turns

    try:
        assert asyncio.run(run()) > 20
    finally:
        own.process.send_signal(18)
        own.close()


def test_failed_and_cancelled_deliveries(service: Service) -> None:
    """The future has the error; one that was cancelled stays so."""

    async def run() -> None:
        settings = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 300, **service.settings("producer")}
        async with AIOProducer(settings, buffer_timeout=0.05) as producer:
            failing, cancelled = [await producer.produce("t-x", b"x") for _ in range(2)]
            cancelled.cancel()
            await producer.flush()
            with pytest.raises(KafkaException):
                await failing
            assert cancelled.cancelled()

    asyncio.run(run())


def test_undecryptable_messages(cluster: Cluster, service: Service) -> None:
    """CL-KAF-010, CL-KAF-021: they can be committed and stored; skip leaves them out."""
    topic = cluster.topic("t")
    cluster.write(topic, b"plain", None)

    async def fail() -> None:
        async with AIOConsumer(consumer_settings(cluster, service)) as consumer:
            await consumer.subscribe([topic])
            bad, null = await gathered(consumer, 2)
            assert isinstance(bad, UndecryptableMessage)
            assert null.value() is None
            with pytest.raises(DecryptionError):
                bad.value()
            await consumer.store_offsets(bad)
            committed = await consumer.commit(message=bad, asynchronous=False)
            assert committed[0].offset == 1

    async def skip() -> None:
        async with AIOConsumer(consumer_settings(cluster, service, failure_action="skip")) as consumer:
            await consumer.subscribe([topic])
            assert (await gathered(consumer, 1))[0].offset() == 1

    asyncio.run(fail())
    asyncio.run(skip())


def test_serializing_and_deserializing(cluster: Cluster, service: Service) -> None:
    """CL-KAF-013: an error is that of the deserializer."""
    topic = cluster.topic("t")

    async def there() -> None:
        serializer = {"value.serializer": StringSerializer("utf_8")}
        producer = await AsyncSerializingProducer({**producer_settings(cluster, service), **serializer})
        async with producer:
            future = await producer.produce(topic, value="text")
            await producer.flush()
            assert (await future).value() == b"text"
            with pytest.raises(EncryptionError):
                await producer.produce("forbidden-x", value="text")

    async def back() -> None:
        deserializer = {"value.deserializer": StringDeserializer("utf_8")}
        consumer = await AsyncDeserializingConsumer({**consumer_settings(cluster, service), **deserializer})
        async with consumer:
            await consumer.subscribe([topic])
            message = await consumer.poll(30)
            assert message is not None
            assert message.deserialized_value() == "text"
            cluster.write(topic, b"plain")
            with pytest.raises(ValueDeserializationError) as raised:
                await consumer.poll(30)
            assert isinstance(raised.value.exception, DecryptionError)

    asyncio.run(there())
    asyncio.run(back())


def test_bad_settings_are_refused(cluster: Cluster, service: Service) -> None:
    """CL-CFG-001, CL-KAF-026; and what was begun is closed."""

    async def run() -> None:
        bad = {"no.such.setting": 1}
        for settings, make in (
            (producer_settings(cluster, service), AIOProducer),
            (consumer_settings(cluster, service), AIOConsumer),
        ):
            with pytest.raises(ConfigurationError):
                make({**settings, "cipherlane.x": 1})
            with pytest.raises(KafkaException):
                make({**settings, **bad})
        with pytest.raises(KafkaException):
            await AsyncSerializingProducer({**producer_settings(cluster, service), **bad})
        with pytest.raises(KafkaException):
            await AsyncDeserializingConsumer({**consumer_settings(cluster, service), **bad})
        with pytest.raises(ConfigurationError, match="mark"):
            await AsyncDeserializingConsumer(consumer_settings(cluster, service, failure_action="mark"))

    asyncio.run(run())
