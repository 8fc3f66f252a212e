"""Kafka Connect, encrypted by its properties: file to topic to file, compared with the input."""

from __future__ import annotations

import sys
from pathlib import Path

from demo import small

HERE = Path(__file__).resolve().parent
COUNT = 300
MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"


def behind(prefix: str, settings: dict[str, str]) -> dict[str, str]:
    """The same settings with a prefix before their names."""
    return {prefix + name: value for name, value in settings.items()}


def files(running: small.Services, source: Path, sink: Path, converted: Path) -> list[Path]:
    """The worker's file, then the connectors'."""
    cipherlane = running.cipherlane("producer")
    worker = {
        "bootstrap.servers": running.broker["bootstrap"],
        "offset.storage.file.filename": str(running.folder / "offsets"),
    }
    worker |= behind("producer.", cipherlane) | behind("consumer.", cipherlane)
    converter = behind("value.converter.", cipherlane)
    return [
        running.properties(HERE / "worker.properties", worker),
        running.properties(HERE / "source.properties", {"file": str(source)}),
        running.properties(HERE / "sink.properties", {"file": str(sink)}),
        running.properties(HERE / "converter-source.properties", {"file": str(source)} | converter),
        running.properties(HERE / "converter-sink.properties", {"file": str(converted)} | converter),
    ]


def main() -> int:
    records = small.records(COUNT)
    with small.services(HERE / "policy.yaml", "lines:1,converted:1") as running:
        source = running.folder / "source.jsonl"
        source.write_text("".join(f"{record}\n" for record in records))
        sink, converted = running.folder / "sink.jsonl", running.folder / "converted.jsonl"
        with small.program(running.folder, "connect", MAIN, *files(running, source, sink, converted)) as check:
            small.wait("output", check, lambda: min(len(small.lines(sink)), len(small.lines(converted))) >= COUNT)
        holds = small.compare(records, small.lines(sink), "lines (by the worker's interceptors)")
        holds &= small.compare(records, small.lines(converted), "lines (by a connector's converter)")
        holds &= small.nothing_stored(running, records)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
