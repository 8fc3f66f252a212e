"""HTTP towards the key service over mutual TLS: bounded in time and size, with fail-over."""

from __future__ import annotations

import json
import os
import ssl
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keyservice import answers
from cipherlane.keyservice.tls import time_limits

if TYPE_CHECKING:
    from cipherlane.configuration import Configuration

MAX_ANSWER = 1024 * 1024
"""Bytes of an answer's body."""

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, application/problem+json"}

# A kept connection that the server closed meanwhile fails when it is used, on reading or ("other") in TLS: once more,
# on a new one. Connecting is not repeated, nothing is followed.
_RETRY = urllib3.Retry(total=1, connect=0, read=1, redirect=0, status=0, other=1, allowed_methods=None)


class Answer(NamedTuple):
    """What came back."""

    content: tuple[int, str, bytes]
    """status, content type, body"""
    date: Optional[str]

    @property
    def try_next(self) -> bool:
        """Whether another address may do better [CL-KEY-014]."""
        return self.content[0] == 429 or 500 <= self.content[0] <= 599


class Contexts(Protocol):
    """Where the TLS context comes from."""

    @property
    def current(self) -> ssl.SSLContext:
        """The one in force."""

    def renew(self) -> bool:
        """Called before each request; whether there is a new one."""


class Transport:
    """See the module. Safe for use by threads, and after a fork.

    Args:
        configuration: addresses and time-outs
        contexts: of TLS
    """

    def __init__(self, configuration: Configuration, contexts: Contexts) -> None:
        self._configuration = configuration
        self._contexts = contexts
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._pools: Optional[list[urllib3.HTTPSConnectionPool]] = None
        self._preferred = 0

    def post(self, path: str, request: dict[str, Any], bearer: Optional[str] = None) -> Answer:
        """Asks the addresses in turn, beginning with the one that answered last [CL-KEY-014].

        Args:
            path: of the call
            request: its body
            bearer: a token or a JWT

        Raises:
            CipherlaneError: ``key-service-unavailable``: no answer from any address
        """
        body = json.dumps(request).encode()
        headers = _HEADERS if bearer is None else {**_HEADERS, "Authorization": f"Bearer {bearer}"}
        pools = self._current_pools()
        answer: Optional[Answer] = None
        reasons = []
        for step in range(len(pools)):
            index = (self._preferred + step) % len(pools)
            try:
                answer = self._attempt(pools[index], path, body, headers)
            except (HTTPError, OSError) as error:
                reasons.append(f"{self._configuration.urls[index]}: {_reason(error)}")
                continue
            if not answer.try_next:
                self._preferred = index
                return answer
        if answer is not None:
            return answer
        raise CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, "; ".join(reasons)) from None

    def _attempt(self, pool: urllib3.HTTPSConnectionPool, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        limits = self._configuration.connect_timeout, self._configuration.request_timeout
        with time_limits(*limits):
            response = pool.urlopen(
                "POST",
                path,
                body=body,
                headers=headers,
                retries=_RETRY,
                redirect=False,
                timeout=urllib3.Timeout(total=limits[1], connect=limits[0]),
                preload_content=False,
                decode_content=False,
            )
            return _read(response)

    def _current_pools(self) -> list[urllib3.HTTPSConnectionPool]:
        """New connections in a forked child, which must not write into its parent's, and for a new certificate."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._lock = threading.Lock()  # another thread of the parent may have held the old one
            self._pools = None
        with self._lock:
            # Requests under way keep the old connections, which then go.
            if self._contexts.renew() or self._pools is None:
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
            ssl_context=self._contexts.current,
            cert_reqs="CERT_REQUIRED",
        )

    def close(self) -> None:
        """Closes the connections that are kept."""
        for pool in self._pools or ():
            pool.close()


def _read(response: urllib3.BaseHTTPResponse) -> Answer:
    body = b""
    # Reads until there is nothing more: only then urllib3 notices that a body ended too early.
    while len(body) <= MAX_ANSWER and (piece := response.read(MAX_ANSWER + 1 - len(body))):
        body += piece
    if len(body) > MAX_ANSWER:
        response.close()
        raise CipherlaneError(ErrorCode.KEY_SERVICE_BAD_ANSWER, f"an answer of more than {MAX_ANSWER} bytes")
    response.release_conn()
    content = response.status, response.headers.get("Content-Type", ""), body
    return Answer(content, response.headers.get("Date"))


def _reason(error: Exception) -> str:
    """The innermost cause in words; none of these holds a request or an answer."""
    reason = getattr(error, "reason", None) or error
    return f"{type(reason).__name__}: {answers.printable(str(reason))}"
