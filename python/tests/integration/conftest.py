"""One broker and one key service for all tests of this folder."""

from __future__ import annotations

from typing import Iterator

import pytest

from processes import Cluster, Service, end, start_cluster, start_service


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
