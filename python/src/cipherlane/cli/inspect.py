"""``inspect``: shows what the bytes of an envelope say. It needs no key and shows none."""

from __future__ import annotations

import argparse
import base64
import binascii
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

from cipherlane import envelope
from cipherlane.cipher import PREFIX_SIZE
from cipherlane.envelope import Envelope
from cipherlane.errors import CipherlaneError

_LONGEST = 1_073_741_824 + 1024
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "hex": lambda text: bytes.fromhex(text.decode("ascii")),
    "base64": lambda text: base64.b64decode(text.strip(), validate=True),
}


def add_to(commands: Any) -> None:  # noqa: ANN401 - argparse does not name this type
    """Adds the command."""
    parser = commands.add_parser("inspect", help="show what the bytes of a record's value say", description=__doc__)
    parser.add_argument("file", help="the value, as it was read from Kafka; - for standard input")
    parser.add_argument("--as", dest="form", choices=list(_DECODERS), default="raw", help="how the file writes it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    try:
        value = _DECODERS[arguments.form](_read(arguments.file))
    except OSError as error:
        return _refuse(f"{arguments.file}: {error.strerror}")
    except (ValueError, binascii.Error):
        return _refuse(f"{arguments.file}: is not {arguments.form}")
    if not envelope.is_envelope(value):
        return _refuse(f"not an envelope: {len(value)} bytes that do not start with {envelope.MAGIC.hex()}; plaintext")
    try:
        parsed = envelope.parse(value)
    except CipherlaneError as error:
        return _refuse(str(error))
    for name, content in _fields(parsed):
        sys.stdout.write(f"{name:<20} {content}\n")
    return 0


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(_LONGEST)
    with Path(file).open("rb") as opened:
        return opened.read(_LONGEST)


def _fields(parsed: Envelope) -> Iterator[tuple[str, object]]:
    yield "version", envelope.VERSION
    yield "flags", f"{parsed.flags:08b}"
    yield "compression", "zstd" if parsed.compressed else "none"
    yield "record key", "bound" if parsed.record_key_bound else "not bound"
    yield "kid", parsed.kid.hex()
    yield "session", parsed.nonce[:PREFIX_SIZE].hex()
    yield "record of session", int.from_bytes(parsed.nonce[PREFIX_SIZE:], "big")
    size = len(parsed.ciphertext) - 16
    yield "content", f"{size} bytes" + (" (compressed)" if parsed.compressed else "")
    yield "tag", parsed.ciphertext[-16:].hex()


def _refuse(why: str) -> int:
    sys.stderr.write(f"inspect: {why}\n")
    return 1
