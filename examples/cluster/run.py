"""Three brokers, every listener mutual TLS without a keystore; one is killed while encrypted records are written."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka
from cryptography import x509

from cluster import keyfiles
from cluster.parties import DOMAIN, Parties, key_service_folder
from demo import chapters, clients, disk, small
from demo.services import answer, child, key_service_command, running

HERE = Path(__file__).resolve().parent
COUNT = 6_000
RATE = "1000"
KILL_AT = "sent 2000"
VICTIM = 1
SANS = x509.SubjectAlternativeName
ACL_LOG = re.compile(r"Principal = (\S+) is Denied operation = (\w+)")


def shown(address: str) -> set[str]:
    """What the certificate names that a listener shows."""
    host, _, port = address.partition(":")
    certificate = x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port)), timeout=10).encode())
    return {str(name.value) for name in certificate.extensions.get_extension_for_class(SANS).value}


def listeners(cluster: dict[str, Any]) -> bool:
    """Whether each listener for clients and brokers, and each of the controllers, shows its broker's certificate."""
    holds = True
    for node in cluster["nodes"]:
        settings = (Path(node["dir"]) / "broker.properties").read_text().replace("\\", "")
        controller = re.findall(r"^listeners=.*CONTROLLER://([\d.:]+)", settings, re.MULTILINE)[0]
        for listener, address in (node["listeners"] | {"CONTROLLER": controller}).items():
            names = shown(address)
            print(f"{listener:10} {address:15} shows a certificate for {', '.join(sorted(names, reverse=True))}")
            holds &= names == {f"{DOMAIN}broker/{node['node']}", "127.0.0.1"}
    return holds


def prepare(parties: Parties, bootstrap: str) -> None:
    """Make the topic, and ACLs for the names that stand in certificates."""
    topic = ["--topic", "claims"]
    parties.tool("TopicCommand", bootstrap, "--create", *topic, "--partitions", "3", "--replication-factor", "3")
    groups = ["--group", "readers", "--group", "librdkafka"]
    for name, rights in {"producer": ["--producer"], "consumer": ["--consumer", *groups]}.items():
        principal = ["--allow-principal", f"User:{DOMAIN}{name}"]
        said = parties.tool("AclCommand", bootstrap, "--add", *principal, *rights, *topic)
        print(f"ACL for {', '.join(sorted(set(re.findall(r'User:[^, ]+', said))))}")


def produce(parties: Parties, records: list[str], cluster: dict[str, Any]) -> bool:
    """Write all records; kill a broker when a third is acknowledged."""
    properties = parties.client("producer", cluster["listeners"]["TLS"], chapters.ENCRYPT | {"acks": "all"})
    lines, log = parties.folder / "input.jsonl", parties.folder / "producer.log"
    lines.write_text("".join(f"{record}\n" for record in records))
    command = clients.java("ClaimsProducer", properties, "claims", lines, RATE)
    last = ""
    with log.open("wb") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            last = line.strip()
            if last == KILL_AT:
                os.kill(cluster["nodes"][VICTIM - 1]["pid"], signal.SIGKILL)
                print(f"{last}; broker {VICTIM} killed")
    print(f"{last}, each by two brokers at least (acks=all)")
    if run.returncode != 0:
        print(log.read_text()[-2000:], file=sys.stderr)
    return run.returncode == 0 and last == f"acknowledged {len(records)}"


def consume(parties: Parties, name: str, bootstrap: str) -> tuple[list[str], str]:
    """What a principal reads, in the order of the records' numbers, and what its program says otherwise."""
    settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
    properties = parties.client(name, bootstrap, settings | chapters.DECRYPT)
    output = parties.folder / f"{name}.txt"
    outcome = clients.run(clients.java("ClaimsConsumer", properties, "claims", str(COUNT), output))
    return in_order(output), outcome.stderr.strip()


def consume_in_python(parties: Parties, bootstrap: str) -> list[str]:
    """The same by confluent-kafka: librdkafka and OpenSSL, under a certificate that is renewed as Java's is."""
    output = parties.folder / "librdkafka.txt"
    command = clients.python_consumer(
        parties.folder, parties.librdkafka("consumer", bootstrap), "claims", COUNT, output
    )
    outcome = clients.run(command)
    if outcome.returncode != 0:
        print(outcome.stderr[-2000:], file=sys.stderr)
    return in_order(output)


def in_order(output: Path) -> list[str]:
    """The lines of a file by the records' numbers."""
    return sorted(small.lines(output), key=lambda line: int(line.split("\t")[0]))


def refused(parties: Parties, cluster: dict[str, Any]) -> bool:
    """Whether somebody with a certificate but no ACL gets nothing, and under which name the brokers refused him."""
    read, said = consume(parties, "stranger", cluster["listeners"]["TLS"])
    logs = [(Path(node["dir"]) / "broker.log").read_text() for node in cluster["nodes"]]
    seen = {match.groups() for log in logs for match in ACL_LOG.finditer(log)}
    for principal, operation in sorted(seen):
        print(f"an ACL saw {principal}: {operation} denied")
    print(f"he is told: {said.splitlines()[-1] if said else '(nothing)'}")
    open_door = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster["bootstrap"], "group.id": "readers", "log_level": 0}
    )
    visible = open_door.list_topics(timeout=20).topics
    open_door.close()
    print(f"topics that the launcher's own listener, in plaintext on the loopback, shows: {len(visible)}")
    return not read and not visible and {principal for principal, _ in seen} == {f"User:{DOMAIN}stranger"}


def come_back(parties: Parties, process: subprocess.Popen[bytes], log: Path, bootstrap: str) -> None:
    """Start the killed broker again: its key died with it, so it asks for a certificate with a new token."""
    assert process.stdin is not None
    parties.token(f"broker/{VICTIM}", f"token-broker-{VICTIM}")
    process.stdin.write(f"start {VICTIM}\n".encode())
    process.stdin.flush()
    started = answer("broker", process, log)
    if "error" in started:
        raise RuntimeError(f"broker {VICTIM} did not come back: {started['error']}")
    missing = ["--describe", "--under-replicated-partitions"]
    small.wait("full replication", lambda: None, lambda: not parties.tool("TopicCommand", bootstrap, *missing).strip())
    print(f"broker {VICTIM} is back with a new token; every partition has its three copies")


def no_keys(where: dict[str, Path], service: Path) -> bool:
    """Whether no file of brokers and clients holds a private key; the key service's folder shows that one is found."""
    holds = True
    for what, folder in where.items():
        files, found = keyfiles.search(folder)
        print(f"{what}: {files} files, private keys or keystores in {len(found)} {found or ''}".rstrip())
        holds &= files > 0 and not found
    _, found = keyfiles.search(service)
    print(f"control: the same search finds {len(found)} in the folder of the key service's laptop mode")
    return holds and len(found) > 0


def certificates(service: dict[str, Any]) -> None:
    """How many certificates each broker has had."""
    events = [json.loads(line) for line in Path(service["audit"]).read_text().splitlines()]
    given = Counter(event["principal"] for event in events if event["action"] == "certificate" and "serial" in event)
    counts = [given[f"{DOMAIN}broker/{node}"] for node in (1, 2, 3)]
    print(f"certificates given to the brokers, 30 seconds each: {counts}")


def main() -> int:
    records = small.records(COUNT)
    with tempfile.TemporaryDirectory(prefix="cipherlane-example-") as name:
        folder = Path(name)
        where = {"brokers": folder / "brokers", "clients": folder / "clients"}
        where["clients"].mkdir()
        operator, log = key_service_folder(folder / "keyservice"), folder / "brokers.log"
        with running("key service", key_service_command(operator, HERE / "policy.yaml"), folder / "ks.log") as service:
            parties = Parties(where["clients"], service, operator / "cipherlane.yaml")
            with child(parties.cluster_command(where["brokers"]), log) as process:
                cluster = answer("cluster", process, log)
                bootstrap = cluster["listeners"]["TLS"]
                print(f"three brokers, each a controller too: {bootstrap}")
                holds = listeners(cluster)
                prepare(parties, bootstrap)
                holds &= produce(parties, records, cluster)
                found, _ = consume(parties, "consumer", bootstrap)
                expected = [f"{number}\t{record}" for number, record in enumerate(records)]
                holds &= small.compare(expected, found, "records")
                print("a consumer on librdkafka, the brokers looked at by their SPIFFE ids as well:")
                holds &= small.compare(expected, consume_in_python(parties, bootstrap), "records")
                holds &= refused(parties, cluster)
                come_back(parties, process, log, bootstrap)
                certificates(service)
                holds &= no_keys(where, operator)
                stored = disk.scan(where["brokers"], disk.windows(records))
                print(
                    f"the brokers' {stored.files} files, {stored.bytes:,} bytes: plaintext at {stored.hits} positions"
                )
                holds &= stored.hits == 0
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
