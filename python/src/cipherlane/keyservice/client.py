"""The client of the key service: HTTP over mutual TLS, bounded in time and size, with fail-over."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keyservice import answers
from cipherlane.keyservice.tls import ReloadingContext, time_limits

if TYPE_CHECKING:
    from cipherlane.configuration import Configuration
    from cipherlane.keys import DecryptionAnswer, EncryptionAnswer, UsageReport

MAX_ANSWER = 1024 * 1024
"""Bytes of an answer's body."""

# A kept connection that the server closed meanwhile fails when it is used, on reading or ("other") in TLS: once more,
# on a new one. Connecting is not repeated, nothing is followed.
_RETRY = urllib3.Retry(total=1, connect=0, read=1, redirect=0, status=0, other=1, allowed_methods=None)


class _Answer(NamedTuple):
    content: tuple[int, str, bytes]
    """status, content type, body"""
    date: Optional[str]

    @property
    def try_next(self) -> bool:
        """Whether another address may do better [CL-KEY-014]."""
        return self.content[0] == 429 or 500 <= self.content[0] <= 599


class KeyServiceClient:
    """Asks the key service; a :class:`cipherlane.keys.KeySource`. Safe for use by threads, and after a fork.

    Args:
        configuration: addresses, PEM files and time-outs

    Raises:
        ConfigurationError: a PEM file cannot be used
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._context = ReloadingContext(configuration)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._pools = self._new_pools()
        self._preferred = 0

    def encryption_key(self, topic: str, usage: Optional[UsageReport]) -> EncryptionAnswer:
        """The current key of a topic, or the mode that needs none.

        Raises:
            CipherlaneError: refused, no answer, or an answer that breaks the specification
        """
        request: dict[str, Any] = {"topic": topic}
        if usage is not None:
            request["usage"] = {"kid": usage.kid.hex(), "records": usage.records, "bytes": usage.bytes}
        return answers.encryption_key(*self._post("/v1/encryption-key", request).content)

    def decryption_keys(self, topic: str, kids: Sequence[bytes]) -> DecryptionAnswer:
        """Keys for records read from a topic, and how plaintext is met there.

        Args:
            topic: from which the records were read
            kids: 0 to 1,000, all different

        Raises:
            CipherlaneError: refused, no answer, or an answer that breaks the specification
        """
        request = {"topic": topic, "kids": [kid.hex() for kid in kids]}
        return answers.decryption_keys(kids, *self._post("/v1/decryption-keys", request).content)

    def date(self) -> Optional[str]:
        """What the service's clock says: the header ``Date`` of whatever it answers.

        Raises:
            CipherlaneError: no answer from any address
        """
        return self._post("/v1/", {}).date

    def close(self) -> None:
        """Closes the connections that are kept."""
        for pool in self._pools:
            pool.close()

    def __repr__(self) -> str:
        """The addresses."""
        return f"KeyServiceClient({', '.join(self._configuration.urls)})"

    def _post(self, path: str, request: dict[str, Any]) -> _Answer:
        """Asks the addresses in turn, beginning with the one that answered last [CL-KEY-014]."""
        body = json.dumps(request).encode()
        pools = self._current_pools()
        answer: Optional[_Answer] = None
        reasons = []
        for step in range(len(pools)):
            index = (self._preferred + step) % len(pools)
            try:
                answer = self._attempt(pools[index], path, body)
            except (HTTPError, OSError) as error:
                reasons.append(f"{self._configuration.urls[index]}: {_reason(error)}")
                continue
            if not answer.try_next:
                self._preferred = index
                return answer
        if answer is not None:
            return answer
        raise CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, "; ".join(reasons)) from None

    def _attempt(self, pool: urllib3.HTTPSConnectionPool, path: str, body: bytes) -> _Answer:
        limits = self._configuration.connect_timeout, self._configuration.request_timeout
        with time_limits(*limits):
            response = pool.urlopen(
                "POST",
                path,
                body=body,
                headers={"Content-Type": "application/json", "Accept": "application/json, application/problem+json"},
                retries=_RETRY,
                redirect=False,
                timeout=urllib3.Timeout(total=limits[1], connect=limits[0]),
                preload_content=False,
                decode_content=False,
            )
            return _read(response)

    def _current_pools(self) -> list[urllib3.HTTPSConnectionPool]:
        """New connections in a forked child, which must not write into its parent's, and for new PEM files."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()  # another thread of the parent may have held the old one
            self._pools = self._new_pools()
        with self._lock:
            if self._context.renew():  # requests under way keep the old connections, which then go
                self._pools = self._new_pools()
            return self._pools

    def _new_pools(self) -> list[urllib3.HTTPSConnectionPool]:
        return [self._new_pool(url) for url in self._configuration.urls]

    def _new_pool(self, url: str) -> urllib3.HTTPSConnectionPool:
        address = urlsplit(url)
        return urllib3.HTTPSConnectionPool(
            address.hostname or "",
            address.port,
            maxsize=4,
            ssl_context=self._context.current,
            cert_reqs="CERT_REQUIRED",
        )


def _read(response: urllib3.BaseHTTPResponse) -> _Answer:
    body = b""
    # Reads until there is nothing more: only then urllib3 notices that a body ended too early.
    while len(body) <= MAX_ANSWER and (piece := response.read(MAX_ANSWER + 1 - len(body))):
        body += piece
    if len(body) > MAX_ANSWER:
        response.close()
        raise CipherlaneError(ErrorCode.KEY_SERVICE_BAD_ANSWER, f"an answer of more than {MAX_ANSWER} bytes")
    response.release_conn()
    content = response.status, response.headers.get("Content-Type", ""), body
    return _Answer(content, response.headers.get("Date"))


def _reason(error: Exception) -> str:
    """The innermost cause in words; none of these holds a request or an answer."""
    reason = getattr(error, "reason", None) or error
    return f"{type(reason).__name__}: {answers.printable(str(reason))}"
