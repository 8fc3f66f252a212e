"""Spring Kafka, encrypted by its properties: what the listener hears is compared with what the template sent."""

from __future__ import annotations

import sys
from pathlib import Path

from demo import small

HERE = Path(__file__).resolve().parent
COUNT = 300
MAIN = "dev.cipherlane.examples.spring.Notes"


def main() -> int:
    records = small.records(COUNT)
    with small.services(HERE / "policy.yaml", "notes:1") as running:
        source, output = running.folder / "notes.jsonl", running.folder / "heard.jsonl"
        source.write_text("".join(f"{record}\n" for record in records))
        address = {"bootstrap.servers": running.broker["bootstrap"]}
        files = [
            running.properties(HERE / f"{role}.properties", address | running.cipherlane(role))
            for role in ("producer", "consumer")
        ]
        with small.program(running.folder, "spring", MAIN, *files, source, output) as check:
            small.wait("output", check, lambda: len(small.lines(output)) >= COUNT)
        holds = small.compare(records, small.lines(output), "notes")
        holds &= small.nothing_stored(running, records)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
