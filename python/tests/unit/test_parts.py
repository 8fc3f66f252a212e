"""The small parts: clock, decompression, JSON, and how the package sits in a process."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from cipherlane import clock, compression
from cipherlane.errors import CipherlaneError
from cipherlane.keyservice import strict_json
from hostile import Authority, raw, serving
from support import zstd


def test_the_clock_of_this_system_runs_on_through_suspend() -> None:
    """CL-KEY-005: CLOCK_BOOTTIME where there is one."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock.lease_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_the_clock_of_other_systems_takes_the_larger_advance() -> None:
    """CL-KEY-005, spec/decisions/0004: a wall clock set forward ends leases early, one set back changes nothing."""
    now = {"monotonic": 10.0, "wall": 5000.0}
    other = clock.LargerAdvanceClock(lambda: now["monotonic"], lambda: now["wall"])
    seen = [other()]
    for monotonic, wall in ((1, 1), (2, 60), (3, -4000), (0, -1), (0, 0), (1, 1)):
        now["monotonic"] += monotonic
        now["wall"] += wall
        seen.append(other())
    assert seen == [0, 1, 61, 64, 64, 64, 65]
    assert clock.LargerAdvanceClock()() < 1


def code_of(frame: bytes, limit: int) -> str:
    with pytest.raises(CipherlaneError) as raised:
        compression.decompress(frame, limit)
    return raised.value.code


def test_decompression_takes_windows_up_to_the_limit() -> None:
    """CL-ENV-011: 8 MiB always, more only where the plaintext may be that long."""

    def frame(window_log: int) -> bytes:
        options: Any = {zstd.CompressionParameter.window_log: window_log}
        compressor = zstd.ZstdCompressor(options=options)
        compressed: bytes = compressor.compress(b"x" * 1000) + compressor.flush()
        return compressed

    assert compression.decompress(frame(23), 1000) == b"x" * 1000
    assert code_of(frame(24), 1000) == "decompression-failed"
    assert compression.decompress(frame(24), 1 << 24) == b"x" * 1000
    assert code_of(frame(25), 1 << 24) == "decompression-failed"


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    """CL-ENV-011: 64 MiB of zeros in a frame that does not say its size."""
    compressor = zstd.ZstdCompressor()
    bomb = b"".join([*(compressor.compress(bytes(1 << 20)) for _ in range(64)), compressor.flush()])
    tracemalloc.start()
    try:
        assert code_of(bomb, 1000) == "plaintext-too-long"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 1, 1000, 200_000])
def test_decompression_at_the_limit(size: int) -> None:
    """CL-ENV-011."""
    frame = zstd.compress(b"a" * size)
    assert compression.decompress(frame, max(size, 1)) == b"a" * size
    if size > 1:
        assert code_of(frame, size - 1) == "plaintext-too-long"
    for broken in (frame[:-1], frame + b"\0", frame * 2, b"", frame[1:]):
        assert code_of(broken, 1 << 20) == "decompression-failed"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nul", b"1.0", b"1e2", b"-0.0", b"NaN", b"Infinity", b"[1,]", b"\xff", b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}", b"{}{}", b'{"a":1,"a":1}', b'[{"a":1,"\\u0061":2}]', b"[" * 9 + b"]" * 9,
        b"[" * 100_000, b'{"a":' * 9 + b"1" + b"}" * 9, b"1" * 5000, "{}".encode("utf-16"),
    ],
)  # fmt: skip
def test_json_that_is_not_taken(body: bytes) -> None:
    """CL-KEY-003: and the error does not carry the text along."""
    with pytest.raises(strict_json.StrictJsonError) as raised:
        strict_json.loads(body)
    assert not hasattr(raised.value, "doc")
    assert raised.value.__cause__ is None
    assert len(str(raised.value)) < 60


@pytest.mark.parametrize("body", [b"{}", b" [1, -2, true, null] ", b"[" * 8 + b"]" * 8, '{"ä": "\\u00e4"}'.encode()])
def test_json_that_is_taken(body: bytes) -> None:
    assert strict_json.loads(body) is not None


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_core_needs_no_kafka_client() -> None:
    """Arrows point one way: kafka to core to nothing."""
    done = run("import sys, cipherlane; sys.exit(any('confluent' in name for name in sys.modules))")
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_end_with_the_interpreter(tmp_path: Path) -> None:
    """A client that was not closed, with a request under way that hangs, does not keep the process."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    script = """
import sys, threading, time
from cipherlane import Decryptor
url, ca, certificate, key = sys.argv[1:]
tls = "cipherlane.keyservice.tls."
decryptor = Decryptor.from_settings({"cipherlane.keyservice.urls": url, tls + "ca": ca,
    tls + "certificate": certificate, tls + "key": key, "cipherlane.keyservice.request.timeout.ms": 60000})
threading.Thread(target=decryptor.decrypt, args=("t", b"x"), daemon=True).start()
time.sleep(0.5)
print([thread.name for thread in threading.enumerate() if thread.name.startswith("cipherlane")])
"""
    with serving(authority, raw(b"", pause=20)) as server:
        started = time.monotonic()
        done = run(script, server.url, authority.path, certificate, key)
        assert (done.returncode, done.stdout) == (0, "['cipherlane-keys']\n"), done.stderr
        assert time.monotonic() - started < 10
        assert len(server.requests) == 1


def test_the_clock_where_there_is_no_boot_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-KEY-005, spec/decisions/0004."""
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert isinstance(clock._of_this_system(), clock.LargerAdvanceClock)
