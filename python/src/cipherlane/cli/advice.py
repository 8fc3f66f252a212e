"""What to do about an error of the key service's client, in a line."""

from __future__ import annotations

_BY_CODE = {
    "topic-unknown": "add a topic rule to the policy",
    "topic-forbidden": "the policy says forbid; if that is wrong, change the topic's mode there",
    "not-authorized": "add a grant to the policy for the principal of this certificate",
    "topic-invalid": "take a name of 1 to 249 characters of A-Z a-z 0-9 . _ -",
    "unauthenticated": "the key service takes no name from this certificate: one SPIFFE URI, or a common name",
    "key-service-unavailable": "it runs and does not answer as it should: look at its log and at /readyz",
    "audit-unavailable": "the key service cannot write its audit log: is its disk full?",
    "internal": "look for the request id in the key service's log",
}
_NOT_AN_ANSWER = "is the address really the key service, of a version that fits?"

# What OpenSSL and the system say, in parts that have not changed for years.
_BY_TEXT = (
    ("refused", "nothing listens there: does the key service run, and is the port right?"),
    ("Name or service not known", "the host's name is not known: look at the address and at DNS"),
    ("Temporary failure in name resolution", "the host's name is not known: look at the address and at DNS"),
    ("not valid for", "the host in the address is not a name in the key service's certificate"),
    ("ostname mismatch", "the host in the address is not a name in the key service's certificate"),
    ("IP address mismatch", "the address is not one in the key service's certificate: use the name that is"),
    ("has expired", "the key service's certificate ended: renew it (or this machine's clock is fast)"),
    ("not yet valid", "this machine's clock is slow, or that of the key service's issuer is fast"),
    ("self-signed", "cipherlane.keyservice.tls.ca is not the CA of the key service's certificate"),
    ("self signed", "cipherlane.keyservice.tls.ca is not the CA of the key service's certificate"),
    ("unable to get local issuer", "cipherlane.keyservice.tls.ca is not the CA of the key service's certificate"),
    ("CERTIFICATE_REQUIRED", "the key service saw no certificate of this client"),
    ("UNKNOWN_CA", "the key service does not trust the CA of this client's certificate: look at its client CA"),
    ("BAD_CERTIFICATE", "the key service refuses this client's certificate: is it from its client CA, and in date?"),
    (
        "EOF occurred",
        "it hung up: it refuses this client's certificate (is it from its client CA?), or is no key service",
    ),
    (
        "reset by peer",
        "it hung up: it refuses this client's certificate (is it from its client CA?), or is no key service",
    ),
    ("EXPIRED", "this client's certificate ended: renew it"),
    ("WRONG_VERSION_NUMBER", "the port does not speak TLS: is it the one of the health check?"),
    ("imed out", "no answer in time: a firewall, a wrong address, or an overloaded key service"),
    ("too long", "no answer in time: a firewall, a wrong address, or an overloaded key service"),
)


def for_code(code: str) -> str:
    """What to do about an answer."""
    return _BY_CODE.get(code, _NOT_AN_ANSWER)


def for_certificate(code: str, *, token: bool) -> str:
    """What to do when the key service issues no certificate."""
    if code == "unauthenticated" and token:
        return "the token is unknown, ended or used: make a new one (cipherlane token create PRINCIPAL)"
    if code == "unauthenticated":
        return "it does not take this JWT or certificate: issuer, audience, principal, or its end"
    if code == "not-authorized":
        return "add a grant of the action certificate to the policy for this principal"
    return for_code(code)


def for_connection(detail: str) -> str:
    """What to do when there was no answer, by what was met."""
    return next((what for part, what in _BY_TEXT if part.lower() in detail.lower()), for_code(""))
