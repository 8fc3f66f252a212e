"""Kafka over mutual TLS with certificates of ten seconds that the key service issues, by confluent-kafka's clients."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import confluent_kafka
import pytest

from cipherlane import ConfigurationError
from cipherlane.cli import main
from cipherlane.configuration import Configuration
from cipherlane.confluent import Consumer, Producer, transport
from cipherlane.confluent.admin import AdminClient
from cipherlane.confluent.aio import AIOConsumer, AIOProducer
from processes import Cluster, Service, bootstrapped, poll_all

pytestmark = pytest.mark.skipif(tuple(sys.version_info) < (3, 11), reason="cipherlane-native is for newer ones")

QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


@pytest.fixture
def writing(issuing: Service, secured: Cluster, tmp_path: Path) -> dict[str, Any]:
    own = {"bootstrap.servers": secured.listeners["TLS"], "security.protocol": "SSL", "message.timeout.ms": 10_000}
    return {**own, **QUICK, **bootstrapped(issuing, "producer", tmp_path)}


@pytest.fixture
def reading(issuing: Service, secured: Cluster, tmp_path: Path) -> dict[str, Any]:
    own = {"bootstrap.servers": secured.listeners["TLS"], "security.protocol": "SSL"}
    group = {"group.id": "tls", "auto.offset.reset": "earliest"}
    return {**own, **group, **QUICK, **bootstrapped(issuing, "consumer", tmp_path)}


@contextlib.contextmanager
def warned(caplog: pytest.LogCaptureFixture, times: int) -> Iterator[None]:
    caplog.clear()
    yield
    assert sum("is not shown to Kafka" in record.getMessage() for record in caplog.records) == times


def test_certificates_come_and_go(
    writing: dict[str, Any], reading: dict[str, Any], issuing: Service, secured: Cluster
) -> None:
    """CL-TLS-010: the same clients go on for more than two certificates; nothing is lost, doubled or out of order."""
    topic = secured.topic("t")
    delivered: list[Any] = []
    found: list[bytes] = []
    before = issued(issuing)
    producer, consumer = Producer({**writing, "enable.idempotence": True}), Consumer(reading)
    consumer.subscribe([topic])
    sent, until = 0, time.monotonic() + 24
    while time.monotonic() < until:
        producer.produce(topic, b"%d" % sent, on_delivery=lambda error, _message: delivered.append(error))
        sent += 1
        producer.poll(0)
        found += values(consumer.consume(100, 0.01))
    assert producer.flush(15) == 0
    until = time.monotonic() + 20
    while len(found) < sent and time.monotonic() < until:
        found += values(consumer.consume(100, 0.2))
    consumer.close()
    assert delivered == [None] * sent
    assert found == [b"%d" % index for index in range(sent)]
    assert sent > 500
    assert issued(issuing) - before >= 6  # three for each


def test_asyncio(writing: dict[str, Any], reading: dict[str, Any], secured: Cluster) -> None:
    topic = secured.topic("t")

    async def run() -> Any:
        producer, consumer = AIOProducer(writing), AIOConsumer(reading)
        await consumer.subscribe([topic])
        await (await producer.produce(topic, b"canary"))
        message = await consumer.poll(30)
        await producer.close()
        await consumer.close()
        return message.value()

    assert asyncio.run(run()) == b"canary"


def test_topics_and_groups(reading: dict[str, Any], secured: Cluster) -> None:
    topic = secured.topic("t")
    admin = AdminClient(
        {name: value for name, value in reading.items() if name not in {"group.id", "auto.offset.reset"}}
    )
    assert topic in admin.list_topics(timeout=15).topics
    with pytest.raises(ConfigurationError):
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "cipherlane.keyservice.urls": "https://127.0.0.1:1"})


def test_dead_letters_go_the_same_way(writing: dict[str, Any], reading: dict[str, Any], secured: Cluster) -> None:
    topic, letters = secured.topic("t"), secured.topic("letters")
    secured.write(topic, b"no envelope")
    producer = Producer(writing)
    producer.produce(topic, b"canary")
    assert producer.flush(15) == 0
    consumer = Consumer(
        {**reading, "cipherlane.failure.action": "dead-letter", "cipherlane.dead.letter.topic": letters}
    )
    consumer.subscribe([topic])
    assert [message.value() for message in poll_all(consumer, 1)] == [b"canary"]
    assert consumer.cipherlane_numbers()["dead_lettered_total"] == 1
    consumer.close()


@pytest.mark.parametrize(("ids", "met"), [("*", True), ("brokers/**", False), ("op", False)])
def test_who_a_broker_must_be(
    ids: str, *, met: bool, writing: dict[str, Any], secured: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """CL-TLS-011: the broker's certificate names the operator; why a peer was refused stands in librdkafka's log."""
    topic = secured.topic("t")
    peers = {"cipherlane.tls.peer.ids": f"spiffe://else.where/*,spiffe://dev.cipherlane/{ids}"}
    assert arrives({**writing, **peers}, topic) is met
    assert ("names none of cipherlane.tls.peer.ids" in capfd.readouterr().err) is not met


def test_a_host_with_another_name(writing: dict[str, Any], secured: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    """CL-TLS-011: the certificate is for 127.0.0.1; the name is not looked at where the settings say so."""
    topic = secured.topic("t")
    named = {"bootstrap.servers": secured.listeners["TLS"].replace("127.0.0.1", "localhost")}
    for chosen, met in (({}, False), ({"algorithm": None}, False), ({"algorithm": "none"}, True)):
        more = {f"ssl.endpoint.identification.{name}": value for name, value in chosen.items()}
        assert arrives({**writing, **named, **more}, topic) is met
        assert ("hostname mismatch" in capfd.readouterr().err) is not met


def test_doctor(reading: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Kafka is asked under the certificate that the key service issues, as a client would ask."""
    refusing = {"cipherlane.tls.peer.ids": "spiffe://dev.cipherlane/brokers/**"}
    kept_by_nobody = {**refusing, "security.protocol": "plaintext"}
    for more, words, use in (
        ({}, "was not sent, because it is good once, and Kafka was not asked", []),
        ({}, f"Kafka at {reading['bootstrap.servers']} answers: 1 broker(s)", ["--use-token"]),
        (refusing, "TLS was refused, of which a line CIPHERLANE says why", ["--use-token"]),
        (kept_by_nobody, "cipherlane.tls.peer.ids: needs", ["--use-token"]),
    ):
        file = tmp_path / "client.json"
        file.write_text(json.dumps({**reading, **more}))
        code = main(["doctor", str(file), *use])
        said = capfd.readouterr()
        assert words in said.out
        assert code == (1 if more else 0)
        assert ("names none of cipherlane.tls.peer.ids" in said.err) is (more is refusing)


def test_what_is_of_a_client_goes_with_it(writing: dict[str, Any]) -> None:
    """Threads and descriptors; also of a client that could not be made, before and after librdkafka took it over."""
    for _ in range(2):  # the first time some things are made that stay
        before = in_use()
        for _ in range(5):
            producer = Producer(writing)
            producer.poll(0.1)
            producer.close()
            for wrong in ({"no.such.setting": 1}, {"compression.codec": "none-such"}, {"batch.size": 0}):
                with pytest.raises(confluent_kafka.KafkaException):
                    Producer({**writing, **wrong})
        del producer
        gc.collect()
    assert in_use() == before


LEFT_OPEN = """
import json, sys
from cipherlane.confluent import Consumer, Producer
producer = Producer({**json.loads(sys.argv[1]), "message.timeout.ms": 5000})
consumer = Consumer({**json.loads(sys.argv[1]), "group.id": "left-open"})
consumer.subscribe([sys.argv[2]])
producer.produce(sys.argv[2], b"canary")
assert producer.flush(15) == 0
consumer.poll(0.5)
"""


def test_a_process_may_end_with_clients_open(issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    topic = secured.topic("t")
    for _ in range(3):
        given = bootstrapped(issuing, "producer", tmp_path)
        own = {"bootstrap.servers": secured.listeners["TLS"], "security.protocol": "SSL", **given}
        command = [sys.executable, "-c", LEFT_OPEN, json.dumps(own), topic]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_a_plug_in_of_the_application_stays(writing: dict[str, Any]) -> None:
    with pytest.raises(confluent_kafka.KafkaException, match="no-such-plug-in"):
        Producer({**writing, "plugin.library.paths": "/no-such-plug-in"})


def test_the_setting_between_python_and_the_plug_in_is_not_for_others(issuing: Service, tmp_path: Path) -> None:
    """It has no meaning of its own."""
    given = bootstrapped(issuing, "producer", tmp_path)
    with pytest.raises(ConfigurationError, match="no such setting"):
        Producer({**given, "cipherlane.transport": "1"})
    plugin = transport._module().__file__
    for number in ("1", "", "x", "-1", "99999999999999999999"):
        with pytest.raises(confluent_kafka.KafkaException, match="is set by cipherlane itself"):
            confluent_kafka.Producer({"plugin.library.paths": plugin, "cipherlane.transport": number})


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.ca.pem", "ssl.certificate.pem", "ssl.keystore.location"])
def test_tls_of_the_application_stays(
    name: str, issuing: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as that of a broker whose certificate is of another CA."""
    given = Configuration.from_settings(bootstrapped(issuing, "producer", tmp_path))
    own = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "sasl_ssl", name: "x"}
    with caplog.at_level("INFO"), transport.connected(given, own) as connected:
        assert connected == own
    assert f"as {name} says" in caplog.text


@pytest.mark.parametrize("client", [Producer, Consumer])
def test_it_is_said_when_no_certificate_is_shown(
    client: Any, issuing: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers would refuse the client without a word of why. Where peers could not be looked at, it is not made."""
    given = bootstrapped(issuing, "producer", tmp_path)
    own = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    shown = {"security.protocol": "SSL", "ssl.certificate.location": "/nowhere"}
    peers = {"cipherlane.tls.peer.ids": "spiffe://dev.cipherlane/*"}
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "cipherlane_native._transport", None)
        transport._module.cache_clear()
        for more, times in ((shown, 0), ({}, 0), ({"security.protocol": "SSL"}, 1)):
            with warned(caplog, times), contextlib.suppress(confluent_kafka.KafkaException):  # of the certificate
                client({**own, **more, **given}).close()
            with pytest.raises(ConfigurationError, match=r"tls\.peer\.ids: needs"):
                client({**own, **more, **given, **peers})
    transport._module.cache_clear()
    for more in (shown, {}):
        with pytest.raises(ConfigurationError, match=r"tls\.peer\.ids: needs"):
            client({**own, **more, **given, **peers})
    with warned(caplog, 0):
        plain = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
        client({**own, **plain, "security.protocol": "sasl_ssl", **given, **peers}).close()


def arrives(settings: dict[str, Any], topic: str) -> bool:
    producer = Producer({**settings, "message.timeout.ms": 3_000})
    failures: list[Any] = []
    producer.produce(topic, b"canary", on_delivery=lambda error, _message: failures.append(error))
    assert producer.flush(15) == 0
    return len(failures) == 1 and failures[0] is None  # KafkaError cannot be compared with None


def issued(service: Service) -> int:
    """Certificates that the audit log says producers and consumers were given."""
    lines = (service.folder / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    return sum('"serial"' in line and "operator" not in line for line in lines)


def values(messages: list[Any]) -> list[bytes]:
    return [message.value() for message in messages if message.error() is None]


def in_use() -> tuple[int, ...]:
    """Threads and descriptors of this process, once they are as few as they get in two seconds."""
    found = []
    for _ in range(20):
        found.append(tuple(len(list(Path("/proc/self", what).iterdir())) for what in ("task", "fd")))
        time.sleep(0.1)
    return min(found)
