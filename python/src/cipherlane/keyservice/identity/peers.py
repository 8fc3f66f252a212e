"""TLS towards Kafka with the certificate that the key service issues: each handshake shows the one in use."""

from __future__ import annotations

import ssl
from typing import Any, Optional

from cryptography import x509

from cipherlane.errors import CipherlaneError
from cipherlane.keyservice.identity import tls
from cipherlane.keyservice.identity.issued import principal_of
from cipherlane.keyservice.identity.renewal import Held, Identity
from cipherlane.names import IdSet

ANYONE = IdSet()


class PeerContext(ssl.SSLContext):
    """A client's context for asyncio that never changes, and makes each handshake with one of the certificate in use.

    Peers must chain to the CAs that came with it [CL-IDN-034], and carry one of the ids [CL-TLS-011]. When no
    certificate holds, no peer is trusted, so that connecting fails [CL-IDN-036].

    Args:
        identity: whose certificate it is
        peers: SPIFFE ids; without patterns any will do
    """

    _identity: Identity
    _made: tuple[Optional[Held], ssl.SSLContext]
    _session: type[ssl.SSLObject]

    def __new__(cls, identity: Identity, peers: IdSet = ANYONE) -> PeerContext:
        """As the constructor of ``ssl.SSLContext``, which takes a protocol."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._identity = identity
        made._made = (None, _bare())
        made._session = type("PeerSession", (_PeerSession,), {"peers": peers})
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
            made = self._identity.files() if held.issued is None else tls.show(_bare(), held.issued)
            made.sslobject_class = self._session
            self._made = (held, made)
        return self._made[1]


class _PeerSession(ssl.SSLObject):
    """Ends a handshake with a peer that it was not meant for, before anything of Kafka's protocol is sent."""

    peers: IdSet

    def do_handshake(self) -> None:
        """Raises ``SSLError`` also for a peer whose certificate carries none of the ids."""
        super().do_handshake()
        shown = self.getpeercert(binary_form=True)
        if self.peers.patterns and not (
            shown and (principal_of(x509.load_der_x509_certificate(shown)) or "") in self.peers
        ):
            raise ssl.SSLCertVerificationError("the peer's certificate names none of cipherlane.tls.peer.ids")


def _bare() -> ssl.SSLContext:
    """It trusts nobody."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made
