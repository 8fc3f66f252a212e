"""The client of the key service: mutual TLS, fail-over, strict answers. Knows nothing of envelopes and Kafka."""

from cipherlane.keyservice.client import KeyServiceClient

__all__ = ["KeyServiceClient"]
