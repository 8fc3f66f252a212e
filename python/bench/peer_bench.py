"""What payload encryption adds to a serialized value: by confluent-kafka's own rules, and by us.

Both stand around the same JSON serializer and the same value. What is compared is the CPU time that encryption adds,
each against the run without it. `make bench-peer` runs it in an environment of its own, and writes
build/bench/python-peer.json.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))

from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleParams, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import EncryptionExecutor
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext

from cipher_bench import TOPIC, OneKey
from cipherlane import Decryptor, Encryptor
from cipherlane.configuration import Writing
from cipherlane.keys import KeySettings
from report import Row, compare, publish

RUNS = 7
RECORDS = 1_000
SCHEMA = json.dumps({"type": "object", "properties": {"v": {"type": "string"}}})
RULE = Rule(
    name="encrypt",
    doc=None,
    kind=RuleKind.TRANSFORM,
    mode=RuleMode.WRITEREAD,
    type="ENCRYPT_PAYLOAD",
    tags=None,
    params=RuleParams({"encrypt.kek.name": "kek", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "key"}),
    expr=None,
    on_success=None,
    on_failure="ERROR,NONE",
    disabled=False,
)

SECRET = {"secret": os.urandom(16).hex()}
"""Of the local key; one for the whole process, as the rules have it."""

Calls = tuple[Callable[[], Any], Callable[[], Any]]
"""Writing and reading a value."""


def confluent(value: dict[str, str], *, encrypted: bool) -> Calls:
    """confluent-kafka's serializer and deserializer, with the rule or without."""
    client = SchemaRegistryClient.new_client({"url": "mock://bench"})
    topic = f"t-{encrypted}"
    rules = RuleSet(None, None, encoding_rules=[RULE]) if encrypted else None
    client.register_schema(f"{topic}-value", Schema(SCHEMA, "JSON", [], None, rules))
    conf = {"use.latest.version": True, "validate": False}
    serializer = JSONSerializer(SCHEMA, client, conf={**conf, "auto.register.schemas": False}, rule_conf=SECRET)
    deserializer = JSONDeserializer(None, schema_registry_client=client, conf=conf, rule_conf=SECRET)
    context = SerializationContext(topic, MessageField.VALUE)
    written = serializer(value, context)
    if deserializer(written, context) != value:
        raise RuntimeError("what was written is not read")
    return lambda: serializer(value, context), lambda: deserializer(written, context)


def ours(plain: Calls) -> Calls:
    """The same serializer without the rule, and our encryption around it."""
    source, (write, read) = OneKey(), plain
    encryptor = Encryptor(source, KeySettings(), Writing(1 << 20))
    decryptor = Decryptor(source, KeySettings(), max_plaintext=1 << 20)
    envelope = encryptor.encrypt(TOPIC, write())
    return lambda: encryptor.encrypt(TOPIC, write()), lambda: (decryptor.decrypt(TOPIC, envelope), read())


def micros(work: Callable[[], Any]) -> float:
    """CPU time of one call, over many."""
    begun = time.process_time_ns()
    for _ in range(RECORDS):
        work()
    return (time.process_time_ns() - begun) / RECORDS / 1000


def rows(size: int) -> list[Row]:
    """Both operations for one size; the ratio says how many times ours theirs is."""
    value = {"v": "x" * (size - 9)}
    plain = confluent(value, encrypted=False)
    ways = (plain, ours(plain), confluent(value, encrypted=True))
    found = []
    for index, operation in enumerate(("encrypt", "decrypt")):
        for way in ways:
            micros(way[index])
        runs = [[micros(way[index]) for way in ways] for _ in range(RUNS)]
        added = [(own - bare, theirs - bare) for bare, own, theirs in runs]
        found += compare(f"{operation}/{size}B", ("cipherlane", "confluent-csfle"), added)
    return found


def main() -> None:
    """Runs all cases."""
    EncryptionExecutor.register()
    LocalKmsDriver.register()
    publish("python-peer", "added_cpu_us_per_record", RUNS, [row for size in (128, 1024) for row in rows(size)])


if __name__ == "__main__":
    main()
