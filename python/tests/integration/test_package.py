"""The package as a user gets it: built, rendered, installed into an environment of its own."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from readme_renderer import markdown

PYTHON_FOLDER = Path(__file__).resolve().parents[2]

USE = """
import sys, importlib.util
from cipherlane import Decryptor, Encryptor, ConfigurationError
try:
    Encryptor.from_settings({})
except ConfigurationError as error:
    print(error.code)
print([name for name in ("confluent_kafka", "aiokafka", "pytest") if importlib.util.find_spec(name)])
"""


def run(*command: object, cwd: Path = PYTHON_FOLDER) -> str:
    done = subprocess.run(list(map(str, command)), check=False, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ".")
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = email.message_from_bytes(
            next(archive.read(name) for name in archive.namelist() if name.endswith("/METADATA"))
        )
        (licence,) = (archive.read(name) for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
    source = PYTHON_FOLDER / "src"
    expected = {str(file.relative_to(source)) for file in source.rglob("*") if file.suffix in {".py", ".typed"}}
    assert names == expected
    assert licence == (PYTHON_FOLDER.parent / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.9"
    declared = {re.split("[<>=;]", requirement)[0].strip() for requirement in metadata.get_all("Requires-Dist", [])}
    assert {"cryptography", "urllib3", "backports-zstd", "confluent-kafka", "aiokafka", "cipherlane-native"} == declared
    assert metadata.get_all("Project-URL") is None  # none that could be wrong


def test_the_readme_renders(wheel: Path) -> None:
    """As the package index shows it."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    rendered = markdown.render(str(metadata.get_payload()))
    assert rendered is not None
    for part in ("<h1", "<table", "<pre"):
        assert part in rendered


def test_the_source_archive_builds_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
        for member in opened.getmembers():
            opened.extract(member, tmp_path)
    assert not [name for name in names if "/build/" in name or "/.venv/" in name or name.endswith(".pyc")]
    (source,) = tmp_path.iterdir()
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path / "again", source)
    again = tmp_path / "again" / wheel.name
    with zipfile.ZipFile(again) as second, zipfile.ZipFile(wheel) as first:
        assert second.namelist() == first.namelist()
        assert all(second.read(name) == first.read(name) for name in first.namelist())


def test_a_clean_environment_gets_what_is_declared(wheel: Path, tmp_path: Path) -> None:
    """Installs from the package index; imports, refuses bad settings and runs without anything that is not declared."""
    folder = tmp_path / "clean"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    run(python, "-m", "pip", "check", "--disable-pip-version-check")
    assert run(python, "-W", "error", "-c", USE, cwd=tmp_path) == "configuration-invalid\n[]\n"
    (tmp_path / "value").write_bytes(b"\xc1\x9e\x01\x00" + bytes(56))
    assert "version" in run(python, "-m", "cipherlane", "inspect", tmp_path / "value", cwd=tmp_path)
