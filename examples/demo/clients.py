"""Configurations of the demo's clients, and running them as child processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CLASS_PATH = f"{ROOT}/examples/java/target/cipherlane-examples.jar:{ROOT}/examples/java/target/lib/*"
PYTHON_CONSUMER = ROOT / "examples/python/claims_consumer.py"
TIMEOUT_SECONDS = 120
QUIET_LOGS = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


def key_service_settings(service: dict[str, Any], principal: str) -> dict[str, str]:
    """The four settings that say where the key service is and who is asking."""
    files = service["principals"][principal]
    return {
        "cipherlane.keyservice.urls": service["url"],
        "cipherlane.keyservice.tls.ca": service["ca"],
        "cipherlane.keyservice.tls.certificate": files["certificate"],
        "cipherlane.keyservice.tls.key": files["key"],
    }


def write_properties(file: Path, settings: dict[str, str]) -> Path:
    """Write a Java properties file."""
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def java(program: str, *arguments: str | Path) -> list[str]:
    """The command of one of the Java example programs."""
    name = f"dev.cipherlane.examples.{program}"
    return ["java", "-Xmx256m", QUIET_LOGS, "-cp", CLASS_PATH, name, *map(str, arguments)]


def python_consumer(folder: Path, settings: dict[str, str], topic: str, count: int, output: Path) -> list[str]:
    """The command of the Python consumer; its dictionary goes through a JSON file."""
    file = folder / "consumer.json"
    file.write_text(json.dumps(settings))
    return [sys.executable, str(PYTHON_CONSUMER), str(file), topic, str(count), str(output)]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a client to its end; the caller looks at the exit code."""
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
