"""What the small examples share: services with a policy of their own, real records, and the comparison at the end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import chapters, clients, dataset, disk
from demo.services import broker_command, key_service_command, running

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
PATIENCE_SECONDS = 240
RATE = "2000"
# For machines that do much else at the same time. The defaults are shorter.
PATIENT = {
    "cipherlane.keyservice.connect.timeout.ms": "20000",
    "cipherlane.keyservice.request.timeout.ms": "20000",
    "cipherlane.keys.deadline.ms": "60000",
}


@dataclass(frozen=True)
class Services:
    """A broker and a key service that run, and a folder for files."""

    folder: Path
    broker: dict[str, Any]
    service: dict[str, Any]

    def cipherlane(self, principal: str) -> dict[str, str]:
        """The settings of a client of the key service."""
        return clients.key_service_settings(self.service, principal) | PATIENT

    def produce(self, topic: str, records: list[str], more: dict[str, str] | None = None) -> None:
        """Write records with the plain Java producer of the demo; keys are their numbers."""
        settings = {"bootstrap.servers": self.broker["bootstrap"]} | chapters.ENCRYPT | self.cipherlane("producer")
        properties = clients.write_properties(self.folder / "producer.properties", settings | (more or {}))
        lines = self.folder / "input.jsonl"
        lines.write_text("".join(f"{record}\n" for record in records))
        _check(clients.run(clients.java("ClaimsProducer", properties, topic, lines, RATE)))

    def consume(self, topic: str, count: int, bootstrap: str = "") -> str:
        """Read records with the plain Java consumer of the demo; one `key TAB value` a line."""
        settings = {
            "bootstrap.servers": bootstrap or self.broker["bootstrap"],
            "group.id": f"example-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
        }
        settings |= chapters.DECRYPT | self.cipherlane("consumer")
        properties = clients.write_properties(self.folder / "consumer.properties", settings)
        output = self.folder / "output.txt"
        _check(clients.run(clients.java("ClaimsConsumer", properties, topic, str(count), output)))
        return output.read_text()

    def properties(self, template: Path, more: dict[str, str]) -> Path:
        """A properties file of the example, with what only a run knows added."""
        file = self.folder / template.name
        file.write_text(template.read_text() + "".join(f"{name}={value}\n" for name, value in more.items()))
        return file


def _check(outcome: subprocess.CompletedProcess[str]) -> None:
    if outcome.returncode != 0:
        raise RuntimeError(f"a client failed: {outcome.stderr.strip()[:2000]}")


@contextlib.contextmanager
def services(policy: Path, topics: str) -> Iterator[Services]:
    """Start both; stop both."""
    with tempfile.TemporaryDirectory(prefix="cipherlane-example-") as name:
        folder = Path(name)
        with (
            running("key service", key_service_command(folder / "keyservice", policy), folder / "ks.log") as service,
            running("broker", broker_command(topics), folder / "broker.log") as broker,
        ):
            yield Services(folder, broker, service)


def records(count: int) -> list[str]:
    """Real records, each a line of JSON."""
    return dataset.load(EXAMPLES / "build/dataset", count)


def class_path(example: str) -> str:
    """The jars of an example, which `make build` has put there."""
    target = EXAMPLES / example / "target"
    return f"{target}/cipherlane-example-{example}.jar:{target}/lib/*"


@contextlib.contextmanager
def program(folder: Path, example: str, main: str, *arguments: Path | str) -> Iterator[Callable[[], None]]:
    """Run a Java program of an example until the block ends; what it gives raises when the program has failed."""
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", clients.QUIET_LOGS]
    command += ["-cp", class_path(example), main, *map(str, arguments)]
    log = folder / f"{example}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)

    def check() -> None:
        if process.poll() not in (None, 0):
            raise RuntimeError(f"{main} failed")

    try:
        yield check
        process.terminate()
        process.wait(30)
    except RuntimeError:
        print(log.read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        process.kill()
        process.wait()


def wait(what: str, check: Callable[[], None], condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; raise when the program has failed or after four minutes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        check()
        if time.monotonic() > end:
            raise RuntimeError(f"no {what} within {PATIENCE_SECONDS} seconds")
        time.sleep(0.2)


def lines(file: Path) -> list[str]:
    """What a file holds by now."""
    return file.read_text().splitlines() if file.exists() else []


def compare(expected: list[str], found: list[str], what: str) -> bool:
    """Tell how many are equal, place by place."""
    equal = sum(one == other for one, other in zip(expected, found, strict=False))
    extra = max(0, len(found) - len(expected))
    print(f"{equal:,} of {len(expected):,} {what} equal the input, {extra} were not asked for")
    return equal == len(expected) and extra == 0


def nothing_stored(running_services: Services, plaintext: list[str]) -> bool:
    """Search the broker's disk for any 16 bytes of the input."""
    found = disk.scan(Path(running_services.broker["log_dir"]), disk.windows(plaintext))
    print(f"the broker's {found.files} files, {found.bytes:,} bytes: plaintext at {found.hits} positions")
    return found.hits == 0 and found.bytes > 0
