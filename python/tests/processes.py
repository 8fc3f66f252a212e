"""A real broker and a real key service as child processes, which end when their standard input closes."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import ssl
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Iterator, Optional

import confluent_kafka
import pytest
import urllib3
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hostile import pem
from support import REPOSITORY

BROKER = REPOSITORY / "java" / "broker" / "target" / "cipherlane-broker.jar"
KEY_SERVICE = REPOSITORY / "keyservice" / "build" / "bin" / "cipherlane-keyservice"

POLICY = """\
version: 1
lease: {expires_in: 5m}
topics:
  - topics: ["claims-*"]
    mode: encrypt
    scope: claims
  - topics: ["migrating-*"]
    mode: encrypt
    plaintext: accept
  - topics: ["clear-*"]
    mode: clear
  - topics: ["forbidden-*"]
    mode: forbid
  - topics: ["short-*"]
    mode: encrypt
  - topics: ["t-*", "closed-*"]
    mode: encrypt
grants:
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [decrypt]
    topics: ["short-*"]
    lease: {expires_in: 2s, refresh_in: 1s}
  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [decrypt]
    topics: ["t-*", "claims-*", "migrating-*", "clear-*", "forbidden-*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate]
    scopes: ["*"]
"""


class Service:
    """A key service that runs, and the settings for its clients."""

    def __init__(self, folder: Path, described: dict[str, Any], process: subprocess.Popen[str]) -> None:
        self.folder = folder
        self.described = described
        self.process = process

    def settings(self, principal: str, **more: Any) -> dict[str, Any]:
        files = self.described["principals"][principal]
        return {
            "cipherlane.keyservice.urls": self.described["url"],
            "cipherlane.keyservice.tls.ca": self.described["ca"],
            "cipherlane.keyservice.tls.certificate": files["certificate"],
            "cipherlane.keyservice.tls.key": files["key"],
            **{"cipherlane." + name.replace("_", "."): value for name, value in more.items()},
        }

    def rotate(self, scope: str) -> None:
        """Makes a new data key for a scope, as the operator."""
        self._operate(f"/v1/scopes/{scope}/rotate")

    def token(self, principal: str) -> str:
        """A bootstrap token, made by the operator."""
        made = self._operate("/v1/tokens", {"principal": f"spiffe://dev.cipherlane/{principal}", "expires_in": 600})
        return str(made["token"])

    def server_certificate(self) -> dict[str, Any]:
        """A certificate for a server at 127.0.0.1, with its key and the CAs, all in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = (
            x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).add_extension(names, critical=False)
        )
        request = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
        return {**self._operate("/v1/certificate", {"csr": request}), "key": pem(key).decode()}

    def _operate(self, path: str, body: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        files = self.described["principals"]["operator"]
        context = ssl.create_default_context(cafile=self.described["ca"])
        context.load_cert_chain(files["certificate"], files["key"])
        answer = urllib3.PoolManager(ssl_context=context).request(
            "POST",
            self.described["url"] + path,
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer.data
        return dict(json.loads(answer.data))

    def close(self) -> None:
        """Stops it. May be called again."""
        end(self.process)


class Cluster:
    """A broker that runs."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.bootstrap: str = described["bootstrap"]
        self.listeners: dict[str, str] = described.get("listeners", {})
        self.log_dir = Path(described["log_dir"])

    def topic(self, prefix: str, partitions: int = 1) -> str:
        """Makes a topic whose name nobody else uses."""
        name = f"{prefix}-{uuid.uuid4().hex[:12]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)
        return name

    def write(self, topic: str, *values: Any, partition: int = 0, key: Any = None) -> None:
        """Writes bytes as they are, with confluent-kafka's own producer."""
        failures: list[Any] = []
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(
                topic, value=value, key=key, partition=partition, on_delivery=lambda error, _: failures.append(error)
            )
        assert producer.flush(30) == 0
        assert failures == [None] * len(values)


def start(command: list[str]) -> tuple[dict[str, Any], subprocess.Popen[str]]:
    """Starts a child that says in one line of JSON when it is ready."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        end(process)
        pytest.fail(f"{command[0]} did not start")
    return json.loads(line), process


def start_cluster(*more: str) -> tuple[Cluster, subprocess.Popen[str]]:
    jar = needed(BROKER, "mvn -B -ntp -q -pl broker -am package -DskipTests, in java/")
    quick = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={tempfile.gettempdir()}"]
    described, process = start(["java", *quick, "-jar", str(jar), "--until-stdin-closes", *more])
    return Cluster(described), process


def end(process: subprocess.Popen[str]) -> None:
    """Closes standard input, which ends the child; kills it if it does not end."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def needed(path: Path, how: str) -> Path:
    if not path.exists():
        pytest.fail(f"{path.relative_to(REPOSITORY)} is missing: {how}")
    return path


IDENTITY_POLICY = (
    POLICY
    + """\
  - principals: ["spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer"]
    actions: [certificate]
    lifetime: 10s
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [admin]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [certificate]
    server_names: ["127.0.0.1"]
"""
)


def start_issuing_service(folder: Path, sections: str = "") -> Service:
    """A key service that gives certificates of ten seconds' life, also for bootstrap tokens."""
    start_service(folder, IDENTITY_POLICY).close()  # makes the folder
    settings = folder / "keyservice.yaml"
    text = settings.read_text(encoding="utf-8")
    assert text.count("  ca: embedded ") == 1
    text = text.replace("  ca: embedded ", "  bootstrap_tokens: true\n  ca: embedded ")
    settings.write_text(text + sections, encoding="utf-8")
    return start_service(folder, IDENTITY_POLICY)


def bootstrapped(service: Service, principal: str, folder: Path, **more: Any) -> dict[str, Any]:
    """The settings of a client that begins with a bootstrap token."""
    (folder / principal).write_text(service.token(principal))
    given = service.settings(principal, identity_token_file=str(folder / principal), **more)
    return {name: value for name, value in given.items() if not name.endswith(("tls.certificate", "tls.key"))}


def start_service(folder: Path, policy: str = POLICY) -> Service:
    folder.mkdir(mode=0o700, exist_ok=True)
    policy_file = folder / "policy-under-test.yaml"
    policy_file.write_text(policy, encoding="utf-8")
    command = [str(needed(KEY_SERVICE, "make -C keyservice build")), "dev", "--json", "--until-stdin-closes"]
    described, process = start([*command, "--dir", str(folder), "--policy", str(policy_file), "--log-level", "error"])
    return Service(folder, described, process)


def poll_all(consumer: Any, count: int, seconds: float = 30) -> list[Any]:
    """Polls until so many messages came."""
    messages: list[Any] = []
    until = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None:
            messages.append(message)
    assert len(messages) == count
    return messages


def consume_all(consumer: Any, count: int, seconds: float = 30) -> list[Any]:
    """The same, with as few calls of ``consume`` as it takes."""
    messages: list[Any] = []
    until = time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < until:
        messages += consumer.consume(count - len(messages), 2.0)
    assert len(messages) == count
    return messages


@contextlib.contextmanager
def closing(client: Any) -> Iterator[Any]:
    try:
        yield client
    finally:
        client.close()


def group_settings(cluster: Cluster, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": f"g-{os.urandom(6).hex()}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **more,
    }
