"""Whether the search for private keys finds them in each form, by its content alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster import keyfiles

KEY = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
CERTIFICATE = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -keyout key -out {}"
STORE = "keytool -genkeypair -alias x -keyalg EC -dname CN=x -storepass changeit -keypass changeit -storetype"


@pytest.mark.parametrize(
    "command",
    [
        f"{KEY} -out {{}}",
        f"{KEY} -outform DER -out {{}}",
        f"{KEY} -aes-256-cbc -pass pass:changeit -out {{}}",
        f"{STORE} JKS -keystore {{}}",
        f"{STORE} JCEKS -keystore {{}}",
        f"{STORE} PKCS12 -keystore {{}}",
    ],
)
def test_a_key_is_found(command: str, tmp_path: Path) -> None:
    subprocess.run(command.format("data.log").split(), check=True, cwd=tmp_path, capture_output=True)
    assert keyfiles.search(tmp_path) == (1, ["data.log"])


def test_what_is_no_key_is_not_found(tmp_path: Path) -> None:
    subprocess.run(CERTIFICATE.format("key.pem").split(), check=True, cwd=tmp_path, capture_output=True)
    (tmp_path / "key").unlink()
    (tmp_path / "empty").touch()
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper/index").write_bytes(bytes(1 << 20))
    assert keyfiles.search(tmp_path) == (3, [])
