"""Kafka over mutual TLS with certificates of ten seconds that the key service issues, read and written by aiokafka."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from pathlib import Path
from typing import Any, Iterator, Optional

import confluent_kafka
import pytest
from aiokafka.errors import KafkaConnectionError

from cipherlane import CipherlaneError
from cipherlane.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from cipherlane.configuration import Configuration
from cipherlane.confluent import Consumer, Producer
from cipherlane.keyservice import identity
from processes import Cluster, Service, end, start_cluster, start_issuing_service


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = start_issuing_service(tmp_path_factory.mktemp("issuing"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def secured(issuing: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its TLS listener wants a certificate of the key service's CA, and closes connections that rest for 2 seconds."""
    folder, made = tmp_path_factory.mktemp("broker"), issuing.server_certificate()
    (folder / "server.pem").write_text(made["key"] + made["certificate"])
    (folder / "ca.pem").write_text(made["ca"])
    (folder / "server.pem").chmod(0o600)
    prefix = "listener.name.tls.ssl"
    given = {
        f"{prefix}.keystore.type": "PEM",
        f"{prefix}.keystore.location": str(folder / "server.pem"),
        f"{prefix}.truststore.type": "PEM",
        f"{prefix}.truststore.location": str(folder / "ca.pem"),
        f"{prefix}.client.auth": "required",
        "connections.max.idle.ms": "2000",
    }
    options = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
    running, process = start_cluster("--listener", "TLS:SSL", *options)
    yield running
    end(process)


def settings(service: Service, principal: str, folder: Path) -> dict[str, Any]:
    (folder / principal).write_text(service.token(principal))
    given = service.settings(principal, identity_token_file=str(folder / principal))
    return {name: value for name, value in given.items() if not name.endswith(("tls.certificate", "tls.key"))}


def serial(given: dict[str, Any]) -> Optional[int]:
    issued = identity.shared(Configuration.from_settings(given)).held().issued
    return issued and issued.leaf.serial_number


def test_new_connections_show_the_certificate_in_use(issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    """CL-IDN-034: no message is lost or repeated, though the first certificates end and connections are closed."""
    topic = secured.topic("t")
    own: dict[str, Any] = {"bootstrap_servers": secured.listeners["TLS"], "security_protocol": "SSL"}
    writing, reading = (settings(issuing, principal, tmp_path) for principal in ("producer", "consumer"))

    async def run() -> list[bytes]:
        producer = AIOKafkaProducer(cipherlane=writing, enable_idempotence=True, **own)
        consumer = AIOKafkaConsumer(topic, cipherlane=reading, group_id=None, auto_offset_reset="earliest", **own)
        found: list[bytes] = []
        async with producer, consumer:
            serials: set[Optional[int]] = set()
            until = time.monotonic() + 18
            while time.monotonic() < until:
                await producer.send_and_wait(topic, b"%d" % len(found))
                found.append((await consumer.getone()).value)
                serials.add(serial(writing))
                await asyncio.sleep(3)  # in which the broker closes the connections
        assert len(serials) >= 2
        return found

    found = asyncio.run(run())
    assert found == [b"%d" % index for index in range(len(found))]
    assert len(found) >= 4


def test_without_a_certificate_nothing_is_connected(issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    """CL-IDN-036."""
    given = settings(issuing, "producer", tmp_path)
    used = identity.shared(Configuration.from_settings(given))
    used.held()
    context = identity.PeerContext(used)

    async def connect() -> None:
        host, port = secured.listeners["TLS"].rsplit(":", 1)
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.close()
        await writer.wait_closed()

    asyncio.run(connect())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(used, "_current", lambda: None)
        with pytest.raises(OSError, match="certificate verify failed"):
            asyncio.run(connect())


def test_a_token_that_was_used_starts_no_client(issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    given = settings(issuing, "producer", tmp_path)
    identity.shared(Configuration.from_settings(given)).held()
    (tmp_path / "copy").write_text((tmp_path / "producer").read_text())
    refused = {**given, "cipherlane.identity.token.file": str(tmp_path / "copy")}

    async def start() -> None:
        own: dict[str, Any] = {"bootstrap_servers": secured.listeners["TLS"], "security_protocol": "SSL"}
        producer = AIOKafkaProducer(cipherlane=refused, **own)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(CipherlaneError, match="put a new bootstrap token"):
        asyncio.run(start())


def test_a_context_of_the_application_stays(issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    given = settings(issuing, "producer", tmp_path)

    async def start() -> None:
        own: dict[str, Any] = {"bootstrap_servers": secured.listeners["TLS"], "security_protocol": "SSL"}
        producer = AIOKafkaProducer(cipherlane=given, ssl_context=ssl.create_default_context(), **own)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(KafkaConnectionError):
        asyncio.run(start())


@pytest.mark.parametrize("client", [Producer, Consumer])
def test_confluent_kafka_says_that_it_shows_no_certificate(
    client: Any, issuing: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers would refuse it without a word of why; with a certificate of its own nothing is said."""
    given = settings(issuing, "producer", tmp_path)
    own = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
    shown = {"security.protocol": "SSL", "ssl.certificate.location": "/nowhere"}
    for more, warned in [
        ({"security.protocol": "SSL"}, 1),
        (shown, 0),
        ({}, 0),
        ({"security.protocol": "sasl_ssl"}, 0),
    ]:
        caplog.clear()
        with contextlib.suppress(confluent_kafka.KafkaException):  # of the certificate that is nowhere
            client({**own, **more, **given}).close()
        said = [record for record in caplog.records if "is shown no certificate" in record.getMessage()]
        assert len(said) == warned, more
