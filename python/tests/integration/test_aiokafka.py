"""The adapter for aiokafka, against a real broker and a real key service."""

from __future__ import annotations

import asyncio
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka.structs import TopicPartition
from test_producer import read, stored

from cipherlane import ConfigurationError, DecryptionError, EncryptionError, Encryptor
from cipherlane.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, UndecryptableRecord
from processes import Cluster, Service, start_service


def text(value: Any) -> Any:
    return None if value is None else value.encode()


def consumer_for(cluster: Cluster, service: Service, *topics: str, **more: Any) -> AIOKafkaConsumer:
    settings = service.settings("consumer")
    own: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest", "group_id": None}
    return AIOKafkaConsumer(*topics, **{"cipherlane": settings, **own, **more})


@pytest.mark.parametrize(("bound", "flags"), [("t-*", 4), ("other", 0)])
def test_there_and_back(cluster: Cluster, service: Service, bound: str, flags: int) -> None:
    """CL-KAF-003, CL-ENV-040, CL-KAF-030: and by the other client too."""
    topic = cluster.topic("t")
    values = ["one", "", None, "four"]

    async def there() -> None:
        settings = service.settings("producer", record_key_topics=bound)
        serializers = {"key_serializer": text, "value_serializer": text}
        producer = AIOKafkaProducer(cipherlane=settings, bootstrap_servers=cluster.bootstrap, **serializers)
        async with producer:
            for value in values:
                await producer.send_and_wait(topic, value, "key", headers=[("h", b"1")], timestamp_ms=5)
            assert producer.cipherlane_numbers()["records_encrypted_total"] == 3

    async def back() -> None:
        own = {"key_deserializer": bytes.decode, "value_deserializer": lambda value: value and value.decode()}
        async with consumer_for(cluster, service, topic, **own) as consumer:
            first = await consumer.getone()
            assert (first.value, first.key, first.headers, first.timestamp) == ("one", "key", (("h", b"1"),), 5)
            rest: list[Any] = [await consumer.getone()]
            while len(rest) < 3:
                found = await consumer.getmany(timeout_ms=500)
                rest += found.get(TopicPartition(topic, 0), [])
            assert [record.value for record in rest] == [b"", None, "four"]
            assert consumer.cipherlane_numbers()["records_decrypted_total"] == 3

    asyncio.run(there())
    assert [message.value()[3] for message in stored(cluster, topic, 4) if message.value()] == [flags] * 3
    asyncio.run(back())
    assert [message.value() for message in read(cluster, service, topic, 4)] == [b"one", b"", None, b"four"]


def test_what_cannot_be_encrypted_is_not_sent(cluster: Cluster, service: Service) -> None:
    """CL-KAF-001, CL-KAF-005: nor what would be sent without having been looked at."""

    async def run() -> None:
        producer = AIOKafkaProducer(cipherlane=service.settings("producer"), bootstrap_servers=cluster.bootstrap)
        async with producer:
            for topic, value in (("forbidden-x", b"x"), ("nowhere", b"x"), ("t-x", "text"), ("t-x", 5)):
                with pytest.raises(EncryptionError):
                    await producer.send(topic, value, b"k")
            with pytest.raises(NotImplementedError):
                producer.create_batch()
            with pytest.raises(NotImplementedError):
                await producer.send_batch(None, "t-x", partition=0)
        with pytest.raises(EncryptionError, match="closed"):
            await asyncio.to_thread(producer._encryptor.encrypt, "t-x", b"x")

    asyncio.run(run())


def test_what_cannot_be_decrypted_raises_when_it_is_looked_at(cluster: Cluster, service: Service) -> None:
    """CL-KAF-010, CL-KAF-011, CL-KAF-012."""
    topic = cluster.topic("t")
    cluster.write(topic, b"canary", None, key=b"k")

    async def run() -> None:
        async with consumer_for(cluster, service, topic) as consumer:
            bad = await consumer.getone()
            assert (await consumer.getone()).value is None
        assert isinstance(bad, UndecryptableRecord)
        assert (bad.topic, bad.partition, bad.offset, bad.key) == (topic, 0, 0, b"k")
        with pytest.raises(DecryptionError, match="plaintext-rejected"):
            bad.value  # noqa: B018
        assert "plaintext-rejected" in repr(bad)
        assert "canary" not in f"{bad!r}{vars(bad)}"

    asyncio.run(run())


def actions_on(cluster: Cluster, service: Service, topic: str, count: int, **more: Any) -> tuple[list[Any], Any]:
    """What a consumer shows of a topic, and its numbers."""

    async def run() -> tuple[list[Any], Any]:
        own: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(topic, cipherlane=service.settings("consumer", **more), **own) as consumer:
            records = [await consumer.getone()]
            while len(records) < count:
                for found in (await consumer.getmany(timeout_ms=500)).values():
                    records += found
            return records, consumer.cipherlane_numbers()

    return asyncio.run(run())


def test_failure_actions(cluster: Cluster, service: Service) -> None:
    """CL-KAF-021, CL-KAF-022, CL-KAF-024, CL-KAF-025."""
    topic, dead = cluster.topic("t"), cluster.topic("t")
    with Encryptor.from_settings(service.settings("producer")) as encryptor:
        good = encryptor.encrypt(topic, b"good") or b""
    forged: list[Any] = [("cipherlane.error", b"forged"), ("own", b"1")]
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    for value in (b"plain", good, good[:-1], None):
        producer.produce(topic, value, b"k", headers=forged)
    producer.flush(30)

    shown, numbers = actions_on(cluster, service, topic, 2, failure_action="skip")
    assert [(record.offset, record.value) for record in shown] == [(1, b"good"), (3, None)]
    assert numbers["skipped_total"] == 2

    shown, numbers = actions_on(cluster, service, topic, 4, failure_action="mark")
    own = ("own", b"1")
    marked = (own, ("cipherlane.error", b"authentication-failed"))
    assert [record.headers for record in shown] == [(("cipherlane.error", b"forged"), own)[1:], (own,), marked, (own,)]
    assert isinstance(shown[0], UndecryptableRecord)
    assert (shown[2].value, numbers["marked_total"]) == (good[:-1], 1)

    more = {"failure_action": "dead-letter", "dead_letter_topic": dead}
    shown, numbers = actions_on(cluster, service, topic, 2, **more)
    assert [(record.offset, numbers["dead_lettered_total"]) for record in shown] == [(1, 2), (3, 2)]
    letters = stored(cluster, dead, 2)
    assert [(letter.key(), letter.value()) for letter in letters] == [(b"k", b"plain"), (b"k", good[:-1])]
    assert letters[0].headers()[:2] == [own, ("cipherlane.error", b"plaintext-rejected")]


def test_a_dead_letter_that_cannot_be_put_is_met_as_a_failure(cluster: Cluster, service: Service) -> None:
    """CL-KAF-023."""
    topic = cluster.topic("t")
    cluster.write(topic, b"plain")
    shown, numbers = actions_on(cluster, service, topic, 1, failure_action="dead-letter", dead_letter_topic="{topic}")
    assert numbers["dead_lettered_total"] == 0
    with pytest.raises(DecryptionError, match=r"plaintext-rejected.*the dead-letter topic is the topic itself"):
        shown[0].value  # noqa: B018


@pytest.mark.parametrize("how", ["getone", "getmany"])
def test_a_call_that_is_cancelled_loses_nothing(cluster: Cluster, tmp_path: Path, how: str) -> None:
    """Nor does one that waits for a key, which comes later."""
    topic, service = cluster.topic("t"), start_service(tmp_path / "keys")

    async def take(consumer: AIOKafkaConsumer) -> list[Any]:
        if how == "getone":
            return [await consumer.getone()]
        found = await consumer.getmany(timeout_ms=500)
        return [record for records in found.values() for record in records]

    async def take_until_some(consumer: AIOKafkaConsumer) -> None:
        while not await take(consumer):
            pass

    async def back() -> None:
        patient = service.settings(
            "consumer", keyservice_connect_timeout_ms=60_000, keyservice_request_timeout_ms=60_000
        )
        async with consumer_for(cluster, service, topic, cipherlane=patient) as consumer:
            service.process.send_signal(signal.SIGSTOP)
            for _ in range(3):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(take_until_some(consumer), 2)
            service.process.send_signal(signal.SIGCONT)
            records: list[Any] = []
            while len(records) < 5:
                records += await asyncio.wait_for(take(consumer), 20)
            assert [(record.offset, record.value) for record in records] == [(i, b"%d" % i) for i in range(5)]

    try:
        with Encryptor.from_settings(service.settings("producer")) as encryptor:
            cluster.write(topic, *[encryptor.encrypt(topic, b"%d" % i) for i in range(5)])
        asyncio.run(back())
    finally:
        service.process.send_signal(signal.SIGCONT)
        service.close()


def test_what_was_sought_or_taken_away_meanwhile_is_not_given_back(cluster: Cluster, service: Service) -> None:
    topic = cluster.topic("t")
    cluster.write(topic, None, None, None)
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        async with consumer_for(cluster, service) as consumer:
            consumer._give_back(partition, 0)  # not assigned
            consumer.assign([partition])
            consumer._give_back(partition, 0)  # its position is not known yet
            assert (await consumer.getone()).offset == 0
            consumer.seek(partition, 0)
            consumer._give_back(partition, 1)
            assert (await consumer.getone()).offset == 0
            consumer._give_back(partition, 0)
            assert (await consumer.getone()).offset == 0

    asyncio.run(run())


def test_a_deserializer_that_raises_skips_nothing(cluster: Cluster, service: Service) -> None:
    topic = cluster.topic("t")

    async def run() -> None:
        async with AIOKafkaProducer(
            cipherlane=service.settings("producer"), bootstrap_servers=cluster.bootstrap
        ) as producer:
            for value in (b"1", b"x", b"3"):
                await producer.send_and_wait(topic, value)
        async with consumer_for(cluster, service, topic, value_deserializer=int) as consumer:
            assert (await consumer.getone()).value == 1
            for _ in range(2):
                with pytest.raises(ValueError, match="invalid literal"):
                    await consumer.getone()
            consumer.seek(TopicPartition(topic, 0), 2)
            assert (await consumer.getone()).value == 3

    asyncio.run(run())


def test_records_and_offsets_in_one_transaction(cluster: Cluster, service: Service) -> None:
    """``async for`` on one side, a transaction for each record on the other; what was aborted is not read."""
    source, target, group = cluster.topic("t"), cluster.topic("t"), f"pipe-{uuid.uuid4()}"
    partition = TopicPartition(source, 0)

    async def run() -> None:
        own: dict[str, Any] = {"cipherlane": service.settings("producer"), "bootstrap_servers": cluster.bootstrap}
        committed: dict[str, Any] = {
            "group_id": group,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
        }
        async with AIOKafkaProducer(**own, transactional_id=group) as producer:
            async with producer.transaction():
                for number in range(5):
                    await producer.send(source, b"%d" % number)
            async with consumer_for(cluster, service, source, **committed) as consumer:
                async for record in consumer:
                    await producer.begin_transaction()
                    await producer.send(target, b"aborted")
                    await producer.abort_transaction()
                    async with producer.transaction():
                        await producer.send(target, record.value * 2)
                        await producer.send_offsets_to_transaction({partition: record.offset + 1}, group)
                    if record.value == b"4":
                        break
                until = time.monotonic() + 20
                while (
                    await consumer.committed(partition) != 5
                ):  # the last transaction's end reaches the group a moment later
                    assert time.monotonic() < until
        async with consumer_for(cluster, service, target, isolation_level="read_committed") as consumer:
            values = [(await consumer.getone()).value for _ in range(5)]
        assert values == [b"00", b"11", b"22", b"33", b"44"]

    asyncio.run(run())


def test_bad_settings_are_refused(service: Service) -> None:
    """CL-CFG-001, CL-KAF-026."""

    async def run() -> None:
        with pytest.raises(ConfigurationError):
            AIOKafkaProducer(cipherlane={})
        with pytest.raises(ConfigurationError):
            AIOKafkaConsumer("t", cipherlane={**service.settings("consumer"), "group.id": "x"})
        settings = service.settings("consumer", failure_action="mark")
        with pytest.raises(ConfigurationError, match="mark is not for"):
            AIOKafkaConsumer("t", cipherlane=settings, value_deserializer=bytes.decode)

    asyncio.run(run())
