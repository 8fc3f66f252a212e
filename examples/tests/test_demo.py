"""The demo itself, run for real, and whether its exit code tells the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import chapters, disk
from demo.__main__ import HERE

EXAMPLES = HERE.parent
TIMEOUT_SECONDS = 280


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", "--records", "8000", "--rate", "2000", *arguments]
    return subprocess.run(command, check=False, cwd=EXAMPLES, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def test_the_demo_holds_what_it_says() -> None:
    outcome = run_demo()
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.count("8,000 of 8,000 records equal the input, 0 differ") == 2
    assert "plaintext at 0 positions" in outcome.stdout
    assert "did not hold" not in outcome.stdout


def test_a_policy_that_sends_plaintext_makes_it_fail(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text((HERE / "policy.yaml").read_text().replace("mode: encrypt", "mode: clear"))
    outcome = run_demo("--policy", str(policy))
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "FAIL" in outcome.stdout


def test_a_policy_that_lets_nobody_read_makes_it_fail(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text((HERE / "policy.yaml").read_text().replace("dev.cipherlane/consumer", "dev.cipherlane/nobody"))
    outcome = run_demo("--policy", str(policy))
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "FAIL 0 of 8,000 records equal the input" in outcome.stdout


def test_an_invalid_policy_ends_it_with_the_reason(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ntopics: nonsense\n")
    outcome = run_demo("--policy", str(policy))
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "key service did not start" in outcome.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (0, "no compression, record key not bound"),
        (1, "zstd, record key not bound"),
        (4, "no compression, record key bound"),
        (5, "zstd, record key bound"),
        (6, "unknown compression, record key bound"),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 100])
def test_the_hexdump_names_the_fields(flags: int, said: str, size: int) -> None:
    """At the offsets of spec/envelope.md, with every byte shown once."""
    value = bytes.fromhex("c19e01") + bytes([flags]) + bytes(range(40 + size + 16))
    lines = [(int(line[:4], 16), bytes.fromhex(line[6:54]), line[55:]) for line in disk.hexdump(value)]
    named = {offset: name for offset, _, name in lines if name}
    expected = {
        0: "magic",
        2: "version",
        3: f"flags: {said}",
        4: "key id: which data key",
        20: "nonce: drawn once by the producer's session",
        40: "nonce: the record's counter",
        44: f"ciphertext, {size} bytes",
        44 + size: "tag",
    }
    assert named == expected
    assert b"".join(piece for _, piece, _ in lines) == value
    assert all(value[offset:].startswith(piece) for offset, piece, _ in lines)


@pytest.mark.parametrize(
    ("output", "right", "wrong"),
    [
        ("0\ta\n1\tb\n", 2, 0),
        ("0\ta\n", 1, 0),
        ("0\ta\n1\tc\n", 1, 1),
        ("0\ta\n0\ta\n1\tb\n", 2, 1),
        ("0\ta\n1\tb\n2\tx\n", 2, 1),
        ("", 0, 0),
        ("nonsense\n", 0, 1),
    ],
)
def test_compare(output: str, right: int, wrong: int) -> None:
    assert chapters.compare(["a", "b"], output) == (right, wrong)


def test_the_scan_finds_plaintext_wherever_it_stands(tmp_path: Path) -> None:
    plaintext = disk.windows(["0123456789abcdefXYZ"])
    for topic, content in (("secret-0", b"\x00" * 7 + b"123456789abcdefX" + b"\xff"), ("other-0", b"0123456789abcde?")):
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "0.log").write_bytes(content)
    assert disk.scan(tmp_path, plaintext).hits == 1
    assert disk.scan(tmp_path, plaintext, leave_out="secret").hits == 0
    assert disk.scan(tmp_path, plaintext, only="secret").hits == 1
    assert disk.scan(tmp_path, plaintext, only="other") == disk.Scan(files=1, bytes=16, hits=0)


def test_the_hexdump_shows_every_byte_once() -> None:
    envelope = bytes(range(97))
    shown = "".join(line[6:54] for line in disk.hexdump(envelope))
    assert bytes.fromhex(shown) == envelope
