"""What a consumer does with records that will never be readable, and with those that will (spec/kafka.md)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable

import confluent_kafka
import pytest

from cipherlane import DecryptionError, Encryptor
from cipherlane.confluent import Consumer, UndecryptableMessage
from processes import Cluster, Service, closing, consume_all, group_settings, poll_all, start_service

Read = Callable[[Any, int], list[Any]]
both_ways = pytest.mark.parametrize("read", [poll_all, consume_all], ids=["poll", "consume"])


@pytest.fixture(scope="module")
def encryptor(service: Service) -> Any:
    with Encryptor.from_settings(service.settings("producer")) as made:
        yield made


def consumer_for(cluster: Cluster, service: Service, topic: str, action: str, **more: Any) -> Any:
    ours = service.settings("consumer", failure_action=action, **more)
    consumer = Consumer({**group_settings(cluster), **ours})
    consumer.subscribe([topic])
    return closing(consumer)


def mixed(cluster: Cluster, encryptor: Encryptor, topic: str) -> bytes:
    """Good, plaintext, damaged, cut, of an unknown key, null, good: at offsets 0 to 6. Returns the damaged one."""
    good = encryptor.encrypt(topic, b"good")
    assert good is not None
    damaged = good[:-1] + bytes([good[-1] ^ 1])
    unknown = good[:4] + os.urandom(16) + good[20:]
    cluster.write(topic, good, b"plain", damaged, good[:30], unknown, None, good, key=b"k")
    return damaged


def stored(cluster: Cluster, topic: str, count: int) -> list[Any]:
    with closing(confluent_kafka.Consumer(group_settings(cluster))) as consumer:
        consumer.subscribe([topic])
        return poll_all(consumer, count)


CODES = {"plaintext-rejected": 1, "authentication-failed": 1, "envelope-too-short": 1, "key-unknown": 1}


@both_ways
def test_skip_leaves_out_what_is_never_readable(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-KAF-021: counted by code; the position goes on."""
    topic = cluster.topic("t")
    mixed(cluster, encryptor, topic)
    with consumer_for(cluster, service, topic, "skip") as consumer:
        messages = read(consumer, 3)
        numbers = consumer.cipherlane_numbers()
        consumer.commit(asynchronous=False)
        committed = consumer.committed([confluent_kafka.TopicPartition(topic, 0)])[0].offset
    assert [(message.offset(), message.value()) for message in messages] == [(0, b"good"), (5, None), (6, b"good")]
    assert (numbers["skipped_total"], numbers["failures_total"]) == (4, CODES)
    assert committed == 7


def test_skipping_keeps_to_the_time(cluster: Cluster, service: Service) -> None:
    """CL-KAF-021: with nothing else to give, poll and consume return when their time is over."""
    topic = cluster.topic("t")
    cluster.write(topic, *([b"plain"] * 50))
    with consumer_for(cluster, service, topic, "skip") as consumer:
        began = time.monotonic()
        assert consumer.poll(3) is None
        assert consumer.consume(10, 0.2) == []
        assert 2.5 < time.monotonic() - began < 15
        assert consumer.cipherlane_numbers()["skipped_total"] == 50


@both_ways
def test_dead_letters_hold_the_record_as_it_was_read(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-KAF-022: value, key, own headers, and headers that say why and where; then it is left out."""
    topic, dead = cluster.topic("t"), cluster.topic("t")
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    forged: list[Any] = [("own", b"1"), ("cipherlane.error", b"forged"), ("cipherlane.error.kid", b"forged")]
    producer.produce(topic, b"plain", b"k", headers=forged)
    producer.flush(30)
    damaged = mixed(cluster, encryptor, topic)
    with consumer_for(cluster, service, topic, "dead-letter", dead_letter_topic=dead) as consumer:
        messages = read(consumer, 3)
        numbers = consumer.cipherlane_numbers()
    assert [(message.offset(), message.value()) for message in messages] == [(1, b"good"), (6, None), (7, b"good")]
    assert numbers["dead_lettered_total"] == 5
    letters = {dict(letter.headers())["cipherlane.error.offset"]: letter for letter in stored(cluster, dead, 5)}
    assert {int(offset) for offset in letters} == {0, 2, 3, 4, 5}
    place = [("cipherlane.error.topic", topic.encode()), ("cipherlane.error.partition", b"0")]
    first = [("own", b"1"), ("cipherlane.error", b"plaintext-rejected"), *place, ("cipherlane.error.offset", b"0")]
    assert letters[b"0"].headers() == first
    third = letters[b"3"]
    assert (third.key(), third.value()) == (b"k", damaged)
    assert third.headers() == [
        ("cipherlane.error", b"authentication-failed"),
        *place,
        ("cipherlane.error.offset", b"3"),
        ("cipherlane.error.kid", damaged[4:20].hex().encode()),
    ]


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        ("{topic}", "the dead-letter topic is the topic itself"),
        ("{topic}" + "-" * 239, "longer than 249"),
        ("too-large", "MSG_SIZE_TOO_LARGE"),
        ("nobody-listens", "no acknowledgement in time|timed out"),
    ],
)
def test_a_dead_letter_that_cannot_be_put_is_met_as_a_failure(
    cluster: Cluster, service: Service, dead: str, words: str
) -> None:
    """CL-KAF-023: and the message says both."""
    topic = cluster.topic("t")
    cluster.write(topic, bytes(3000))
    with consumer_for(cluster, service, topic, "dead-letter", dead_letter_topic=dead, keys_deadline_ms=500) as consumer:
        letters = consumer._reader._dead_letters
        if dead == "nobody-listens":
            letters._settings = {"bootstrap.servers": "127.0.0.1:1"}
        if dead == "too-large":
            letters._settings["message.max.bytes"] = 2000
        message = poll_all(consumer, 1)[0]
        assert consumer.cipherlane_numbers()["dead_lettered_total"] == 0
    with pytest.raises(DecryptionError, match=words) as raised:
        message.value()
    assert (raised.value.code, raised.value.offset) == ("plaintext-rejected", 0)


@both_ways
def test_mark_gives_the_ciphertext_with_a_header(
    cluster: Cluster, service: Service, encryptor: Encryptor, read: Read
) -> None:
    """CL-KAF-024, CL-KAF-025: injected plaintext is not handed over."""
    topic = cluster.topic("t")
    damaged = mixed(cluster, encryptor, topic)
    with consumer_for(cluster, service, topic, "mark") as consumer:
        messages = read(consumer, 7)
        numbers = consumer.cipherlane_numbers()
    assert [message.headers() for message in messages] == [
        None,
        None,
        [("cipherlane.error", b"authentication-failed")],
        [("cipherlane.error", b"envelope-too-short")],
        [("cipherlane.error", b"key-unknown")],
        None,
        None,
    ]
    assert messages[2].value() == damaged
    assert messages[0].value() == b"good"
    with pytest.raises(DecryptionError, match="plaintext-rejected"):
        messages[1].value()
    assert numbers["marked_total"] == 3


def test_only_our_own_mark_counts(cluster: Cluster, service: Service, encryptor: Encryptor) -> None:
    """CL-KAF-024: a header of that name that came with a record is removed, from good records too."""
    topic = cluster.topic("t")
    good = encryptor.encrypt(topic, b"good")
    assert good is not None
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap})
    forged: list[Any] = [("cipherlane.error", b"forged"), ("own", b"1"), ("cipherlane.error", None)]
    for value in (good, None, good[:-1]):
        producer.produce(topic, value, headers=forged)
    producer.produce(topic, good, headers=[("own", b"1")])
    producer.flush(30)
    with consumer_for(cluster, service, topic, "mark") as consumer:
        messages = poll_all(consumer, 4)
    own = ("own", b"1")
    assert [message.headers() for message in messages] == [
        [own],
        [own],
        [own, ("cipherlane.error", b"authentication-failed")],
        [own],
    ]


@pytest.mark.parametrize("action", ["skip", "dead-letter", "mark"])
def test_an_outage_loses_nothing(cluster: Cluster, tmp_path: Path, action: str) -> None:
    """CL-KAF-020: whatever the action, a key service that cannot be reached is met as under fail."""
    topic = cluster.topic("t")
    own = start_service(tmp_path / "ks")
    with Encryptor.from_settings(own.settings("producer")) as encryptor:
        cluster.write(topic, encryptor.encrypt(topic, b"x"))
    with consumer_for(cluster, own, topic, action, keys_deadline_ms=1000) as consumer:
        own.close()
        message = poll_all(consumer, 1)[0]
    assert isinstance(message, UndecryptableMessage)
    assert message.decryption_error.code == "key-service-unavailable"
    assert message.decryption_error.retriable


@pytest.mark.parametrize("action", ["skip", "dead-letter", "mark"])
def test_a_principal_that_was_refused_loses_nothing(cluster: Cluster, service: Service, action: str) -> None:
    """CL-KAF-020."""
    topic = cluster.topic("closed")
    with Encryptor.from_settings(service.settings("producer")) as encryptor:
        cluster.write(topic, encryptor.encrypt(topic, b"x"))
    with consumer_for(cluster, service, topic, action) as consumer:
        message = poll_all(consumer, 1)[0]
    assert message.decryption_error.code == "not-authorized"
