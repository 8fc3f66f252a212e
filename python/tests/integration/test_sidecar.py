"""Clients without an SDK behind a sidecar that encrypts, and this SDK on the other side of the broker."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path
from typing import Any, Iterator

import confluent_kafka
import pytest

from cipherlane import DecryptionError
from cipherlane.confluent import Consumer, Producer
from processes import (
    KEY_SERVICE,
    Cluster,
    Service,
    closing,
    end,
    group_settings,
    needed,
    poll_all,
    start,
    start_service,
)

SIDECAR = KEY_SERVICE.with_name("cipherlane-sidecar")

POLICY = """\
version: 1
topics:
  - topics: ["claims-*", "bound-*"]
    mode: encrypt
    scope: claims
grants:
  - principals: ["spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer"]
    actions: [encrypt, decrypt]
    topics: ["claims-*", "bound-*"]
"""

# Null, empty, one that looks like an envelope, one that is worth compressing and one that is not.
VALUES = [b"canary", None, b"", b"\xc1\x9e\x01 looks like one", b"canary " * 10_000, os.urandom(100_000)]

both_topics = pytest.mark.parametrize("prefix", ["claims", "bound"])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = start_service(tmp_path_factory.mktemp("keyservice"), POLICY)
    yield running
    running.close()


def free_base() -> int:
    """A port before nine that are free, below those that outgoing connections take."""
    for _ in range(100):
        base = random.randrange(20_000, 32_000)
        try:
            for port in range(base, base + 10):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return base
    raise AssertionError("no range of free ports")


def start_sidecar(folder: Path, side: str, upstream: str, own: tuple[Any, Any], ca: str, more: str = "") -> Any:
    file = folder / f"{side}.yaml"
    file.write_text(
        f"side: {side}\n"
        f"kafka: {{listen: '127.0.0.1:0', upstream: ['{upstream}'], brokers: {{base_port: {free_base()}}}}}\n"
        "admin_listen: 127.0.0.1:0\nlog: {level: error}\n"
        f"tls: {{ca: '{ca}', certificate: '{own[0]}', key: '{own[1]}'}}\n{more}",
        encoding="utf-8",
    )
    file.chmod(0o600)
    command = [str(needed(SIDECAR, "make -C keyservice build")), "run", "--json", "--until-stdin-closes"]
    return start([*command, "--config", str(file)])


@pytest.fixture(scope="module")
def bootstrap(cluster: Cluster, service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where clients without an SDK connect to: a sidecar that encrypts, and one beside the broker."""
    folder, ca, own = tmp_path_factory.mktemp("sidecars"), service.described["ca"], service.described["principals"]
    server = (service.folder / "server.pem", service.folder / "server-key.pem")
    payload = f"payload: {{urls: ['{service.described['url']}'], ca: '{ca}', record_key_topics: ['bound-*']}}\n"
    far, far_process = start_sidecar(folder, "broker", cluster.bootstrap, server, ca)
    try:
        client = (own["producer"]["certificate"], own["producer"]["key"])
        near, near_process = start_sidecar(folder, "client", far["kafka"], client, ca, payload)
        yield near["kafka"]
        end(near_process)
    finally:
        end(far_process)


def produce(producer: Any, topic: str) -> None:
    failures: list[Any] = []
    for number, value in enumerate(VALUES):
        producer.produce(
            topic, value, key=str(number) if number else None, headers=[("h", b"1")],
            on_delivery=lambda error, _: failures.append(error),
        )  # fmt: skip
    assert producer.flush(30) == 0
    assert failures == [None] * len(VALUES)


def through_sidecar(cluster: Cluster, bootstrap: str) -> Any:
    return confluent_kafka.Consumer({**group_settings(cluster), "bootstrap.servers": bootstrap})


def with_sdk(cluster: Cluster, service: Service) -> Any:
    return Consumer({**group_settings(cluster), **service.settings("consumer")})


def read(consumer: Any, topic: str, count: int) -> list[Any]:
    with closing(consumer):
        consumer.subscribe([topic])
        return poll_all(consumer, count)


def stored(cluster: Cluster, topic: str) -> list[Any]:
    """What lies on the broker: envelopes and null."""
    messages = read(confluent_kafka.Consumer(group_settings(cluster)), topic, len(VALUES))
    assert [message.value() is None for message in messages] == [value is None for value in VALUES]
    assert all(message.value()[:3] == b"\xc1\x9e\x01" for message in messages if message.value() is not None)
    return messages


def assert_all(messages: list[Any]) -> None:
    assert [message.error() for message in messages] == [None] * len(VALUES)
    assert [message.value() for message in messages] == VALUES
    assert [message.key() for message in messages] == [None, *(str(n).encode() for n in range(1, len(VALUES)))]
    assert all(message.headers() == [("h", b"1")] for message in messages)


@both_topics
def test_the_sdk_reads_what_an_unmodified_client_wrote(
    cluster: Cluster, service: Service, bootstrap: str, prefix: str
) -> None:
    """CL-SDC-100, CL-SDC-103: whatever the value is, and bound to its record key where the configuration says so."""
    topic = cluster.topic(prefix)
    produce(confluent_kafka.Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"}), topic)
    assert [m.value()[3] & 4 == 4 for m in stored(cluster, topic) if m.value()] == [prefix == "bound"] * 5
    assert_all(read(with_sdk(cluster, service), topic, len(VALUES)))


@both_topics
def test_an_unmodified_client_reads_what_the_sdk_wrote(
    cluster: Cluster, service: Service, bootstrap: str, prefix: str
) -> None:
    """CL-SDC-101: also what the SDK compressed before it encrypted, and what it bound to the record key."""
    topic = cluster.topic(prefix)
    chosen = service.settings("producer", compression_topics="*", record_key_topics="bound-*")
    with Producer({"bootstrap.servers": cluster.bootstrap, **chosen}) as producer:
        produce(producer, topic)
    assert any(m.value()[3] & 3 for m in stored(cluster, topic) if m.value())
    assert_all(read(through_sidecar(cluster, bootstrap), topic, len(VALUES)))


def changed(value: bytes) -> bytes:
    return value[:-1] + bytes([value[-1] ^ 1])


@pytest.mark.parametrize(
    ("key", "damage", "code"),
    [
        ("1", changed, "authentication-failed"),
        ("another", bytes, "authentication-failed"),
        ("1", lambda value: value[:59], "envelope-too-short"),
        ("1", lambda _: b"injected plaintext", "plaintext-rejected"),
    ],
    ids=["changed", "beside another key", "cut", "plaintext"],
)  # fmt: skip
def test_both_refuse_the_same(
    cluster: Cluster, service: Service, bootstrap: str, key: str, damage: Any, code: str
) -> None:
    """CL-SDC-101, CL-SDC-107: what the SDK refuses, the sidecar refuses too; its client gets an error, and no value."""
    written, topic = cluster.topic("bound"), cluster.topic("bound")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    producer.produce(written, b"canary", key="1")
    assert producer.flush(30) == 0
    (envelope,) = read(confluent_kafka.Consumer(group_settings(cluster)), written, 1)
    cluster.write(topic, damage(envelope.value()), key=key)

    (refused,) = read(with_sdk(cluster, service), topic, 1)
    with pytest.raises(DecryptionError) as raised:
        refused.value()
    assert raised.value.code == code
    (error,) = read(through_sidecar(cluster, bootstrap), topic, 1)
    assert error.error() is not None
    assert error.error().code() == confluent_kafka.KafkaError.INVALID_MSG
