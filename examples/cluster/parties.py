"""Who takes part: the key service, three brokers and their clients, each known by a certificate that it asks for."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import clients, small
from demo.operator_tasks import TOOL
from demo.services import BROKER_JAR

HERE = Path(__file__).resolve().parent
DOMAIN = "spiffe://dev.cipherlane/"
LIBRARIES = clients.ROOT / "examples/java/target/lib"
# What a broker needs on its class path beside Kafka.
PLUGINS = ":".join(f"{LIBRARIES}/{jar}" for jar in (
    "cipherlane-core-0.1.0-SNAPSHOT.jar", "cipherlane-transport-0.1.0-SNAPSHOT.jar"))  # fmt: skip
JAVA = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
KEY_SERVICE = """\
listen: 127.0.0.1:8443
tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: kek.json}}
audit: {file: audit.jsonl}
certificates: {ca: embedded, bootstrap_tokens: true}
"""


def key_service_folder(folder: Path) -> Path:
    """A folder for the key service, with a configuration that lets it take bootstrap tokens."""
    folder.mkdir(mode=0o700)
    (folder / "keyservice.yaml").write_text(KEY_SERVICE)
    return folder


def read_properties(file: Path) -> dict[str, str]:
    """The settings of a properties file, comments left out."""
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@dataclass(frozen=True)
class Parties:
    """Makes the settings of each: `folder` holds what they are given, which are tokens."""

    folder: Path
    service: dict[str, Any]
    operator: Path

    def token(self, name: str, file: str) -> Path:
        """A new bootstrap token in a file: good for one certificate of that principal, once."""
        command = [str(TOOL), "token", "create", f"{DOMAIN}{name}", "--json", "--config", str(self.operator)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
        path = self.folder / file
        path.touch(mode=0o600)
        path.write_text(str(json.loads(answer)["token"]))
        return path

    def _identity(self, token: str) -> dict[str, str]:
        return {
            "cipherlane.keyservice.urls": self.service["url"],
            "cipherlane.keyservice.tls.ca": self.service["ca"],
            "cipherlane.identity.token.file": token,
        } | small.PATIENT

    def cluster_command(self, folder: Path) -> list[str]:
        """The command of three brokers that are controllers too; the token of each has its id in its name."""
        for node in (1, 2, 3):
            self.token(f"broker/{node}", f"token-broker-{node}")
        settings = read_properties(HERE / "broker.properties")
        settings |= self._identity(f"{self.folder}/token-broker-{{node}}")
        command = [*JAVA, "-cp", f"{BROKER_JAR}:{PLUGINS}", "dev.cipherlane.broker.Main", "--until-stdin-closes"]
        command += ["--cluster", "3", "--dir", str(folder), "--listener", "TLS:SSL", "--listener", "CONTROLLER:SSL"]
        return [*command, *(option for pair in settings.items() for option in ("--set", "=".join(pair)))]

    def client(self, name: str, bootstrap: str, more: dict[str, str] | None = None) -> Path:
        """The properties file of a client, with a token of its own."""
        settings = read_properties(HERE / "client.properties") | {"bootstrap.servers": bootstrap}
        settings |= self._identity(str(self.token(name, f"token-{name}"))) | (more or {})
        return clients.write_properties(self.folder / f"{name}.properties", settings)

    def librdkafka(self, name: str, bootstrap: str) -> dict[str, str]:
        """The settings of a consumer on librdkafka, with a token of its own; no file holds its key either."""
        peers = read_properties(HERE / "client.properties")["cipherlane.tls.peer.ids"]
        own = {"bootstrap.servers": bootstrap, "security.protocol": "ssl", "cipherlane.tls.peer.ids": peers}
        group = {"group.id": "librdkafka", "auto.offset.reset": "earliest"}
        return own | group | self._identity(str(self.token(name, "token-librdkafka")))

    def tool(self, name: str, bootstrap: str, *arguments: str) -> str:
        """What one of Kafka's own tools says, run by the operator over the same mutual TLS."""
        command = [*JAVA, "-cp", f"{BROKER_JAR.parent}/lib/*:{PLUGINS}", f"org.apache.kafka.tools.{name}"]
        command += ["--bootstrap-server", bootstrap, "--command-config", str(self.client("operator", bootstrap))]
        outcome = clients.run([*command, *arguments])
        if outcome.returncode != 0:
            raise RuntimeError(f"{name} failed: {outcome.stdout[-1000:]}{outcome.stderr[-1000:]}")
        return outcome.stdout
