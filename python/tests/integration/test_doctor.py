"""``python -m cipherlane doctor`` against a real key service, and against what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from cipherlane.cli import main
from hostile import Authority, answer, serving
from processes import Cluster, Service, start_service


class Doctor:
    """Runs the command in this process, on a file of settings."""

    def __init__(self, folder: Path, output: Any) -> None:
        self._file = folder / "client.json"
        self._output = output

    def examine(self, settings: dict[str, Any], *arguments: str) -> tuple[int, str]:
        self._file.write_text(json.dumps({"client.id": "doctor", **settings}))
        code = main(["doctor", str(self._file), *arguments])
        return code, self._output.readouterr().out


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(tmp_path, capsys)


def test_all_is_well(service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a user runs it, with settings as the other languages write them."""
    settings = service.settings("producer")
    file = tmp_path / "client.properties"
    file.write_text("# a comment\n\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
    arguments = ["doctor", str(file), "--topic", "claims-1", "--as", "producer"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.count("ok ") == 5
    command = [sys.executable, "-m", "cipherlane", *arguments]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    lines = outcome.stdout.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    for words in ("certificate of spiffe://dev.cipherlane/producer", "clocks differ by", "under scope claims, kid "):
        assert words in outcome.stdout
    assert "BEGIN" not in outcome.stdout


def test_rights(service: Service, doctor: Doctor) -> None:
    """Each topic and each direction, and what to do."""
    topics = [part for topic in ("t-1", "clear-1", "forbidden-1", "nowhere", "a/b") for part in ("--topic", topic)]
    code, said = doctor.examine(service.settings("consumer"), *topics, "--as", "consumer")
    assert code == 1
    for line in (
        "ok   consuming, topic t-1: allowed; records that are not encrypted: reject",
        "ok   consuming, topic clear-1: allowed; records that are not encrypted: accept",
        "FAIL consuming, topic forbidden-1: topic-forbidden",
        "     -> the policy says forbid",
        "FAIL consuming, topic nowhere: not-authorized",
        "     -> add a grant to the policy",
        "FAIL consuming, topic a/b: topic-invalid",
    ):
        assert line in said
    assert "producing" not in said
    topics = [part for topic in ("clear-1", "forbidden-1", "nowhere") for part in ("--topic", topic)]
    code, said = doctor.examine(service.settings("producer"), *topics)
    assert code == 1
    for line in (
        "ok   producing, topic clear-1: sent in the clear",
        "FAIL producing, topic forbidden-1: the policy forbids it",
        "FAIL producing, topic nowhere: topic-unknown",
        "     -> add a topic rule to the policy",
        "FAIL consuming, topic clear-1: not-authorized",
    ):
        assert line in said


def test_settings(service: Service, doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CL-CFG-001, CL-CFG-002: the same refusals as when a client is made."""
    good = service.settings("producer")
    for change, words in (
        ({"cipherlane.keyservice.url": "x"}, "the nearest is cipherlane.keyservice.urls"),
        ({"cipherlane.keyservice.tls.key": "/nowhere"}, "tls.key: cannot be used: No such file"),
        ({"cipherlane.keys.cache.max": 1}, "16 to 1000000"),
    ):
        code, said = doctor.examine({**good, **change})
        assert (code, said.count("FAIL")) == (1, 1)
        assert words in said
    for content, words in ((b"{", "starts like JSON"), (b"name", "line 1 is not name=value"), (b"\xff", "not UTF-8")):
        file = tmp_path / "broken"
        file.write_bytes(content)
        assert main(["doctor", str(file)]) == 1
        assert words in capsys.readouterr().out
    assert main(["doctor", "/nowhere"]) == 1
    assert "No such file" in capsys.readouterr().out


def authority_settings(authority: Authority, url: str, days: float = 1, start: float = -2) -> dict[str, Any]:
    certificate, key = authority.issue(f"client{days}{start}", days=days, start=start)
    return {
        "cipherlane.keyservice.urls": url,
        "cipherlane.keyservice.tls.ca": authority.path,
        "cipherlane.keyservice.tls.certificate": certificate,
        "cipherlane.keyservice.tls.key": key,
        "cipherlane.keyservice.request.timeout.ms": 500,
    }


@pytest.mark.parametrize(
    ("days", "start", "words"),
    [
        (-1, -2, "ended "),
        (2, 1, "is not valid yet"),
        (0.004, -2, "in less than 10 minutes"),
    ],
)
def test_certificates(tmp_path: Path, doctor: Doctor, days: float, start: float, words: str) -> None:
    settings = authority_settings(Authority(tmp_path), "https://127.0.0.1:1", days, start)
    code, said = doctor.examine(settings)
    assert code == 1
    assert words in said
    assert "FAIL certificate of CN=client" in said


def test_clocks(tmp_path: Path, doctor: Doctor) -> None:
    """A skew is told, with its side; so is a service that does not say the time."""
    authority = Authority(tmp_path)
    for seconds, words in ((0, "clocks differ by "), (100, "behind"), (-100, "ahead of")):
        date = formatdate(time.time() + seconds, usegmt=True)
        with serving(authority, answer(404, b"{}", headers=f"Date: {date}\r\n")) as server:
            code, said = doctor.examine(authority_settings(authority, server.url), "--topic", "t-1")
        assert words in said
        assert code == 1  # what it answers about the topic is nonsense in any case
        assert "is the address really the key service" in said
    with serving(authority, answer(404, b"{}")) as server:
        code, said = doctor.examine(authority_settings(authority, server.url))
    assert (code, "without saying the time" in said) == (1, True)


def test_connections(tmp_path: Path, doctor: Doctor, service: Service) -> None:
    """What was met, and what to do; topics are not asked about then."""
    (tmp_path / "other").mkdir()
    ours, other = Authority(tmp_path), Authority(tmp_path / "other")
    good = service.settings("producer")
    cases: list[tuple[dict[str, Any], str]] = [
        (authority_settings(ours, "https://127.0.0.1:1"), "nothing listens there"),
        (authority_settings(ours, "https://no-such-host.invalid:1"), "the host's name is not known"),
        ({**good, "cipherlane.keyservice.tls.ca": other.path}, "is not the CA of the key service's certificate"),
    ]
    stranger = authority_settings(other, service.described["url"])
    cases.append(({**stranger, "cipherlane.keyservice.tls.ca": service.described["ca"]}, "client's certificate"))
    for settings, words in cases:
        code, said = doctor.examine(settings, "--topic", "t-1")
        assert code == 1
        assert "key-service-unavailable" in said
        assert words in said, said
        assert "topic t-1" not in said


def test_kafka(service: Service, cluster: Cluster, doctor: Doctor) -> None:
    """Where the settings say where it is; each way that it is not there."""
    good = {**service.settings("consumer"), "bootstrap.servers": cluster.bootstrap, "group.id": "g"}
    code, said = doctor.examine(good)
    assert code == 0, said
    assert f"Kafka at {cluster.bootstrap} answers: 1 broker(s)" in said
    for change, words in (
        ({"bootstrap.servers": "127.0.0.1:1"}, "nothing listens there"),
        ({"bootstrap.servers": "no-such-host.invalid:9092"}, "the host's name is not known"),
        ({"security.protocol": "SSL"}, "security.protocol is not that of this listener"),
        ({"security.protocol": "SAFE"}, "security.protocol"),
        ({"bootstrap.servers": service.described["url"].removeprefix("https://")}, "security.protocol is not that"),
    ):
        code, said = doctor.examine({**good, **change})
        assert code == 1
        assert words in said, said


def test_kafka_is_left_out_without_confluent(service: Service, doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    code, said = doctor.examine({**service.settings("consumer"), "bootstrap.servers": "127.0.0.1:1"})
    assert code == 0, said
    assert "Kafka" not in said


def test_a_service_that_stopped(tmp_path: Path, doctor: Doctor) -> None:
    own = start_service(tmp_path / "ks")
    settings = own.settings("producer")
    assert doctor.examine(settings)[0] == 0
    own.close()
    code, said = doctor.examine(settings)
    assert code == 1
    assert "nothing listens there" in said


@pytest.mark.parametrize("arguments", [[], ["doctor"], ["unknown"], ["inspect"], ["doctor", "f", "--as", "king"]])
def test_a_wrong_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage:" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out
