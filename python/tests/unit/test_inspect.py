"""``python -m cipherlane inspect``."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cipherlane.cli import main
from support import vectors

ENVELOPE = bytes.fromhex("c19e0105") + bytes(range(16)) + bytes(range(100, 120)) + b"\0\0\1\0" + b"c" * 7 + b"t" * 16


def inspect(value: bytes, *arguments: str, file: Path) -> int:
    file.write_bytes(value)
    return main(["inspect", str(file), *arguments])


@pytest.mark.parametrize("form", ["raw", "hex", "base64"])
def test_the_fields(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = {"raw": ENVELOPE, "hex": ENVELOPE.hex().encode() + b"\n", "base64": base64.b64encode(ENVELOPE) + b"\n"}
    assert inspect(written[form], "--as", form, file=tmp_path / "v") == 0
    fields = dict(
        line.split(None, 1) for line in capsys.readouterr().out.replace("of session", "of_session").splitlines()
    )
    assert fields == {
        "version": "1",
        "flags": "00000101",
        "compression": "zstd",
        "record": fields["record"],
        "kid": bytes(range(16)).hex(),
        "session": bytes(range(100, 120)).hex(),
        "content": "7 bytes (compressed)",
        "tag": "74" * 16,
    }


@pytest.mark.parametrize(
    ("value", "arguments", "words"),
    [
        (b"plain", (), "plaintext"),
        (b"", (), "plaintext"),
        (ENVELOPE[:30], (), "envelope-too-short"),
        (b"\xc1\x9e\x02", (), "unsupported-version"),
        (b"xyz", ("--as", "hex"), "is not hex"),
        (b"c1\xff", ("--as", "hex"), "is not hex"),
        (b"!!!!", ("--as", "base64"), "is not base64"),
    ],
)
def test_what_is_no_envelope(
    value: bytes, arguments: Any, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CL-ENV-002 to CL-ENV-007."""
    assert inspect(value, *arguments, file=tmp_path / "v") == 1
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


def test_every_vector_is_inspected_without_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for vector in vectors("decrypt"):
        code = inspect(bytes.fromhex(vector["input"]["value"] or ""), file=tmp_path / "v")
        said = capsys.readouterr()
        assert (code == 0) == bool(said.out) != bool(said.err)


def test_standard_input_and_a_file_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ENVELOPE)))
    assert main(["inspect", "-"]) == 0
    assert main(["inspect", "/nowhere"]) == 1
    assert "No such file" in capsys.readouterr().err


def test_as_a_user_runs_it(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(ENVELOPE[:44] + bytes(16))
    command = [sys.executable, "-m", "cipherlane", "inspect", str(tmp_path / "v")]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (outcome.returncode, "0 bytes" in outcome.stdout) == (0, True)
