"""Kafka Streams, encrypted by its properties: aggregate, restart without local state, compare with the input."""

from __future__ import annotations

import sys
from pathlib import Path

from cipherlane.confluent import Consumer

from demo import small

HERE = Path(__file__).resolve().parent
COUNT = 400
GROUPS = 10


def aggregate(running: small.Services, state: str, total: int) -> dict[str, str]:
    """Run the application until its output holds what `total` records make; give the newest value of each group."""
    more = {"bootstrap.servers": running.broker["bootstrap"], "state.dir": str(running.folder / state)}
    properties = running.properties(HERE / "streams.properties", more | running.cipherlane("producer"))
    newest: dict[str, str] = {}
    consumer = Consumer(
        {"bootstrap.servers": running.broker["bootstrap"], "group.id": state, "auto.offset.reset": "earliest"}
        | running.cipherlane("consumer")
    )
    consumer.subscribe(["histories"])

    def complete() -> bool:
        while (message := consumer.poll(1.0)) is not None and message.error() is None:
            newest[(message.key() or b"").decode()] = (message.value() or b"").decode()
        return sum(value.count("|") + 1 for value in newest.values()) >= total

    main = "dev.cipherlane.examples.streams.Histories"
    with small.program(running.folder, "streams", main, properties, "visits", "histories") as check:
        small.wait("output", check, complete)
    consumer.close()
    return newest


def main() -> int:
    records = small.records(COUNT)
    expected = ["|".join(records[group::GROUPS]) for group in range(GROUPS)]
    with small.services(HERE / "policy.yaml", "visits:1,histories:1") as running:
        running.produce("visits", records)
        print("the application aggregates")
        first = aggregate(running, "state-1", COUNT)
        print("it starts again on another machine: the state comes back from the encrypted changelog topic")
        running.produce("visits", records[:GROUPS])
        second = aggregate(running, "state-2", COUNT + GROUPS)
        holds = small.compare(expected, [first.get(str(group), "") for group in range(GROUPS)], "aggregates")
        again = [f"{expected[group]}|{records[group]}" for group in range(GROUPS)]
        holds &= small.compare(again, [second.get(str(group), "") for group in range(GROUPS)], "continued aggregates")
        holds &= small.nothing_stored(running, records)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
