"""One broker and one key service for all tests; and what the cipher is part of is tested with it in Python and in C."""

from __future__ import annotations

import sys
from typing import Iterator, Optional

import pytest

from cipherlane import backend
from processes import Cluster, Service, end, start_cluster, start_service

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
