"""How a client proves who it is when it asks for a certificate [CL-IDN-035]."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import NamedTuple, Optional

from cipherlane.configuration import IDENTITY_JWT, IDENTITY_TOKEN, Configuration
from cipherlane.errors import CipherlaneError, ConfigurationError, ErrorCode
from cipherlane.keyservice.identity.issued import Issued
from cipherlane.keyservice.tls import client_context

_LONGEST = 16_384
_BEARER = re.compile(r"[A-Za-z0-9._~+/=-]+")


class Proof(NamedTuple):
    """What goes with a request."""

    current: ssl.SSLContext
    bearer: Optional[str]

    def renew(self) -> bool:
        """False: it serves for one request."""
        return False


class Proofs:
    """The proofs of one client's settings.

    Args:
        configuration: of which the files are read each time

    Raises:
        ConfigurationError: a file cannot be read
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._answered: Optional[str] = None
        self.first()

    def first(self) -> Proof:
        """Without a certificate in use: the JWT, the token, or the PEM files.

        Raises:
            ConfigurationError: a file cannot be read
            CipherlaneError: the token was answered before
        """
        settings = self._configuration
        context = client_context(settings)
        if settings.identity_token:
            token = read_bearer(IDENTITY_TOKEN, settings.identity_token)
            if token == self._answered:
                detail = f"the token in {settings.identity_token} was used; put a new one there"
                raise CipherlaneError(ErrorCode.UNAUTHENTICATED, detail)
            return Proof(context, token)
        return Proof(context, self._jwt())

    def next(self, in_use: ssl.SSLContext, issued: Optional[Issued]) -> Proof:
        """With a certificate in use: the JWT where there is one, else that certificate."""
        jwt = self._jwt()
        if jwt is None:
            return Proof(in_use, None)
        context = client_context(self._configuration, authorities=(issued.ca.decode() if issued else ""))
        return Proof(context, jwt)

    def answered(self, proof: Proof) -> None:
        """A token that was answered is not sent again."""
        if self._configuration.identity_token and proof.bearer is not None:
            self._answered = proof.bearer

    def advice(self) -> str:
        """What to do when no certificate is to be had."""
        settings = self._configuration
        if settings.identity_token:
            return f"put a new bootstrap token into {settings.identity_token}"
        if settings.identity_jwt:
            return f"see that {settings.identity_jwt} holds a JWT that the key service takes"
        return f"put a new certificate and its key into {settings.tls_certificate} and {settings.tls_key}"

    def _jwt(self) -> Optional[str]:
        file = self._configuration.identity_jwt
        return read_bearer(IDENTITY_JWT, file) if file else None


def read_bearer(setting: str, file: str) -> str:
    """A token or a JWT from a file; raises ``ConfigurationError``, which shows none of it."""
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_LONGEST + 1).decode("ascii").strip()
    except OSError as error:
        raise ConfigurationError(f"{setting}: {file} cannot be read: {error.strerror}") from None
    except ValueError:
        text = ""
    if len(text) > _LONGEST or _BEARER.fullmatch(text) is None:
        raise ConfigurationError(f"{setting}: {file} does not hold one token and nothing else")
    return text
