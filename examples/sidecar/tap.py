"""A wire that keeps what crosses it: a TCP forwarder between the two sidecars."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

TLS_TYPES = {20, 21, 22, 23}  # change cipher spec, alert, handshake, application data
HEADER = 5


class Tap:
    """Forwards connections from a free port of the loopback, and keeps the bytes of each direction of each."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target: tuple[str, int] | None = None
        self._kept: list[bytearray] = []
        self.port: int = self._listener.getsockname()[1]

    def to(self, address: str) -> None:
        """Begin to forward to an address."""
        host, port = address.rsplit(":", 1)
        self._target = (host, int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        assert self._target is not None
        with contextlib.suppress(OSError):  # the listener is closed at the end
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for source, sink in ((near, far), (far, near)):
                    kept = bytearray()
                    self._kept.append(kept)
                    threading.Thread(target=_copy, args=(source, sink, kept), daemon=True).start()

    def is_tls(self, plaintext: frozenset[bytes]) -> bool:
        """Tell whether all that crossed the wire are TLS records, and how much of the plaintext is seen in them."""
        size = min(len(window) for window in plaintext)
        hits = sum(bytes(kept[i : i + size]) in plaintext for kept in self._kept for i in range(len(kept)))
        records = [_records(kept) for kept in self._kept if kept]
        total = sum(map(len, self._kept))
        print(
            f"{len(records)} streams with {total:,} bytes crossed the wire,"
            f" {sum(count is not None for count in records)} of them all TLS: plaintext at {hits} positions"
        )
        return hits == 0 and total > 0 and all(records)

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()


def _copy(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            kept += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _records(stream: bytearray) -> int | None:
    """How many TLS records a stream is made of; None if it is anything else. The last may be cut."""
    count, at = 0, 0
    while at < len(stream):
        header = stream[at : at + HEADER]
        if header[0] not in TLS_TYPES or bytes(header[1:2]) not in {b"", b"\x03"}:
            return None
        at, count = at + HEADER + int.from_bytes(header[3:5], "big"), count + 1
    return count
