"""Compression of a plaintext: one zstd frame; when reading, in memory bounded by the plaintext limit (envelope.md)."""

from __future__ import annotations

import sys
from typing import Optional

from cipherlane.errors import CipherlaneError, ErrorCode

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_MIN_WINDOW_LOG = 23  # RFC 8878 asks every decoder for windows of 8 MiB
_MAX_WINDOW_LOG = 30


def compress(plaintext: bytes) -> Optional[bytes]:
    """One frame that states its content's size, or None if it would not be shorter [CL-ENV-045]."""
    frame: bytes = zstd.compress(plaintext)
    return frame if len(frame) < len(plaintext) else None


def decompress(frame: bytes, limit: int) -> bytes:
    """Decompresses exactly one complete frame [CL-ENV-011].

    Args:
        frame: the authentic content of an envelope
        limit: most bytes that may come out

    Raises:
        CipherlaneError: ``decompression-failed``, or ``plaintext-too-long`` when more than ``limit`` bytes come out or
            the frame claims that they would
    """
    if frame[:4] != _FRAME_MAGIC:
        raise _failed()
    try:
        return _decompress(frame, limit)
    except zstd.ZstdError:
        raise _failed() from None


def _decompress(frame: bytes, limit: int) -> bytes:
    if (zstd.get_frame_info(frame).decompressed_size or 0) > limit:
        raise _too_long(limit)
    decompressor = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _window_log(limit)})
    plaintext: bytes = decompressor.decompress(frame, max_length=limit + 1)
    if len(plaintext) > limit:
        raise _too_long(limit)
    if not decompressor.eof or decompressor.unused_data:
        raise _failed()
    return plaintext


def _window_log(limit: int) -> int:
    """The largest window that a plaintext within the limit needs: what a frame claims beyond it is not allocated."""
    return min(max(_MIN_WINDOW_LOG, (limit - 1).bit_length()), _MAX_WINDOW_LOG)


def _failed() -> CipherlaneError:
    return CipherlaneError(ErrorCode.DECOMPRESSION_FAILED, "the content is not exactly one zstd frame")


def _too_long(limit: int) -> CipherlaneError:
    return CipherlaneError(ErrorCode.PLAINTEXT_TOO_LONG, f"decompresses to more than {limit} bytes")
