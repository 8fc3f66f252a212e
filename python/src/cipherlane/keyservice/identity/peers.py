"""TLS towards Kafka with the certificate that the key service issues: each handshake shows the one in use."""

from __future__ import annotations

import ssl
from typing import Any, Optional

from cipherlane.errors import CipherlaneError
from cipherlane.keyservice.identity import tls
from cipherlane.keyservice.identity.renewal import Held, Identity


class PeerContext(ssl.SSLContext):
    """A client's context for asyncio that never changes, and makes each handshake with one of the certificate in use.

    Peers must chain to the CAs that came with it [CL-IDN-034]. When no certificate holds, no peer is trusted, so that
    connecting fails [CL-IDN-036].

    Args:
        identity: whose certificate it is
    """

    _identity: Identity
    _made: tuple[Optional[Held], ssl.SSLContext]

    def __new__(cls, identity: Identity) -> PeerContext:
        """As the constructor of ``ssl.SSLContext``, which takes a protocol."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._identity = identity
        made._made = (None, _bare())
        return made

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:  # noqa: ANN401 - the arguments of ssl
        """What asyncio begins a handshake with; does not wait for a certificate."""
        return self._now().wrap_bio(*args, **kwargs)

    def _now(self) -> ssl.SSLContext:
        try:
            held = self._identity.held(wait=False)
        except CipherlaneError:
            return _bare()
        if held is not self._made[0]:
            self._made = (held, held.context if held.issued is None else tls.show(_bare(), held.issued))
        return self._made[1]


def _bare() -> ssl.SSLContext:
    """It trusts nobody."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made
