"""What an operator does in the demo: rotate a key, read the audit log, look at stored records without keys."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import confluent_kafka
from cipherlane import envelope

TIMEOUT_SECONDS = 30
TOOL = Path(__file__).resolve().parents[2] / "keyservice/build/bin/cipherlane"
FOUND = 3  # the exit code of a scan that found what it should not


class RotationRefusedError(RuntimeError):
    """The key service did not rotate; the message has its code and reason."""


def rotate(service: dict[str, Any], scope: str) -> str:
    """Make a new data key for a scope (spec/key-service.md); return its key id, or raise RotationRefusedError."""
    files = service["principals"]["operator"]
    context = ssl.create_default_context(cafile=service["ca"])
    context.load_cert_chain(files["certificate"], files["key"])
    url = urlsplit(service["url"])
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", f"/v1/scopes/{scope}/rotate", "{}", {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.load(response)
    finally:
        connection.close()
    if response.status != 200:
        raise RotationRefusedError(f"{answer.get('code')}: {answer.get('detail')}")
    return str(answer["kid"])


def last_refusal(audit: Path) -> str:
    """The last line of the audit log that records a refusal."""
    refusals = [line for line in audit.read_text().splitlines() if "not-authorized" in line]
    return refusals[-1] if refusals else "(no refusal on record)"


def key_id(value: bytes) -> str:
    """The key id of an envelope, as the SDK's own parser reads it."""
    return envelope.parse(value).kid.hex() if envelope.is_envelope(value) else "(none: plaintext)"


def scan(service: dict[str, Any], bootstrap: str, topic: str) -> subprocess.CompletedProcess[str]:
    """Count what a topic holds, and try to decrypt it, as the consumer that the policy knows."""
    files = service["principals"]["consumer"]
    identity = [
        "--url",
        service["url"],
        "--ca",
        service["ca"],
        "--certificate",
        files["certificate"],
        "--key",
        files["key"],
    ]
    return _tool("scan", topic, "--bootstrap", bootstrap, "--decrypt", *identity)


def verify_audit(audit: Path) -> subprocess.CompletedProcess[str]:
    """Check that the audit log is whole."""
    return _tool("audit", "verify", str(audit))


def _tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(TOOL), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def stored_values(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read values with a plain consumer, as they are stored; give up when nothing comes for 30 s."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "without-keys", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    values: list[bytes] = []
    try:
        consumer.subscribe([topic])
        while len(values) < count and (messages := consumer.consume(min(1000, count - len(values)), TIMEOUT_SECONDS)):
            values.extend(message.value() or b"" for message in messages if message.error() is None)
    finally:
        consumer.close()
    return values
