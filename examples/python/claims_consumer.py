"""Read a number of records with the drop-in consumer and write them as `key TAB value` lines.

The only line that differs from a program without encryption is the import of Consumer.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from cipherlane.confluent import Consumer

PATIENCE_SECONDS = 30


def read_all(consumer: Consumer, count: int, output: Path) -> int:
    """Poll until `count` records are read or patience ends; return how many were."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    read = 0
    with output.open("w", encoding="utf-8") as lines:
        while read < count and time.monotonic() < give_up:
            for message in consumer.consume(num_messages=500, timeout=0.5):
                if message.error() is not None:
                    raise RuntimeError(message.error())
                key, value = message.key(), message.value()
                assert key is not None and value is not None
                lines.write(f"{key.decode()}\t{value.decode()}\n")
                read += 1
    return read


def main(arguments: list[str]) -> int:
    if len(arguments) != 4:
        print("usage: claims_consumer.py CONFIGURATION.json TOPIC COUNT OUTPUT", file=sys.stderr)
        return 2
    configuration, topic, count, output = arguments
    consumer = Consumer(json.loads(Path(configuration).read_text()))
    try:
        consumer.subscribe([topic])
        print("read", read_all(consumer, int(count), Path(output)))
    finally:
        consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
