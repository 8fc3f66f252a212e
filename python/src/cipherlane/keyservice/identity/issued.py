"""A certificate from the key service: the request for it, and the checks of it [CL-IDN-030] [CL-IDN-033]."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple, Optional, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keyservice.answers import CertificateAnswer

MAX_PEM = 65_536
"""Bytes of a chain."""
MAX_CERTIFICATES = 16

PrivateKey = ec.EllipticCurvePrivateKey


class Issued(NamedTuple):
    """A checked certificate, its private key and the CAs to trust; shows no key."""

    key: PrivateKey
    leaf: x509.Certificate
    chain: bytes
    """PEM, from the leaf up"""
    ca: bytes
    """PEM"""
    principal: str

    def key_pem(self) -> bytes:
        """PKCS #8, not encrypted; for a TLS library in this process, and nothing else."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def __repr__(self) -> str:
        """The principal."""
        return f"Issued({self.principal})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses: the key stays in its process."""
        raise TypeError("a certificate with its key cannot be copied or pickled")


def new_request() -> tuple[PrivateKey, str]:
    """A new key, which is in memory only, and the request for its certificate in PEM [CL-IDN-030]."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    return key, request.public_bytes(serialization.Encoding.PEM).decode()


def checked(key: PrivateKey, answer: CertificateAnswer, principal: Optional[str]) -> Issued:
    """What may be used of an answer [CL-IDN-033].

    Args:
        key: that the request was made with
        answer: of the key service
        principal: that the certificate before named; None for the first

    Raises:
        CipherlaneError: ``key-service-bad-answer``
    """
    chain, cas = _certificates(answer.certificate), _certificates(answer.ca)
    leaf = chain[0]
    if _public(leaf.public_key()) != _public(key.public_key()):
        raise _bad("the certificate is for another key")
    found = principal_of(leaf)
    if found is None or (principal is not None and found != principal):
        raise _bad("the certificate does not name the principal that this client is")
    if not all(_holds(certificate) for certificate in chain):
        raise _bad("the certificate is not valid now: look at the clocks")
    if not _chains(chain, cas):
        raise _bad("the certificate does not chain to the CA of the same answer")
    return Issued(key, leaf, answer.certificate.encode(), answer.ca.encode(), found)


def principal_of(certificate: x509.Certificate) -> Optional[str]:
    """As the key service takes it: the one SPIFFE id, else the common name [CL-API-002]."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (x509.ExtensionNotFound, ValueError):
        uris = []
    spiffe = [uri for uri in uris if uri.startswith("spiffe://")]
    if spiffe:
        return spiffe[0] if len(spiffe) == 1 else None
    common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(common[0].value) if len(common) == 1 and "://" not in str(common[0].value) else None


def _certificates(pem: str) -> list[x509.Certificate]:
    if len(pem) > MAX_PEM:
        raise _bad(f"certificates of more than {MAX_PEM} bytes")
    try:
        found = x509.load_pem_x509_certificates(pem.encode("ascii"))
    except ValueError:
        raise _bad("certificates that are not PEM") from None
    if len(found) > MAX_CERTIFICATES:
        raise _bad(f"more than {MAX_CERTIFICATES} certificates")
    return found


def _public(key: object) -> bytes:
    data: bytes = key.public_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return data


def _holds(certificate: x509.Certificate) -> bool:
    return certificate.not_valid_before_utc <= dt.datetime.now(dt.timezone.utc) < certificate.not_valid_after_utc


def _chains(chain: Sequence[x509.Certificate], cas: Sequence[x509.Certificate]) -> bool:
    steps = zip(chain, chain[1:])
    trusted = [ca for ca in cas if _holds(ca)]
    return all(_issued_by(below, above) for below, above in steps) and any(_issued_by(chain[-1], ca) for ca in trusted)


def _issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
        return issuer.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False


def _bad(what: str) -> CipherlaneError:
    return CipherlaneError(ErrorCode.KEY_SERVICE_BAD_ANSWER, what)
