"""Run the demo: `python -m demo` in the folder examples (or `make demo` at the root)."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from demo import chapters
from demo.services import StartError, broker_command, key_service_command, running
from demo.story import Story

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "build/dataset"
TOPICS = "claims:3,public-claims:1"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="demo", description="Encrypts real records through a real Kafka broker.")
    parser.add_argument("--records", type=int, default=20_190, help="how many records of the data set (default: all)")
    parser.add_argument("--rate", type=int, default=4_000, help="records produced per second (default: %(default)s)")
    parser.add_argument("--policy", type=Path, default=HERE / "policy.yaml", help="another policy file, to see it fail")
    return parser.parse_args()


def stop(_signal: int, _frame: object) -> NoReturn:
    """Leave through the `finally` blocks, so that every child process is stopped."""
    sys.exit(130)


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    story = Story()
    print("Cipherlane demo: medical records through a real Kafka broker that never sees them.")
    with tempfile.TemporaryDirectory(prefix="cipherlane-demo-") as name:
        folder = Path(name)
        records = chapters.read_data(story, DATA, options.records)
        key_service = key_service_command(folder / "keyservice", options.policy)
        with (
            running("key service", key_service, folder / "keyservice.log") as service,
            running("broker", broker_command(TOPICS), folder / "broker.log") as broker,
        ):
            stage = chapters.Stage(story, folder, records, service, broker)
            chapters.tell(stage, options.rate)
        chapters.stopped(stage)
    return story.end()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (StartError, FileNotFoundError) as failure:
        print(f"The demo cannot run: {failure}", file=sys.stderr)
        sys.exit(1)
