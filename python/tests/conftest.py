"""One broker and one key service for all tests; and what the cipher is part of is tested with it in Python and in C."""

from __future__ import annotations

import sys
from typing import Iterator, Optional

import pytest

from cipherlane import backend
from processes import Cluster, Service, end, start_cluster, start_issuing_service, start_service

ON_BOTH = {
    "test_cipher", "test_vectors", "test_public_vectors", "test_encryptor_decryptor", "test_writing", "test_forking",
    "test_leases", "test_decryption_keys", "test_backend", "test_consumer", "test_producer", "test_envelope",
    "test_parts", "test_hostile_key_service", "test_failure_actions", "test_serializing", "test_deserializer",
    "test_aio", "test_aiokafka",
}  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in ON_BOTH:
        metafunc.parametrize("in_language", ["python", "c"], indirect=True)


@pytest.fixture(autouse=True)
def in_language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Optional[str]:
    """Which cipher the test uses: "python", "c", or None for the one that applications get."""
    chosen = getattr(request, "param", None)
    if chosen == "python":
        monkeypatch.setattr(backend, "current", backend.PURE)
        monkeypatch.setenv("CIPHERLANE_PURE", "1")  # for child processes
    if chosen == "c":
        if tuple(sys.version_info) < (3, 11):
            pytest.skip("cipherlane-native is for Python 3.11 and newer")
        native = backend.native()
        assert native is not None, "cipherlane-native is not installed: make setup"
        monkeypatch.setattr(backend, "current", native)
    return chosen


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = start_service(tmp_path_factory.mktemp("keyservice"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    running, process = start_cluster()
    yield running
    end(process)


@pytest.fixture(scope="session")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = start_issuing_service(tmp_path_factory.mktemp("issuing"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def secured(issuing: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its TLS listener wants a certificate of the key service's CA, and closes connections that rest for 2 seconds."""
    folder, made = tmp_path_factory.mktemp("broker"), issuing.server_certificate()
    (folder / "server.pem").write_text(made["key"] + made["certificate"])
    (folder / "ca.pem").write_text(made["ca"])
    (folder / "server.pem").chmod(0o600)
    prefix = "listener.name.tls.ssl"
    given = {
        f"{prefix}.keystore.type": "PEM",
        f"{prefix}.keystore.location": str(folder / "server.pem"),
        f"{prefix}.truststore.type": "PEM",
        f"{prefix}.truststore.location": str(folder / "ca.pem"),
        f"{prefix}.client.auth": "required",
        "connections.max.idle.ms": "2000",
    }
    options = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
    running, process = start_cluster("--listener", "TLS:SSL", *options)
    yield running
    end(process)
