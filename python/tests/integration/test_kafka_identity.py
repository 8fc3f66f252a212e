"""Kafka over mutual TLS with certificates of ten seconds that the key service issues, read and written by aiokafka."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any, Optional

import pytest
from aiokafka.errors import KafkaConnectionError

from cipherlane import CipherlaneError, ConfigurationError
from cipherlane.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from cipherlane.configuration import Configuration
from cipherlane.keyservice import identity
from processes import Cluster, Service
from processes import bootstrapped as settings


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


@pytest.mark.parametrize(
    ("ids", "met"), [("*", True), ("operator", True), ("**", True), ("brokers/**", False), ("op", False)]
)
def test_who_a_broker_must_be(ids: str, *, met: bool, issuing: Service, secured: Cluster, tmp_path: Path) -> None:
    """CL-TLS-011: the broker's certificate names the operator."""
    given = settings(
        issuing, "producer", tmp_path, tls_peer_ids=f"spiffe://else.where/*, spiffe://dev.cipherlane/{ids}"
    )

    async def start() -> None:
        own: dict[str, Any] = {"bootstrap_servers": secured.listeners["TLS"], "security_protocol": "SSL"}
        producer = AIOKafkaProducer(cipherlane=given, **own)
        try:
            await producer.start()
        finally:
            await producer.stop()

    if met:
        asyncio.run(start())
    else:
        with pytest.raises(KafkaConnectionError):
            asyncio.run(start())


@pytest.mark.parametrize("own", [{}, {"security_protocol": "SSL", "ssl_context": ssl.create_default_context()}])
def test_peers_that_could_not_be_looked_at_are_refused(own: dict[str, Any], issuing: Service, tmp_path: Path) -> None:
    """CL-TLS-012."""
    given = settings(issuing, "producer", tmp_path, tls_peer_ids="spiffe://dev.cipherlane/*")

    async def make() -> None:
        AIOKafkaProducer(cipherlane=given, bootstrap_servers="127.0.0.1:1", **own)

    with pytest.raises(ConfigurationError, match=r"tls\.peer\.ids: needs"):
        asyncio.run(make())
