"""The drop-in consumer against a real broker and a real key service."""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any, Callable, Optional

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from cipherlane import DecryptionError, Decryptor, Encryptor
from cipherlane.confluent import ConfigurationError, Consumer, UndecryptableMessage
from processes import Cluster, Service, closing, consume_all, group_settings, poll_all, start_service

Read = Callable[[Any, int], list[Any]]
both_ways = pytest.mark.parametrize("read", [poll_all, consume_all], ids=["poll", "consume"])


@pytest.fixture(scope="module")
def encryptor(service: Service) -> Any:
    with Encryptor.from_settings(service.settings("producer")) as made:
        yield made


def consumer_for(
    cluster: Cluster, service: Service, *topics: str, principal: str = "consumer", more: Optional[dict[str, Any]] = None
) -> Any:
    consumer = Consumer({**group_settings(cluster), **(more or {}), **service.settings(principal)})
    consumer.subscribe(list(topics))
    return closing(consumer)


def assert_refused(message: Any, code: str, topic: str, offset: int, *, partition: int = 0, kid: Any = None) -> None:
    """The message is at its place, and reading its value says what, where and why. CL-KAF-010, CL-KAF-012."""
    assert isinstance(message, confluent_kafka.Message)
    assert isinstance(message, UndecryptableMessage)
    assert message
    assert message.error() is None
    assert (message.topic(), message.partition(), message.offset()) == (topic, partition, offset)
    with pytest.raises(DecryptionError) as raised:
        message.value()
    error = raised.value
    assert (error.topic, error.partition, error.offset, error.kid, error.code) == (topic, partition, offset, kid, code)
    assert all(str(part) in str(error) for part in (topic, partition, offset, code))
    assert kid is None or kid.hex() in str(error)


@both_ways
def test_reads_what_was_encrypted_null_and_empty_included(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-ENV-001, CL-ENV-040, CL-KAF-012: values, nulls and empty values; the rest of the message is untouched."""
    topic = cluster.topic("t")
    values = [b"plain", b"", None, os.urandom(100_000), b"\xc1\x9e looks like one"]
    stored = [encryptor.encrypt(topic, value) for value in values]
    assert all(b"plain" not in (envelope or b"") for envelope in stored)
    cluster.write(topic, *stored, key=b"record key")
    with consumer_for(cluster, service, topic) as consumer:
        messages = read(consumer, len(values))
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(len(values)))
    assert {message.key() for message in messages} == {b"record key"}
    assert all(message.timestamp()[1] > 0 and message.leader_epoch() is not None for message in messages)
    assert type(messages[0]) is confluent_kafka.Message


@both_ways
def test_each_bad_record_keeps_its_place_and_its_neighbours_are_readable(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-KAF-010, CL-KAF-011, CL-ENV-002 to CL-ENV-010, CL-ENV-012."""
    topic, other = cluster.topic("t"), cluster.topic("t")
    good = encryptor.encrypt(topic, b"good")
    foreign = encryptor.encrypt(other, b"of another scope")
    assert good is not None
    assert foreign is not None
    kid = good[4:20]
    unknown_kid = os.urandom(16)
    bad: list[tuple[bytes, str, Any]] = [
        (b"plaintext of an intruder", "plaintext-rejected", None),
        (b"", "plaintext-rejected", None),
        (good[:2], "envelope-too-short", None),
        (good[:59], "envelope-too-short", None),
        (good[:-1], "authentication-failed", kid),
        (good[:2] + b"\x02" + good[3:], "unsupported-version", None),
        (good[:4] + unknown_kid + good[20:], "key-unknown", unknown_kid),
        (good[:-1] + bytes([good[-1] ^ 1]), "authentication-failed", kid),
        (foreign, "scope-mismatch", foreign[4:20]),
    ]
    for bit in range(8):
        # Known flags are authenticated; the others, among them compression 2, are refused as they are read.
        known = bit in {0, 2}
        flipped = good[:3] + bytes([good[3] ^ (1 << bit)]) + good[4:]
        bad.append((flipped, "authentication-failed" if known else "unsupported-flags", kid if known else None))
    cluster.write(topic, *(value for broken, _, _ in bad for value in (good, broken)), good, key=b"k")
    with consumer_for(cluster, service, topic) as consumer:
        messages = read(consumer, 2 * len(bad) + 1)
    assert [message.value() for message in messages[::2]] == [b"good"] * (len(bad) + 1)
    for message, offset, (value, code, named) in zip(messages[1::2], range(1, 2 * len(bad), 2), bad):
        assert_refused(message, code, topic, offset, kid=named)
        assert message.key() == b"k"
        assert len(message) == len(value)


@both_ways
def test_without_the_right_nothing_is_readable(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-KAF-010: a stranger gets every record at its place, and none of their values."""
    topic = cluster.topic("t")
    envelope = encryptor.encrypt(topic, b"canary")
    assert envelope is not None
    cluster.write(topic, envelope, b"plaintext", None)
    with consumer_for(cluster, service, topic, principal="stranger") as consumer:
        messages = read(consumer, 3)
    assert_refused(messages[0], "not-authorized", topic, 0, kid=envelope[4:20])
    assert_refused(messages[1], "not-authorized", topic, 1)
    assert messages[2].value() is None


def test_policy_on_plaintext(cluster: Cluster, service: Service, encryptor: Encryptor) -> None:
    """CL-ENV-002, CL-ENV-003, CL-ENV-041: accepted where the policy says so, and in clear topics; never an envelope."""
    migrating, clear = cluster.topic("migrating"), cluster.topic("clear")
    cluster.write(migrating, b"old", encryptor.encrypt(migrating, b"new"), b"\xc1\x9e")
    cluster.write(clear, encryptor.encrypt(clear, b"public"))
    with consumer_for(cluster, service, migrating) as consumer:
        messages = poll_all(consumer, 3)
    assert [message.value() for message in messages[:2]] == [b"old", b"new"]
    assert_refused(messages[2], "envelope-too-short", migrating, 2)
    with consumer_for(cluster, service, clear) as consumer:
        assert poll_all(consumer, 1)[0].value() == b"public"


def test_forbidden_and_unknown_topics(cluster: Cluster, service: Service) -> None:
    """CL-POL-001, CL-POL-004, as a reader meets them."""
    forbidden, unknown = cluster.topic("forbidden"), cluster.topic("unruled")
    cluster.write(forbidden, b"x")
    cluster.write(unknown, b"x")
    with consumer_for(cluster, service, forbidden, unknown) as consumer:
        found = {message.topic(): message for message in poll_all(consumer, 2)}
    assert_refused(found[forbidden], "topic-forbidden", forbidden, 0)
    with pytest.raises(DecryptionError) as raised:
        found[unknown].value()
    assert raised.value.code in {"topic-unknown", "not-authorized"}


def test_several_partitions_and_topics_in_one_batch(cluster: Cluster, service: Service, encryptor: Encryptor) -> None:
    """CL-KAF-011, CL-KEY-010: two topics, four partitions, two bad records, one batch."""
    first, second = cluster.topic("t", 3), cluster.topic("claims")
    for partition in range(3):
        cluster.write(first, encryptor.encrypt(first, b"%d" % partition), partition=partition)
    cluster.write(first, b"intruder", partition=1)
    cluster.write(second, b"intruder", encryptor.encrypt(second, b"claim"))
    with consumer_for(cluster, service, first, second) as consumer:
        messages = consume_all(consumer, 6)
    found = {(message.topic(), message.partition(), message.offset()): message for message in messages}
    assert [found[first, partition, 0].value() for partition in range(3)] == [b"0", b"1", b"2"]
    assert found[second, 0, 1].value() == b"claim"
    assert_refused(found[first, 1, 1], "plaintext-rejected", first, 1, partition=1)
    assert_refused(found[second, 0, 0], "plaintext-rejected", second, 0)


def test_large_batches_are_as_whole_as_those_of_the_client(
    cluster: Cluster, service: Service, encryptor: Encryptor
) -> None:
    """In order, none missing; bounds and time limits are confluent-kafka's."""
    topic = cluster.topic("t")
    cluster.write(topic, *(encryptor.encrypt(topic, b"%d" % number) for number in range(1_700)))
    with consumer_for(cluster, service, topic) as consumer:
        first = consumer.consume(1_200, 30)
        rest = consumer.consume(1_200, 1.0)
        assert consumer.consume(0, 1.0) == []
        for refused in (-1, 1_000_001):
            with pytest.raises(ValueError, match="num_messages"):
                consumer.consume(refused, 0)
    assert [message.value() for message in first] == [b"%d" % number for number in range(1_200)]
    assert [message.value() for message in rest] == [b"%d" % number for number in range(1_200, 1_700)]


def test_what_was_taken_is_given_when_the_client_fails_after_it(
    cluster: Cluster, service: Service, encryptor: Encryptor
) -> None:
    """Offsets may be stored already: an error while what was skipped is made up for must not swallow the rest."""
    topic = cluster.topic("t")
    cluster.write(topic, encryptor.encrypt(topic, b"first"), b"intruder", encryptor.encrypt(topic, b"last"))
    more = {"cipherlane.failure.action": "skip"}
    with consumer_for(cluster, service, topic, more=more) as consumer:
        taken: list[Any] = []

        def failing(count: int, timeout: float) -> list[Any]:
            if taken:
                raise confluent_kafka.KafkaException(confluent_kafka.KafkaError._FATAL)
            taken.extend(confluent_kafka.Consumer.consume(consumer, count, timeout))
            return list(taken)

        messages = consumer._reader.consume(failing, 3, 30)
        with pytest.raises(confluent_kafka.KafkaException):
            consumer._reader.consume(failing, 3, 30)
    assert len(taken) == 3
    assert [message.value() for message in messages] == [b"first", b"last"]


def test_a_commit_of_what_was_processed_skips_nothing(cluster: Cluster, service: Service, encryptor: Encryptor) -> None:
    """CL-KAF-010: an application that commits up to the bad record finds it there again."""
    topic = cluster.topic("t")
    cluster.write(topic, encryptor.encrypt(topic, b"0"), encryptor.encrypt(topic, b"1"), b"bad")
    cluster.write(topic, encryptor.encrypt(topic, b"3"))
    group = os.urandom(6).hex()
    with consumer_for(cluster, service, topic, more={"group.id": group}) as consumer:
        for message in consume_all(consumer, 4):
            try:
                message.value()
            except DecryptionError:
                break
            consumer.commit(message, asynchronous=False)
    with consumer_for(cluster, service, topic, more={"group.id": group}) as consumer:
        again = poll_all(consumer, 2)
        assert_refused(again[0], "plaintext-rejected", topic, 2)
        assert again[1].value() == b"3"
        consumer.commit(again[0], asynchronous=False)  # passed over on purpose: the message itself can be committed
        assert consumer.committed([TopicPartition(topic, 0)])[0].offset == 3
    with consumer_for(cluster, service, topic, more={"group.id": group}) as consumer:
        assert poll_all(consumer, 1)[0].value() == b"3"


def test_offsets_are_stored_for_undecryptable_messages(cluster: Cluster, service: Service) -> None:
    """CL-KAF-012: ``store_offsets`` takes the message that stands for one that cannot be read."""
    topic = cluster.topic("t")
    cluster.write(topic, b"bad", b"bad")
    with consumer_for(cluster, service, topic, more={"enable.auto.offset.store": False}) as consumer:
        message = poll_all(consumer, 1)[0]
        consumer.store_offsets(message)
        consumer.commit(asynchronous=False)
        assert consumer.committed([TopicPartition(topic, 0)])[0].offset == 1


def test_messages_that_are_errors_pass_untouched(cluster: Cluster, service: Service) -> None:
    """An end-of-partition event has no value to decrypt."""
    topic = cluster.topic("t")
    cluster.write(topic, b"bad")
    with consumer_for(cluster, service, topic, more={"enable.partition.eof": True}) as consumer:
        bad, end = poll_all(consumer, 2)
    assert_refused(bad, "plaintext-rejected", topic, 0)
    assert end.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    assert type(end) is confluent_kafka.Message


def test_undecryptable_messages_pickle_without_their_value(
    cluster: Cluster, service: Service, encryptor: Encryptor
) -> None:
    """CL-ENV-012: neither a pickle nor the base class's accessors give the stored bytes."""
    topic = cluster.topic("t")
    cluster.write(topic, b"intruder", key=b"k")
    with consumer_for(cluster, service, topic) as consumer:
        message = poll_all(consumer, 1)[0]
    pickled = pickle.dumps(message)
    assert b"intruder" not in pickled
    copy = pickle.loads(pickled)
    assert_refused(copy, "plaintext-rejected", topic, 0)
    assert (copy.key(), len(copy), copy.timestamp()) == (b"k", 8, message.timestamp())
    assert confluent_kafka.Message.value(message) is None
    with pytest.raises(DecryptionError):
        message.deserialized_value()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cipherlane.keyservice.url": "x"}, "cipherlane.keyservice.urls"),
        ({"cipherlane.keys.cache.max": 0}, "16 to 1000000"),
        ({"cipherlane.keyservice.tls.key": "/nowhere"}, "tls.key"),
        ({"cipherlane.failure.action": "drop"}, "failure.action"),
    ],
)
def test_a_bad_setting_is_refused_when_the_consumer_is_made(
    cluster: Cluster, service: Service, change: dict[str, Any], words: str
) -> None:
    """CL-CFG-001, CL-CFG-002."""
    with pytest.raises(ConfigurationError, match=words):
        Consumer({**group_settings(cluster), **service.settings("consumer"), **change})


def test_a_bad_setting_of_librdkafka_is_still_its_own_error(cluster: Cluster, service: Service) -> None:
    with pytest.raises(confluent_kafka.KafkaException):
        Consumer({**group_settings(cluster), **service.settings("consumer"), "no.such.setting": 1})


def test_settings_as_keyword_arguments_and_the_with_statement(
    cluster: Cluster, service: Service, encryptor: Encryptor
) -> None:
    """CL-KEY-013: leaving the block closes the key client too."""
    topic = cluster.topic("t")
    cluster.write(topic, encryptor.encrypt(topic, b"x"))
    with Consumer(group_settings(cluster), **service.settings("consumer")) as consumer:
        consumer.subscribe([topic])
        assert poll_all(consumer, 1)[0].value() == b"x"
        decryptor = consumer._reader.decryptor
    with pytest.raises(DecryptionError, match="closed"):
        decryptor.decrypt(topic, b"x")
    with pytest.raises(RuntimeError):
        consumer.poll(0)


def test_keys_are_asked_for_together_and_renewed(cluster: Cluster, tmp_path: Path) -> None:
    """CL-KEY-010, CL-KEY-012, over HTTP: the audit log of the key service counts the requests of one batch."""
    with closing(start_service(tmp_path / "ks")) as own:
        topic = cluster.topic("t")
        with Encryptor.from_settings(own.settings("producer")) as encryptor:
            cluster.write(topic, encryptor.encrypt(topic, b"x"))
        envelope = b"\xc1\x9e\x01\x00"
        cluster.write(topic, *(envelope + os.urandom(16) + bytes(40) for _ in range(300)), b"plaintext")
        with consumer_for(cluster, own, topic) as consumer:
            messages = consume_all(consumer, 302)
        assert messages[0].value() == b"x"
        assert all(isinstance(message, UndecryptableMessage) for message in messages[1:])
        asked = [json.loads(line) for line in Path(own.described["audit"]).read_text().splitlines()]
        assert 1 <= sum(entry.get("principal", "").endswith("/consumer") for entry in asked) <= 3


def test_a_lease_that_ended_is_the_end_of_reading(cluster: Cluster, tmp_path: Path) -> None:
    """CL-KEY-005, CL-KEY-007: two seconds after the key service went, nothing is readable, and it says why."""
    with closing(start_service(tmp_path / "ks")) as own:
        topic = cluster.topic("short")
        with Encryptor.from_settings(own.settings("producer")) as encryptor:
            envelope = encryptor.encrypt(topic, b"x")
        cluster.write(topic, envelope)
        with consumer_for(cluster, own, topic) as consumer:
            assert poll_all(consumer, 1)[0].value() == b"x"
            own.close()
            cluster.write(topic, envelope)
            time.sleep(2.2)
            cluster.write(topic, envelope)
            messages = poll_all(consumer, 2)
        assert envelope is not None
        assert_refused(messages[1], "key-service-unavailable", topic, 2, kid=envelope[4:20])
        with pytest.raises(DecryptionError) as raised:
            messages[1].value()
        assert raised.value.retriable


def test_both_generations_are_readable_after_a_rotation(cluster: Cluster, service: Service) -> None:
    topic = cluster.topic("claims")
    values = []
    for generation in (b"0", b"1"):
        with Encryptor.from_settings(service.settings("producer")) as encryptor:
            values.append(encryptor.encrypt(topic, generation))
        service.rotate("claims")
    assert values[0] is not None
    assert values[1] is not None
    assert values[0][4:20] != values[1][4:20]
    cluster.write(topic, *values)
    with consumer_for(cluster, service, topic) as consumer:
        assert [message.value() for message in consume_all(consumer, 2)] == [b"0", b"1"]


def test_direct_use_without_a_kafka_client(service: Service, encryptor: Encryptor) -> None:
    """Topic and bytes in, bytes out."""
    with Decryptor.from_settings(service.settings("consumer")) as decryptor:
        assert decryptor.decrypt("t-direct", encryptor.encrypt("t-direct", b"x")) == b"x"
        assert decryptor.decrypt("t-direct", None) is None
