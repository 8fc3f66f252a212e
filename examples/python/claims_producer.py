"""Write the lines of a file to a topic, one record each, with the drop-in producer; the line's number is the key.

The only line that differs from a program without encryption is the import of Producer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cipherlane.confluent import Producer


def send_all(producer: Producer, topic: str, lines: list[str]) -> list[str]:
    """Send every line and wait until all are delivered; return what went wrong."""
    problems: list[str] = []
    for number, line in enumerate(lines):
        producer.produce(
            topic, line, str(number), on_delivery=lambda error, _: problems.append(str(error)) if error else None
        )
        producer.poll(0)
    if producer.flush(30):
        problems.append("some records were not delivered in time")
    return problems


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("usage: claims_producer.py CONFIGURATION.json TOPIC INPUT", file=sys.stderr)
        return 2
    configuration, topic, source = arguments
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    with Producer(json.loads(Path(configuration).read_text())) as producer:
        problems = send_all(producer, topic, lines)
    print("sent", len(lines) - len(problems))
    for problem in problems[:10]:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
