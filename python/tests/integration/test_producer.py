"""The drop-in producer against a real broker and a real key service."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

import confluent_kafka
import pytest
from confluent_kafka import KafkaException

from cipherlane import EncryptionError
from cipherlane.confluent import ConfigurationError, Consumer, Producer
from processes import Cluster, Service, closing, group_settings, poll_all, start_service
from support import eventually


def producer_for(cluster: Cluster, service: Service, more: Any = None, principal: str = "producer") -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap, **(more or {}), **service.settings(principal)})


def read(cluster: Cluster, service: Service, topic: str, count: int, **more: Any) -> list[Any]:
    with closing(Consumer({**group_settings(cluster), **more, **service.settings("consumer")})) as consumer:
        consumer.subscribe([topic])
        return poll_all(consumer, count)


def stored(cluster: Cluster, topic: str, count: int) -> list[Any]:
    """What lies on the broker, read without us."""
    with closing(confluent_kafka.Consumer(group_settings(cluster))) as consumer:
        consumer.subscribe([topic])
        return poll_all(consumer, count)


def test_what_is_produced_is_encrypted_and_the_rest_is_passed_on(cluster: Cluster, service: Service) -> None:
    """CL-KAF-003, CL-ENV-040: topic, partition, key, headers and timestamp as given; null stays null."""
    topic = cluster.topic("t", 3)
    headers: list[Any] = [("a", b"1"), ("a", b"2"), ("n", None)]
    with producer_for(cluster, service) as producer:
        assert isinstance(producer, confluent_kafka.Producer)
        producer.produce(topic, b"canary", b"key", 2, headers=headers, timestamp=1_700_000_000_123)
        producer.produce(topic, "t\u00e9xt", "k", partition=2)
        producer.produce(topic, value=None, key="k", partition=2)
        producer.produce(topic, b"", partition=2)
        assert len(producer) == 4
        assert producer.flush(30) == 0
    raw = stored(cluster, topic, 4)
    assert [len(message) for message in raw] == [66, 65, 0, 60]
    assert all(b"canary" not in (message.value() or b"") for message in raw)
    messages = read(cluster, service, topic, 4)
    assert [message.value() for message in messages] == [b"canary", "t\u00e9xt".encode(), None, b""]
    assert [message.key() for message in messages] == [b"key", b"k", b"k", None]
    first = messages[0]
    assert (first.partition(), first.headers(), first.timestamp()) == (2, headers, (1, 1_700_000_000_123))
    assert producer.close()


@pytest.mark.parametrize("how", ["callback", "on_delivery", "setting"])
def test_delivery_callbacks_see_the_applications_value(cluster: Cluster, service: Service, how: str) -> None:
    """CL-KAF-002."""
    topic = cluster.topic("t")
    told: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        told.append((error, message.topic(), message.value(), message.offset()))

    each = {} if how == "setting" else {how: delivered}
    with producer_for(cluster, service, {"on_delivery": delivered} if how == "setting" else {}) as producer:
        for value in (b"one", "two", None, b""):
            producer.produce(topic, value, b"k", **each)
        producer.flush(30)
    expected = [b"one", b"two", None, b""]
    assert told == [(None, topic, value, offset) for offset, value in enumerate(expected)]


def test_delivery_callbacks_of_failures_see_the_applications_value(service: Service) -> None:
    told: list[Any] = []
    settings = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 200, "logger": None}
    with Producer({**settings, **service.settings("producer")}) as producer:
        producer.produce("t-lost", b"x", callback=lambda error, message: told.append((error.code(), message.value())))
        producer.flush(10)
    assert told == [(confluent_kafka.KafkaError._MSG_TIMED_OUT, b"x")]


@pytest.mark.parametrize(
    ("topic", "value", "code"),
    [
        ("nowhere", b"x", "topic-unknown"),
        ("forbidden-x", b"x", "topic-forbidden"),
        ("forbidden-x", None, "topic-forbidden"),
        ("clear-x", b"\xc1\x9e", "ambiguous-plaintext"),
        ("t-x", 5, "value-type"),
        ("t-x", bytearray(b"x"), "value-type"),
        ("t-x", bytes(1001), "plaintext-too-long"),
        ("t/x", b"x", "topic-invalid"),
        (None, b"x", "topic-invalid"),
        ("t-bound-x", b"x", "value-type"),
    ],
)
def test_what_cannot_be_encrypted_is_not_sent(
    cluster: Cluster, service: Service, topic: Any, value: Any, code: str
) -> None:
    """CL-KAF-001, CL-KAF-005: produce and produce_batch raise, and nothing is queued."""
    settings = service.settings("producer", max_plaintext_bytes=1000, record_key_topics="t-bound-*")
    with Producer({"bootstrap.servers": cluster.bootstrap, **settings}) as producer:
        key: Any = 5 if topic == "t-bound-x" else None
        with pytest.raises(EncryptionError) as raised:
            producer.produce(topic, value, key)
        assert (raised.value.code, raised.value.topic) == (code, topic)
        with pytest.raises(EncryptionError, match=code):
            producer.produce_batch(topic, [{"value": value, "key": key}, {"value": b"fine", "key": b"k"}])
        assert len(producer) == 0
        assert producer.cipherlane_numbers()["failures_total"] == {code: 2}


def test_a_principal_without_a_grant_sends_nothing(cluster: Cluster, service: Service) -> None:
    """CL-KAF-001."""
    with producer_for(cluster, service, principal="consumer") as producer, pytest.raises(EncryptionError) as raised:
        producer.produce("t-x", b"x")
    assert raised.value.code == "not-authorized"
    assert not raised.value.retriable


def test_without_the_key_service_nothing_is_sent(cluster: Cluster, tmp_path: Any) -> None:
    """CL-KAF-001, CL-KEY-011: also no null value."""
    own = start_service(tmp_path / "ks")
    settings = own.settings("producer", keys_deadline_ms=1000)
    own.close()
    with Producer({"bootstrap.servers": cluster.bootstrap, **settings}) as producer:
        values: tuple[Optional[bytes], ...] = (b"x", None)
        for value in values:
            with pytest.raises(EncryptionError) as raised:
                producer.produce("t-x", value)
            assert raised.value.code == "key-service-unavailable"
            assert raised.value.retriable
        assert len(producer) == 0


def test_the_limit_of_a_message_is_that_of_the_envelope(cluster: Cluster, service: Service) -> None:
    """``message.max.bytes`` is looked at by librdkafka, on what is sent."""
    with producer_for(cluster, service, {"message.max.bytes": 2000}) as producer:
        producer.produce("t-x", bytes(1500))
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            producer.produce("t-x", bytes(1950))
        producer.purge()


def test_a_batch(cluster: Cluster, service: Service) -> None:
    """CL-KAF-002: the application's dictionaries stay as they are, but for ``_error``, which confluent-kafka sets."""
    topic = cluster.topic("t")
    told: list[Any] = []

    def note(name: str) -> Any:
        return lambda error, message: told.append((name, error, message.value()))

    messages: list[dict[str, Any]] = [
        {"value": b"one", "key": b"k", "callback": note("own")},
        {"value": "two"},
        {"value": bytes(3000)},
        {"value": None, "key": "k"},
    ]
    with producer_for(cluster, service, {"message.max.bytes": 2000}) as producer:
        assert producer.produce_batch(topic, messages, on_delivery=note("all")) == 3
        producer.flush(30)
        assert producer.produce_batch(topic, [{"value": b"five"}]) == 1
        wrong: Any
        for wrong in ((), [5], "x"):
            with pytest.raises(TypeError):
                producer.produce_batch(topic, wrong)
    assert told == [("own", None, b"one"), ("all", None, b"two"), ("all", None, None)]
    assert [("_error" in message, message["value"]) for message in messages] == [
        (False, b"one"), (False, "two"), (True, bytes(3000)), (False, None),
    ]  # fmt: skip
    assert [message.value() for message in read(cluster, service, topic, 4)] == [b"one", b"two", None, b"five"]


def test_transactions(cluster: Cluster, service: Service) -> None:
    """What was aborted is not read, what was committed is."""
    topic = cluster.topic("t")
    with producer_for(cluster, service, {"transactional.id": os.urandom(4).hex()}) as producer:
        producer.init_transactions(30)
        for value, finish in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
            producer.begin_transaction()
            producer.produce(topic, value)
            producer.flush(30)
            finish()
    messages = read(cluster, service, topic, 1, **{"isolation.level": "read_committed"})
    assert [message.value() for message in messages] == [b"committed"]


def test_bound_and_compressed_values_are_read_back(cluster: Cluster, service: Service) -> None:
    """CL-KAF-030, CL-ENV-045: writers are told by settings, readers by the envelope."""
    topic = cluster.topic("t")
    more = {"record_key_topics": "t-*", "compression_topics": topic, "compression_min_bytes": 10}
    settings = service.settings("producer", **more)
    with Producer({"bootstrap.servers": cluster.bootstrap}, **settings) as producer:
        producer.produce(topic, b"a" * 5000, "key")
        producer.produce(topic, b"short", None)
    raw = stored(cluster, topic, 2)
    assert [message.value()[3] for message in raw] == [5, 4]
    assert len(raw[0]) < 500
    cluster.write(topic, raw[0].value(), key=b"other")
    messages = read(cluster, service, topic, 3)
    assert [message.value() for message in messages[:2]] == [b"a" * 5000, b"short"]
    assert messages[2].decryption_error.code == "authentication-failed"


def test_closing_reports_usage_and_wipes(cluster: Cluster, service: Service) -> None:
    """CL-KEY-013, CL-KEY-017."""
    producer = producer_for(cluster, service)
    producer.produce(cluster.topic("t"), b"x")
    assert producer.cipherlane_numbers()["records_encrypted_total"] == 1
    assert producer.close()
    assert producer.cipherlane_numbers()["keys_cached"] == 0
    with pytest.raises(EncryptionError, match="closed"):
        producer.produce("t-x", b"x")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cipherlane.keyservice.url": "x"}, ConfigurationError),
        ({"cipherlane.compression.topics": "a b"}, ConfigurationError),
        ({"no.such.setting": 1}, KafkaException),
    ],
)
def test_bad_settings_are_refused(cluster: Cluster, service: Service, change: dict[str, Any], error: Any) -> None:
    """CL-CFG-001, CL-CFG-002."""
    with pytest.raises(error):
        Producer({"bootstrap.servers": cluster.bootstrap, **service.settings("producer"), **change})


def produce_in_child(cluster: Cluster, service: Service, topic: str) -> None:
    with producer_for(cluster, service) as producer:
        for _ in range(50):
            producer.produce(topic, b"x")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_forked_before_their_first_record_repeat_no_nonce(cluster: Cluster, service: Service) -> None:
    """CL-ENV-035: as a pre-forking server has it, with the application loaded, and an encryptor used, in the parent."""
    topic = cluster.topic("t")
    produce_in_child(cluster, service, topic)
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=produce_in_child, args=(cluster, service, topic)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    nonces = [message.value()[20:44] for message in stored(cluster, topic, 250)]
    assert len(set(nonces)) == 250
    assert len({nonce[:20] for nonce in nonces}) == 5


def asked(path: Path) -> dict[str, Any]:
    """What one worker answers at a socket."""
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with connection.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    assert b" 200 " in head.splitlines()[0]
    return dict(json.loads(body))


def test_threads_share_a_producer_and_a_consumer(cluster: Cluster, service: Service) -> None:
    """Each record is delivered once and read once, by whichever thread."""
    topic = cluster.topic("t")
    delivered: list[Any] = []
    taken: list[Any] = []

    def there(number: int) -> None:
        for count in range(250):
            producer.produce(topic, b"%d-%d" % (number, count), callback=lambda _, message: delivered.append(message))
            producer.poll(0)

    def back(number: int) -> None:
        until = time.monotonic() + 30
        while len(taken) < 2000 and time.monotonic() < until:
            found = [consumer.poll(0.1)] if number % 2 else consumer.consume(100, 0.1)
            taken.extend(message for message in found if message is not None)

    with ThreadPoolExecutor(8) as threads:
        producer = producer_for(cluster, service)
        list(threads.map(there, range(8)))
        producer.flush()
        producer.close()
        with closing(Consumer({**group_settings(cluster), **service.settings("consumer")})) as consumer:
            consumer.subscribe([topic])
            list(threads.map(back, range(4)))
            values = sorted(message.value() for message in taken)
    assert values == sorted(message.value() for message in delivered)
    assert values == sorted(b"%d-%d" % (number, count) for number in range(8) for count in range(250))


def test_gunicorns_workers_repeat_no_nonce(service: Service, tmp_path: Path) -> None:
    """CL-ENV-035: with the application loaded, and its encryptor used, before the workers are forked."""
    path = tmp_path / "http"
    command = ["-m", "gunicorn", "--preload", "--workers", "4", "--bind", f"unix:{path}", "prefork_application"]
    tests = str(Path(__file__).parents[1])
    settings = {"PYTHONPATH": tests, "PREFORK_SETTINGS": json.dumps(service.settings("producer"))}
    server = subprocess.Popen([sys.executable, *command], env={**os.environ, **settings}, cwd=tmp_path)
    try:
        eventually(lambda: path.exists() or server.poll() is not None, 30)
        with ThreadPoolExecutor(4) as clients:
            answers = list(clients.map(asked, [path] * 60))
    finally:
        server.terminate()
        server.wait(30)
    workers = {answer["pid"] for answer in answers}
    nonces = [nonce for answer in answers for nonce in answer["nonces"]] + [answers[0]["parent"]]
    assert len(workers) == 4
    assert len(set(nonces)) == 60 * 50 + 1
    assert len({nonce[:40] for nonce in nonces}) == 5
