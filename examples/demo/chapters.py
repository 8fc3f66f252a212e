"""The demo's chapters, in the order in which they are told."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import clients, dataset, disk, operator_tasks
from demo.story import Story

TOPIC = "claims"
CONTROL = "public-claims"
CONTROL_RECORDS = 100
SHOWN_FIRST = 9
SHOWN_LAST = 3
ENCRYPT = {"interceptor.classes": "dev.cipherlane.kafka.EncryptingProducerInterceptor"}
DECRYPT = {"interceptor.classes": "dev.cipherlane.kafka.DecryptingConsumerInterceptor"}


@dataclass
class Stage:
    """What every chapter needs: where to tell, a folder, the input, and what the services said of themselves."""

    story: Story
    folder: Path
    records: list[str]
    service: dict[str, Any]
    broker: dict[str, Any]

    @property
    def log_folder(self) -> Path:
        return Path(self.broker["log_dir"])

    def consumer_settings(self, principal: str, group: str) -> dict[str, str]:
        """Settings that Java and Python consumers share."""
        return {
            "bootstrap.servers": self.broker["bootstrap"],
            "group.id": group,
            "auto.offset.reset": "earliest",
        } | clients.key_service_settings(self.service, principal)


def read_data(story: Story, folder: Path, limit: int) -> list[str]:
    """The input."""
    story.chapter("The data")
    records = dataset.load(folder, limit)
    story.say(f"{len(records):,} records of the RAND Health Insurance Experiment (public domain). The first:")
    story.say(records[0])
    return records


def tell(stage: Stage, rate: int) -> None:
    """Everything that needs the services."""
    services(stage)
    produce(stage, rate)
    consume_java(stage)
    consume_python(stage)
    look_at_disk(stage)
    look_at_record(stage)
    refuse_stranger(stage)
    operate(stage)


def services(stage: Stage) -> None:
    story = stage.story
    story.chapter("The services")
    story.say(f"Kafka broker  {stage.broker['bootstrap']}   one process, KRaft, topic '{TOPIC}' with 3 partitions")
    story.say(f"key service   {stage.service['url']}   embedded store, mutual TLS, policy file:")
    for line in Path(stage.service["policy"]).read_text().splitlines():
        if line and not line.startswith("#"):
            story.say(f"  | {line}")


def produce(stage: Stage, rate: int) -> None:
    """Produce from Java while an operator rotates the data key; also a control topic in plaintext."""
    story, settings = stage.story, _producer_settings(stage)
    story.chapter("A Java producer writes; its code knows nothing of encryption")
    story.say("Added to its properties file:")
    for name, value in settings.items():
        if name.startswith(("interceptor", "cipherlane")):
            story.say(f"  | {name}={value}")
    properties = clients.write_properties(stage.folder / "producer.properties", settings)
    lines = stage.folder / "input.jsonl"
    lines.write_text("".join(f"{record}\n" for record in stage.records))
    sent = _produce_and_rotate(stage, clients.java("ClaimsProducer", properties, TOPIC, lines, str(rate)))
    story.check(sent, f"{len(stage.records):,} records acknowledged by the broker")
    control = stage.folder / "control.jsonl"
    control.write_text("".join(f"{record}\n" for record in stage.records[:CONTROL_RECORDS]))
    outcome = clients.run(clients.java("ClaimsProducer", properties, CONTROL, control, str(rate)))
    story.check(outcome.returncode == 0, f"control: the same program wrote 100 records to '{CONTROL}' (mode: clear)")


def _producer_settings(stage: Stage) -> dict[str, str]:
    # Small batches: the point is to see single records, not throughput.
    plain = {"bootstrap.servers": stage.broker["bootstrap"], "acks": "all", "linger.ms": "5"}
    return plain | ENCRYPT | clients.key_service_settings(stage.service, "producer")


def _produce_and_rotate(stage: Stage, command: list[str]) -> bool:
    """Run the producer; rotate the key when a third is sent. True if it acknowledged every record."""
    rotate_at = f"sent {len(stage.records) // 3 // 1000 * 1000 or 1000}"
    errors = stage.folder / "producer.log"
    with errors.open("wb") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        assert process.stdout is not None
        last = ""
        for line in process.stdout:
            last = line.strip()
            if last == rotate_at:
                _rotate(stage, last)
    if process.returncode != 0:
        stage.story.say(errors.read_text()[-1500:])
    return process.returncode == 0 and last == f"acknowledged {len(stage.records)}"


def _rotate(stage: Stage, progress: str) -> None:
    try:
        kid = operator_tasks.rotate(stage.service, TOPIC)
    except operator_tasks.RotationRefusedError as refusal:
        stage.story.check(False, f"rotation of the key: {refusal}")
        return
    stage.story.say(f"at record {progress.split()[1]} the operator rotates the key; new key id {kid}")
    stage.story.say("the producer takes it up when it next renews its lease, within a second")


def consume_java(stage: Stage) -> None:
    stage.story.chapter("A Java consumer reads")
    settings = stage.consumer_settings("consumer", "java") | DECRYPT
    properties = clients.write_properties(stage.folder / "consumer.properties", settings)
    output = stage.folder / "java.txt"
    _compare(stage, clients.java("ClaimsConsumer", properties, TOPIC, str(len(stage.records)), output), output)


def consume_python(stage: Stage) -> None:
    stage.story.chapter("A Python consumer reads; one import differs: from cipherlane.confluent import Consumer")
    settings, output = stage.consumer_settings("consumer", "python"), stage.folder / "python.txt"
    count = len(stage.records)
    _compare(stage, clients.python_consumer(stage.folder, settings, TOPIC, count, output), output)


def _compare(stage: Stage, command: list[str], output: Path) -> None:
    """Run a consumer and compare what it wrote with the input, record by record."""
    outcome = clients.run(command)
    if outcome.returncode != 0:
        stage.story.say(outcome.stderr.strip()[-1500:])
    equal, extra = compare(stage.records, output.read_text() if output.exists() else "")
    total = len(stage.records)
    holds = outcome.returncode == 0 and equal == total and extra == 0
    stage.story.check(holds, f"{equal:,} of {total:,} records equal the input, {extra} differ or were not asked for")


def compare(records: list[str], output: str) -> tuple[int, int]:
    """How many records a consumer's output (`number TAB value` lines) has right, and how many lines are not right."""
    right: set[int] = set()
    wrong = 0
    for line in output.splitlines():
        key, _, value = line.partition("\t")
        if key.isdigit() and int(key) < len(records) and int(key) not in right and records[int(key)] == value:
            right.add(int(key))
        else:
            wrong += 1
    return len(right), wrong


def look_at_disk(stage: Stage) -> None:
    story = stage.story
    story.chapter("What the broker has on its disk")
    plaintext = disk.windows(stage.records)
    story.say(f"Looking for any of the {len(plaintext):,} different runs of 16 bytes that the input contains.")
    found = disk.scan(stage.log_folder, plaintext, leave_out=CONTROL)
    story.check(found.hits == 0, f"{found.files} files, {found.bytes:,} bytes: plaintext at {found.hits} positions")
    control = disk.scan(stage.log_folder, plaintext, only=CONTROL)
    story.check(
        control.hits > 0, f"control: the same scan of '{CONTROL}' finds plaintext at {control.hits:,} positions"
    )


def look_at_record(stage: Stage) -> None:
    """A stored record as bytes, and how many records each key generation has."""
    story = stage.story
    story.chapter("One stored record, as the broker hands it to a client without keys")
    values = operator_tasks.stored_values(stage.broker["bootstrap"], TOPIC, len(stage.records))
    lines = list(disk.hexdump(values[0]))
    for line in (
        *lines[:SHOWN_FIRST],
        f"...   {len(lines) - SHOWN_FIRST - SHOWN_LAST} lines more",
        *lines[-SHOWN_LAST:],
    ):
        story.say(line)
    story.say()
    kids = Counter(operator_tasks.key_id(value) for value in values)
    for kid, count in kids.items():
        story.say(f"key {kid}: {count:,} records")
    story.check(len(values) == len(stage.records), f"{len(values):,} envelopes stored, one for each record")
    story.check(len(kids) == 2, "two generations of the key, before and after the rotation; both were read above")


def refuse_stranger(stage: Stage) -> None:
    """A client with a valid certificate, but no grant."""
    story = stage.story
    story.chapter("A consumer without the right")
    settings = stage.consumer_settings("stranger", "stranger") | DECRYPT
    properties = clients.write_properties(stage.folder / "stranger.properties", settings)
    output = stage.folder / "stranger.txt"
    outcome = clients.run(clients.java("ClaimsConsumer", properties, TOPIC, "1", output))
    message = next((line for line in outcome.stderr.splitlines() if "not-authorized" in line), outcome.stderr.strip())
    story.say(f"it says: {message}")
    read = output.stat().st_size if output.exists() else 0
    story.check(outcome.returncode != 0 and "not-authorized" in message, "it ended with an error that names the reason")
    story.check(read == 0, f"it read {read} bytes")
    story.say("the audit log says:")
    refusal = operator_tasks.last_refusal(Path(stage.service["audit"]))
    story.say(refusal)
    story.check("stranger" in refusal, "the refusal is on record")


def operate(stage: Stage) -> None:
    """What the operator's tool finds, on Kafka and in the audit log."""
    story = stage.story
    story.chapter("The operator's tool")
    scanned = operator_tasks.scan(stage.service, stage.broker["bootstrap"], TOPIC)
    for line in scanned.stdout.splitlines():
        story.say(line)
    story.check(scanned.returncode == 0, "scan: every record is encrypted, and its key decrypts it")
    control = operator_tasks.scan(stage.service, stage.broker["bootstrap"], CONTROL)
    story.check(control.returncode == operator_tasks.FOUND, f"control: in '{CONTROL}' the same scan finds plaintext")
    verified = operator_tasks.verify_audit(Path(stage.service["audit"]))
    for line in verified.stdout.splitlines():
        story.say(line)
    story.check(verified.returncode == 0, "audit verify: no line was removed, changed, or put in another order")
    tampered = stage.folder / "tampered.jsonl"
    tampered.write_text(Path(stage.service["audit"]).read_text().replace("stranger", "somebody", 1))
    outcome = operator_tasks.verify_audit(tampered)
    story.check(outcome.returncode == 1, "control: in a copy with one word changed it finds the place")


def stopped(stage: Stage) -> None:
    """After the services have ended."""
    stage.story.chapter("Everything is stopped")
    broker = stage.broker["pid"]
    stage.story.check(not _alive(broker), "no process is left")
    stage.story.check(not Path(stage.broker["dir"]).exists(), "the broker's folder is gone")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
