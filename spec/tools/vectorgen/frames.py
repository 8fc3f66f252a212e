"""Zstandard frames (RFC 8878) laid out by hand, so that their bytes depend on no version of a library.

Only `compressed` comes from a library: it has real compressed blocks and a checksum.
"""

import struct

from backports.zstd import CompressionParameter, compress

MAGIC = b"\x28\xb5\x2f\xfd"
BLOCK_MAX = 128 * 1024
RAW, RLE, RESERVED = 0, 1, 3


def header(size: int | None, descriptor: int = 0) -> bytes:
    """A frame header: single segment with a content size of 8 bytes, or a 128 KiB window without content size."""
    if size is None:
        return MAGIC + bytes([descriptor, 0x38])
    return MAGIC + bytes([descriptor | 0xE0]) + struct.pack("<Q", size)


def block(kind: int, size: int, content: bytes, *, last: bool) -> bytes:
    """One block: 3 bytes of header, then its content."""
    return struct.pack("<I", size << 3 | kind << 1 | last)[:3] + content


def raw(content: bytes, claimed: int | None = None, *, sized: bool = True) -> bytes:
    """One frame with one stored block; `claimed` is what the header says of its size."""
    size = (len(content) if claimed is None else claimed) if sized else None
    return header(size) + block(RAW, len(content), content, last=True)


def run(byte: bytes, size: int, *, sized: bool) -> bytes:
    """One frame of `size` equal bytes, 4 bytes a block: a bomb if size is large."""
    blocks = [min(BLOCK_MAX, size - at) for at in range(0, size, BLOCK_MAX)]
    body = (block(RLE, n, byte, last=i == len(blocks) - 1) for i, n in enumerate(blocks))
    return header(size if sized else None) + b"".join(body)


def skippable(content: bytes) -> bytes:
    """A skippable frame: it holds no data."""
    return b"\x50\x2a\x4d\x18" + struct.pack("<I", len(content)) + content


def with_dictionary(content: bytes) -> bytes:
    """A frame that asks for dictionary 7."""
    return MAGIC + b"\x21\x07" + bytes([len(content)]) + block(RAW, len(content), content, last=True)


def huge_window(content: bytes) -> bytes:
    """A frame that wants a window of 2^41 bytes."""
    return MAGIC + b"\x00\xf8" + block(RAW, len(content), content, last=True)


def compressed(content: bytes) -> bytes:
    """A frame of the reference library, level 3, with checksum and content size."""
    options: dict[int, int] = {CompressionParameter.compression_level: 3, CompressionParameter.checksum_flag: 1}
    return compress(content, options=options)
