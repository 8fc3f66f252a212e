"""What lies on the broker's disk: a scan for plaintext, and a hexdump of one record with its fields named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WINDOW_BYTES = 16
FIXED_FIELDS = (
    (0, 2, "magic"),
    (2, 3, "version"),
    (4, 20, "key id: which data key"),
    (20, 40, "nonce: drawn once by the producer's session"),
    (40, 44, "nonce: the record's counter"),
)
TAG_BYTES = 16
BYTES_A_LINE = 16


@dataclass(frozen=True)
class Scan:
    """Files and bytes looked at, and how many positions hold a run of the input."""

    files: int
    bytes: int
    hits: int


def windows(values: Iterable[str]) -> frozenset[bytes]:
    """Every run of 16 bytes that occurs in the values."""
    found: set[bytes] = set()
    for value in values:
        data = value.encode()
        found.update(data[i : i + WINDOW_BYTES] for i in range(len(data) - WINDOW_BYTES + 1))
    return frozenset(found)


def scan(folder: Path, plaintext: frozenset[bytes], *, leave_out: str = "", only: str = "") -> Scan:
    """Look at every byte position of every file of a broker's log folder.

    `leave_out` and `only` are topic names; partitions of a topic are folders named TOPIC-NUMBER.
    Finds plaintext as it stands: not what is compressed or encoded.
    """
    files = total = hits = 0
    for file in _files(folder, leave_out, only):
        data = file.read_bytes()
        files += 1
        total += len(data)
        data = data.rstrip(b"\x00")  # index files are allocated ahead: megabytes of zeros
        hits += sum(data[i : i + WINDOW_BYTES] in plaintext for i in range(len(data) - WINDOW_BYTES + 1))
    return Scan(files, total, hits)


def _files(folder: Path, leave_out: str, only: str) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        topic = file.relative_to(folder).parts[0].rpartition("-")[0]
        if file.is_file() and topic != (leave_out or None) and (not only or topic == only):
            yield file


def hexdump(envelope: bytes) -> Iterator[str]:
    """Lines that show an envelope field by field (spec/envelope.md)."""
    end = len(envelope) - TAG_BYTES
    own = ((3, 4, _flags(envelope[3])), (44, end, f"ciphertext, {end - 44} bytes"), (end, len(envelope), "tag"))
    for start, stop, name in sorted((*FIXED_FIELDS, *own)):
        for offset in range(start, stop, BYTES_A_LINE):
            piece = envelope[offset : min(offset + BYTES_A_LINE, stop)]
            yield f"{offset:04x}  {piece.hex(' '):<48} {name if offset == start else ''}".rstrip()


def _flags(byte: int) -> str:
    compression = ("no compression", "zstd")[byte & 3] if byte & 3 < 2 else "unknown compression"
    return f"flags: {compression}, record key {'bound' if byte & 4 else 'not bound'}"
