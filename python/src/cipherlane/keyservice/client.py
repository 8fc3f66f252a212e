"""The client of the key service: its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from cipherlane.keyservice import answers, identity
from cipherlane.keyservice.tls import ReloadingContext
from cipherlane.keyservice.transport import Transport

if TYPE_CHECKING:
    from cipherlane.configuration import Configuration
    from cipherlane.keys import DecryptionAnswer, EncryptionAnswer, UsageReport


class KeyServiceClient:
    """Asks the key service; a :class:`cipherlane.keys.KeySource`. Safe for use by threads, and after a fork.

    Args:
        configuration: addresses, identity and time-outs

    Raises:
        ConfigurationError: a file cannot be used
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._transport = Transport(configuration, _contexts(configuration))

    def encryption_key(self, topic: str, usage: Optional[UsageReport]) -> EncryptionAnswer:
        """The current key of a topic, or the mode that needs none.

        Raises:
            CipherlaneError: refused, no answer, or an answer that breaks the specification
        """
        request: dict[str, Any] = {"topic": topic}
        if usage is not None:
            request["usage"] = {"kid": usage.kid.hex(), "records": usage.records, "bytes": usage.bytes}
        return answers.encryption_key(*self._transport.post("/v1/encryption-key", request).content)

    def decryption_keys(self, topic: str, kids: Sequence[bytes]) -> DecryptionAnswer:
        """Keys for records read from a topic, and how plaintext is met there.

        Args:
            topic: from which the records were read
            kids: 0 to 1,000, all different

        Raises:
            CipherlaneError: refused, no answer, or an answer that breaks the specification
        """
        request = {"topic": topic, "kids": [kid.hex() for kid in kids]}
        return answers.decryption_keys(kids, *self._transport.post("/v1/decryption-keys", request).content)

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._transport.close()

    def __repr__(self) -> str:
        """The addresses."""
        return f"KeyServiceClient({', '.join(self._configuration.urls)})"


def _contexts(configuration: Configuration) -> Union[ReloadingContext, identity.IdentityContext]:
    """Of the certificate that the key service issues, or of the PEM files as they are."""
    if configuration.identity_renew:
        return identity.IdentityContext(identity.shared(configuration))
    return ReloadingContext(configuration)
