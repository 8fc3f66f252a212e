"""This client's certificate where the key service issues it: in memory, renewed, one for all that share its settings.

Rules CL-IDN-030 to CL-IDN-036 (spec/identity.md).
"""

from cipherlane.keyservice.identity.peers import PeerContext
from cipherlane.keyservice.identity.renewal import Held, Identity, IdentityContext, shared

__all__ = ["Held", "Identity", "IdentityContext", "PeerContext", "shared"]
