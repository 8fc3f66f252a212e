"""The Python examples, each as a child process, on a real broker and a real key service."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx
import pytest

from demo import dataset, services
from demo.__main__ import HERE
from demo.clients import key_service_settings

EXAMPLES = HERE.parent
COUNT = 3000
PNG = b"\x89PNG\r\n\x1a\n"


class Parts:
    """Where broker and key service are, and what the example programs are given."""

    def __init__(self, folder: Path, broker: dict[str, Any], service: dict[str, Any]) -> None:
        self.folder = folder
        self.bootstrap = broker["bootstrap"]
        self._service = service

    def settings(self, principal: str, name: str, **more: Any) -> Path:
        """A file with a client's settings."""
        group = {"group.id": name, "auto.offset.reset": "earliest"} if principal == "consumer" else {}
        file = self.folder / f"{name}.json"
        ours = key_service_settings(self._service, principal)
        file.write_text(json.dumps({"bootstrap.servers": self.bootstrap, **group, **ours, **more}))
        return file

    def stored(self, topic: str) -> list[bytes]:
        """The values that lie on the broker, read without us."""
        with confluent_kafka.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": f"look-{topic}", "auto.offset.reset": "earliest"}
        ) as consumer:
            consumer.subscribe([topic])
            messages = consumer.consume(COUNT, 10)
        return [message.value() or b"" for message in messages]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    folder = tmp_path_factory.mktemp("examples")
    (folder / "keys").mkdir(mode=0o700)
    with ExitStack() as stack:
        topics = "claims:1,claims-visits:1,nowhere:1"
        broker = stack.enter_context(services.running("broker", services.broker_command(topics), folder / "broker.log"))
        policy = folder / "policy.yaml"
        text = (HERE / "policy.yaml").read_text().replace('"claims"', '"claims", "claims-visits"')
        policy.write_text(text.replace("{expires_in: 4s, refresh_in: 1s}", "{expires_in: 5m}"))
        command = services.key_service_command(folder / "keys", policy)
        service = stack.enter_context(services.running("key service", command, folder / "keyservice.log"))
        yield Parts(folder, broker, service)


@pytest.fixture(scope="module")
def claims(parts: Parts) -> list[str]:
    """The demo's data, sent to the topic by the example producer."""
    lines = dataset.load(EXAMPLES / "build/dataset", COUNT)
    source = parts.folder / "claims.jsonl"
    source.write_text("\n".join(lines))
    outcome = run("python/claims_producer.py", parts.settings("producer", "send"), "claims", source)
    assert (outcome.returncode, outcome.stdout) == (0, f"sent {COUNT}\n"), outcome.stderr
    return lines


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program, *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=EXAMPLES, capture_output=True, text=True, timeout=120)


def test_producer_and_consumer(parts: Parts, claims: list[str]) -> None:
    output = parts.folder / "out"
    outcome = run("python/claims_consumer.py", parts.settings("consumer", "read"), "claims", COUNT, output)
    assert outcome.returncode == 0, outcome.stderr
    read = dict(line.split("\t") for line in output.read_text().splitlines())
    assert [read[str(number)] for number in range(COUNT)] == claims
    stored = parts.stored("claims")
    assert len(stored) == COUNT
    assert not any(b"visits_to_doctor" in value for value in stored)


@pytest.mark.usefixtures("claims")
def test_a_producer_that_may_not(parts: Parts) -> None:
    source = parts.folder / "claims.jsonl"
    for principal, topic, code in (("consumer", "claims", "not-authorized"), ("producer", "nowhere", "topic-unknown")):
        settings = parts.settings(principal, "stranger", **{"group.id": "x"} if principal == "consumer" else {})
        outcome = run("python/claims_producer.py", settings, topic, source)
        assert outcome.returncode == 1
        assert code in outcome.stderr or "not-authorized" in outcome.stderr
        assert "sent" not in outcome.stdout
    assert parts.stored("nowhere") == []


def test_the_chart(parts: Parts, claims: list[str]) -> None:
    """The table is that of the input; the chart is a picture of some size."""
    chart = EXAMPLES / "build" / "visits.png"
    outcome = run("analysis/chart.py", parts.settings("consumer", "analyse"), "claims", COUNT, chart)
    assert outcome.returncode == 0, outcome.stderr
    rows = [json.loads(line) for line in claims]
    poor = [row["visits_to_doctor"] for row in rows if row["health_poor"] == 1 and row["log_coinsurance"] == 0]
    shown = next(line for line in outcome.stdout.splitlines() if line.startswith("poor")).split()
    assert float(shown[1]) == pytest.approx(sum(poor) / len(poor), abs=0.006)
    assert chart.read_bytes().startswith(PNG)
    assert chart.stat().st_size > 10_000


@pytest.mark.usefixtures("claims")
def test_the_chart_for_whom_may_not_read(parts: Parts) -> None:
    more = {"group.id": "spy", "auto.offset.reset": "earliest"}
    chart = parts.folder / "none.png"
    outcome = run("analysis/chart.py", parts.settings("producer", "spy", **more), "claims", COUNT, chart)
    assert outcome.returncode == 1
    assert "not allowed to see this: not-authorized" in outcome.stderr
    assert not chart.exists()


@contextmanager
def web_service(settings: Path, topic: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "CIPHERLANE_CONFIG": str(settings), "CLAIMS_TOPIC": topic}
    command = [sys.executable, "-m", "uvicorn", "--app-dir", "service", "--port", str(port), "app:application"]
    process = subprocess.Popen(
        command, cwd=EXAMPLES, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}/visits"
    finally:
        process.terminate()
        process.wait(20)


def wait_for_port(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the web service did not start")


def test_the_web_service(parts: Parts) -> None:
    topic = "claims-visits"
    with web_service(parts.settings("producer", "web"), topic) as url:
        answers = [httpx.post(url, json={"person": number, "reason": "canary"}, timeout=30) for number in range(3)]
        assert [answer.status_code for answer in answers] == [201] * 3, answers[0].text
        assert [answer.json()["offset"] for answer in answers] == [0, 1, 2]
        for wrong in ({"person": -1, "reason": "x"}, {"person": 1}, {"person": 1, "reason": ""}):
            assert httpx.post(url, json=wrong, timeout=30).status_code == 422
    output = parts.folder / "visits"
    outcome = run("python/claims_consumer.py", parts.settings("consumer", "visits"), topic, 3, output)
    assert outcome.returncode == 0, outcome.stderr
    assert [json.loads(line.split("\t")[1])["person"] for line in output.read_text().splitlines()] == [0, 1, 2]
    assert not any(b"canary" in value for value in parts.stored(topic))


def test_the_web_service_sends_nothing_that_it_cannot_encrypt(parts: Parts) -> None:
    with web_service(parts.settings("producer", "web2"), "nowhere") as url:
        answer = httpx.post(url, json={"person": 1, "reason": "canary"}, timeout=30)
        assert answer.status_code == 500
        assert "not stored" in answer.json()["detail"]
    assert parts.stored("nowhere") == []


@pytest.mark.parametrize("program", ["python/claims_producer.py", "python/claims_consumer.py", "analysis/chart.py"])
def test_a_wrong_command_line(program: str) -> None:
    outcome = run(program)
    assert outcome.returncode == 2
    assert "usage:" in outcome.stderr
