"""TLS contexts whose private key was never in a file on a disk.

OpenSSL's functions behind the module ``ssl`` read chain and key from a path. On Linux it is that of a ``memfd``, memory
of this process with a descriptor and no name; elsewhere that of an anonymous pipe (``/dev/fd/N``), whose bytes are in
the kernel until they are read. Where there is no such path (Windows), renewing in memory is refused.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
from pathlib import Path
from typing import Iterator

from cipherlane.errors import ConfigurationError
from cipherlane.keyservice.identity.issued import Issued

_DESCRIPTORS = Path("/dev/fd")


def show(context: ssl.SSLContext, issued: Issued) -> ssl.SSLContext:
    """The context, which now shows this certificate and trusts its CAs too [CL-IDN-034]."""
    context.load_verify_locations(cadata=issued.ca.decode())
    with _in_memory(issued.chain) as chain, _in_memory(issued.key_pem()) as key:
        context.load_cert_chain(chain, key)
    return context


def check_system() -> None:
    """Raises ``ConfigurationError`` where a key cannot be handed to OpenSSL without a file."""
    if not _DESCRIPTORS.is_dir():
        raise ConfigurationError("cipherlane.identity.renew: this system has no /dev/fd; renew the PEM files instead")


def _in_memory(pem: bytes) -> contextlib.AbstractContextManager[str]:
    """A path that gives these bytes while the context lasts."""
    return _memfd(pem) if hasattr(os, "memfd_create") else _piped(pem)


@contextlib.contextmanager
def _memfd(pem: bytes) -> Iterator[str]:
    with os.fdopen(os.memfd_create("cipherlane"), "r+b", buffering=0) as file:
        file.write(pem)
        yield f"{_DESCRIPTORS}/{file.fileno()}"
        file.seek(0)
        file.write(bytes(len(pem)))


@contextlib.contextmanager
def _piped(pem: bytes) -> Iterator[str]:
    reading, writing = os.pipe()
    # In a thread, because the buffer of a pipe may be small; it ends with the pipe.
    writer = threading.Thread(target=_write, args=(writing, pem), daemon=True)
    writer.start()
    try:
        yield f"{_DESCRIPTORS}/{reading}"
    finally:
        os.close(reading)
        writer.join()


def _write(descriptor: int, pem: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb", buffering=0) as pipe:
        pipe.write(pem)
