"""MirrorMaker 2 renames a topic: readable where the policy gives both names one scope, and compared with the input."""

from __future__ import annotations

import sys
from pathlib import Path

import confluent_kafka

from demo import small
from demo.services import broker_command, running

HERE = Path(__file__).resolve().parent
COUNT = 300
MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
KEYS_BOUND = {"cipherlane.record.key.topics": "claims"}


def stored(bootstrap: str, topic: str) -> int:
    """How many records a topic holds; none if there is no such topic."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "watch"})
    try:
        if topic not in consumer.list_topics(timeout=10).topics:
            return 0
        _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=10)
        return int(end)
    except confluent_kafka.KafkaException:
        return 0
    finally:
        consumer.close()


def mirror(services: small.Services, target: str) -> None:
    """Copy everything from the services' broker to the other one."""
    addresses = {"source.bootstrap.servers": services.broker["bootstrap"], "target.bootstrap.servers": target}
    properties = services.properties(HERE / "mirrormaker.properties", addresses)
    with small.program(services.folder, "connect", MAIN, properties) as check:
        small.wait("copy", check, lambda: stored(target, "source.claims") >= COUNT)
        small.wait("copy", check, lambda: stored(target, "source.notes") >= 1)


def refused(services: small.Services, target: str) -> bool:
    """Whether the copy whose new name the policy does not map is refused."""
    try:
        services.consume("source.notes", 1, target)
    except RuntimeError as failure:
        print(f"source.notes, of another scope: {str(failure).splitlines()[0]}")
        return "scope-mismatch" in str(failure)
    return False


def main() -> int:
    records = small.records(COUNT)
    with small.services(HERE / "policy.yaml", "claims:1,notes:1") as services:
        command = broker_command("unused:1")
        with running("target broker", command, services.folder / "target.log") as other:
            services.produce("claims", records, KEYS_BOUND)
            services.produce("notes", records[:1])
            mirror(services, other["bootstrap"])
            output = services.consume("source.claims", COUNT, other["bootstrap"])
            expected = [f"{number}\t{record}" for number, record in enumerate(records)]
            holds = small.compare(expected, output.splitlines(), "records of source.claims, bound to their keys,")
            holds &= refused(services, other["bootstrap"])
            holds &= small.nothing_stored(services, records)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
