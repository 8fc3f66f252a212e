"""An unmodified client and broker with a sidecar beside each, everything on: what is read, refused and recorded."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from string import Template
from typing import Any

import confluent_kafka
from cipherlane import envelope

from cluster.parties import DOMAIN, Parties, key_service_folder
from demo import disk, operator_tasks, small
from demo.services import ROOT, broker_command, key_service_command, running
from sidecar.tap import Tap

HERE = Path(__file__).resolve().parent
SIDECAR = ROOT / "keyservice/build/bin/cipherlane-sidecar"
COUNT = 500
RIGHT = "actions: [read, write]"
BROKER_ID = 1
READ_ALL = ("-C", "-o", "beginning", "-e")


@contextmanager
def sidecar(parties: Parties, side: str, **known: object) -> Iterator[dict[str, Any]]:
    """Run the sidecar of one side with its configuration; yield the addresses that it listens on."""
    name = f"{side}-side"
    token = parties.token(f"sidecar/{side}", f"token-{name}")
    file = parties.folder / f"{name}.yaml"
    known |= {"key_service": parties.service["url"], "ca": parties.service["ca"], "token": token}
    file.write_text(Template((HERE / file.name).read_text()).substitute(known))
    command = [str(SIDECAR), "run", "--config", str(file), "--json", "--until-stdin-closes"]
    with running(name, command, parties.folder / f"{name}.log") as addresses:
        small.wait(f"certificate of the {name}", lambda: None, lambda: ready(addresses["admin"]))
        yield addresses


def ready(admin: str) -> bool:
    """Whether a sidecar says that it has a certificate that holds."""
    try:
        with urllib.request.urlopen(f"http://{admin}/readyz", timeout=10) as answer:
            return int(answer.status) == HTTPStatus.OK
    except urllib.error.HTTPError:
        return False


def top(parties: Parties) -> str:
    """What `cipherlane top` shows the operator now."""
    command = [str(operator_tasks.TOOL), "top", "--once", "--config", str(parties.operator)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def kcat(bootstrap: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    """An ordinary Kafka client, which speaks plaintext."""
    command = ["kcat", "-q", "-b", bootstrap, "-t", "claims", *arguments]
    return subprocess.run(command, check=False, input=lines, capture_output=True, text=True, timeout=120)


def successful(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that kcat gave, if it did not fail."""
    if done.returncode != 0:
        raise RuntimeError(f"kcat failed: {done.stderr.strip()[-1000:]}")
    return done.stdout.splitlines()


def encrypted(broker: dict[str, Any], count: int) -> bool:
    """Whether those who ask the broker itself get nothing but envelopes."""
    values = operator_tasks.stored_values(broker["bootstrap"], "claims", count)
    envelopes = sum(envelope.is_envelope(value) for value in values)
    print(f"past the sidecars: {envelopes} of {len(values)} values are ciphertext")
    return envelopes == len(values) == count


def clean(folder: Path, records: list[str]) -> bool:
    """Search the broker's disk for any 16 bytes of the input."""
    found = disk.scan(folder, disk.windows(records))
    print(f"the broker's {found.files} files, {found.bytes:,} bytes: plaintext at {found.hits} positions")
    return found.hits == 0 and found.bytes > 0


def stranger(bootstrap: str) -> bool:
    """Whether another program of the same user, this one, gets nothing from the same listener."""
    told: list[str] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "log_level": 0, "message.timeout.ms": 20_000})
    producer.produce("claims", b"forged", on_delivery=lambda error, _: told.append(error.name() if error else "taken"))
    producer.flush(30)
    visible = producer.list_topics(timeout=20).topics
    print(f"a program that no rule names, {sys.executable}: {', '.join(told)}; topics that it sees: {len(visible)}")
    return told == ["TOPIC_AUTHORIZATION_FAILED"] and not visible


@contextmanager
def following(parties: Parties, bootstrap: str, offset: str) -> Iterator[subprocess.Popen[str]]:
    """Run a kcat that reads from an offset on; begin when the operator sees it."""
    command = ["kcat", "-q", "-b", bootstrap, "-t", "claims", "-C", "-o", offset]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        try:
            small.wait("reader at work", lambda: None, lambda: f"pid {follower.pid}," in top(parties))
            yield follower
        finally:
            follower.kill()


def taken_away(parties: Parties, bootstrap: str, policy: Path) -> bool:
    """Whether a reader at work is told when its right ends, and kcat reads again when the policy is changed back."""
    before = policy.read_text()
    with following(parties, bootstrap, "end") as follower:
        began = time.monotonic()
        policy.write_text(before.replace(RIGHT, "actions: [write]"))
        said = follower.communicate(timeout=60)[1].strip()
    print(f"the right to read taken away; {time.monotonic() - began:.1f} s later a reader at work is told: {said}")
    policy.write_text(before)
    small.wait("reading again", lambda: None, lambda: kcat(bootstrap, *READ_ALL).returncode == 0)
    print("given back: kcat reads again")
    return "authorization failed" in said.lower()


def watch(parties: Parties, bootstrap: str) -> None:
    """Show what the operator sees: what a reader at work has read, and what was refused."""
    expected = ("claims-office", f" {COUNT} ", "unauthenticated", "not-authorized")
    with following(parties, bootstrap, "beginning"):
        small.wait(f"view of {expected}", lambda: None, lambda: all(part in top(parties) for part in expected))
        print(f"\n{top(parties)}")


def audited(folder: Path) -> bool:
    """Whether both logs are whole; what they say."""
    holds = True
    for log in (folder / "client-side.jsonl", folder / "broker-side.jsonl"):
        done = operator_tasks.verify_audit(log)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        actions = ", ".join(f"{action} {count}" for action, count in Counter(line["action"] for line in lines).items())
        print(f"{log.name}: {done.stdout.strip().splitlines()[-1]}; {actions}")
        refused = [line for line in lines if line["outcome"] == "refused"]
        for principal, code, right in {
            (line.get("principal", "nobody"), line["code"], line["right"]) for line in refused
        }:
            print(f"  refused: {principal}, {right}, {code}")
        holds &= done.returncode == 0
    return holds


def given(service: dict[str, Any]) -> list[int]:
    """How many certificates the sidecars have had: of the client's side, and of the broker's."""
    events = [json.loads(line) for line in Path(service["audit"]).read_text().splitlines()]
    counts = Counter(event["principal"] for event in events if event["action"] == "certificate" and "serial" in event)
    return [counts[f"{DOMAIN}sidecar/{side}"] for side in ("client", "broker")]


def use(parties: Parties, near: str, broker: dict[str, Any], policy: Path) -> bool:
    """What a visitor would try."""
    records = small.records(COUNT)
    successful(kcat(near, "-P", lines="\n".join(records) + "\n"))
    holds = small.compare(records, successful(kcat(near, *READ_ALL)), "records")
    holds &= encrypted(broker, COUNT)
    holds &= clean(Path(broker["log_dir"]), records)
    holds &= stranger(near)
    holds &= taken_away(parties, near, policy)
    small.wait("renewed certificate", lambda: None, lambda: min(given(parties.service)) > 1)
    print(f"certificates given to the sidecars, 15 seconds each: {given(parties.service)}")
    watch(parties, near)
    return holds


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="cipherlane-example-") as name, Tap() as wire:
        folder = Path(name)
        operator, policy = key_service_folder(folder / "keyservice"), folder / "policy.yaml"
        shutil.copy(HERE / "policy.yaml", policy)
        with (
            running("key service", key_service_command(operator, policy), folder / "ks.log") as service,
            running("broker", broker_command("claims:1"), folder / "broker.log") as broker,
        ):
            parties = Parties(folder, service, operator / "cipherlane.yaml")
            with sidecar(parties, "broker", broker=broker["bootstrap"], wire=wire.port) as far:
                wire.to(far["kafka"])
                known = {"wire": wire.port, "base_port": free_port() - BROKER_ID, "uid": os.getuid()}
                with sidecar(parties, "client", kcat=os.path.realpath(shutil.which("kcat") or "kcat"), **known) as near:
                    holds = use(parties, near["kafka"], broker, policy)
            holds &= wire.is_tls(disk.windows(small.records(COUNT)))
            holds &= audited(folder)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
