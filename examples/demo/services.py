"""Starts and stops the real parts that the demo runs on: a Kafka broker and the key service, each a child process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BROKER_JAR = ROOT / "java/broker/target/cipherlane-broker.jar"
KEY_SERVICE = ROOT / "keyservice/build/bin/cipherlane-keyservice"
STOP_SECONDS = 20


class StartError(RuntimeError):
    """A service did not start; the message says where its log is."""


@contextmanager
def child(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service until the block ends.

    It also stops by itself when this program dies, because its standard input then closes.
    """
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def answer(name: str, process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    """The next JSON line of a service: the first says that it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise StartError(f"the {name} did not start: see {log}\n{log.read_text()[-2000:]}")
    return dict(json.loads(line))


@contextmanager
def running(name: str, command: list[str], log: Path) -> Iterator[dict[str, Any]]:
    """Run a service until the block ends; yield the JSON line that it prints when it is ready."""
    with child(command, log) as process:
        yield answer(name, process, log)


def broker_command(topics: str) -> list[str]:
    """The command of a single-process KRaft broker with these topics (`name:partitions,…`)."""
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", str(BROKER_JAR),
            "--topics", topics, "--until-stdin-closes"]  # fmt: skip


def key_service_command(folder: Path, policy: Path) -> list[str]:
    """The command of a complete key service with the embedded store and certificates of its own."""
    return [str(KEY_SERVICE), "dev", "--dir", str(folder), "--policy", str(policy), "--json", "--until-stdin-closes"]
