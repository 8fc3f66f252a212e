"""``doctor``: checks configuration, certificate, connections, clock and rights, and says what to fix."""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import sys
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional

from cryptography import x509

from cipherlane import configuration
from cipherlane.cli import advice, kafka, settings_file
from cipherlane.configuration import Configuration
from cipherlane.errors import CipherlaneError, ConfigurationError
from cipherlane.keys import EncryptionGrant, UnencryptedMode
from cipherlane.keyservice import KeyServiceClient, identity
from cipherlane.keyservice.identity.proof import Proof
from cipherlane.keyservice.tls import client_context, load_certificate
from cipherlane.keyservice.transport import Transport
from cipherlane.names import check_topic

MAX_SKEW = 30.0
"""Seconds by which the clocks may differ before it is worth a word: certificates of an hour are renewed well before."""
SOON = dt.timedelta(minutes=10)


class Finding(NamedTuple):
    """What one check found; ``fix`` says what to do if it is not well."""

    what: str
    fix: Optional[str] = None


def add_to(commands: Any) -> None:  # noqa: ANN401 - argparse does not name this type
    """Adds the command."""
    parser = commands.add_parser("doctor", help="check settings, certificate, connections, clock and rights")
    parser.add_argument("settings", help="file with the client's settings: JSON, or lines of name=value")
    parser.add_argument("--topic", action="append", default=[], help="check the rights on a topic; may be repeated")
    sides = ("producer", "consumer", "both")
    parser.add_argument("--as", dest="side", choices=sides, default="both", help="what the client is to do there")
    parser.add_argument("--use-token", action="store_true", help="send the bootstrap token, which uses it up")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    well = True
    for finding in _examine(arguments):
        well = well and finding.fix is None
        sys.stdout.write(f"{'ok  ' if finding.fix is None else 'FAIL'} {finding.what}\n")
        if finding.fix is not None:
            sys.stdout.write(f"     -> {finding.fix}\n")
    return 0 if well else 1


def _examine(arguments: argparse.Namespace) -> Iterator[Finding]:
    try:
        ours, theirs = configuration.split(settings_file.read(arguments.settings))
        settings = Configuration.from_settings(ours)
        client = KeyServiceClient(settings)
    except ConfigurationError as error:
        yield Finding(error.detail, "correct this setting (spec/configuration.md)")
        return
    yield Finding(f"settings: {len(settings.urls)} address(es), failure action {settings.failure_action.value}")
    yield from _certificate("CA", settings.tls_ca)
    if settings.tls_certificate:
        yield from _certificate("certificate", settings.tls_certificate)
    reached = False
    for url in settings.urls:
        finding, answered = _reach(settings, url)
        reached = reached or answered
        yield finding
    withheld = bool(settings.identity_token) and not arguments.use_token
    if reached and withheld:
        yield Finding(
            f"the token in {settings.identity_token} was not sent, because it is good once, and Kafka was not asked:"
            " see --use-token"
        )
    elif reached:
        yield from _issued(settings)
        for topic in arguments.topic:
            yield from _rights(client, topic, arguments.side)
    client.close()
    if not withheld:
        yield from _brokers(settings, theirs)


def _brokers(ours: Configuration, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Kafka itself, where the settings say where it is."""
    where = f"Kafka at {settings.get('bootstrap.servers')}"
    try:
        found = kafka.brokers(ours, settings)
    except ConfigurationError as error:
        yield Finding(error.detail, "correct this setting (spec/configuration.md)")
        return
    except kafka.UnreachableError as unreachable:
        yield Finding(f"{where}: {unreachable}", unreachable.fix)
        return
    if found is not None:
        yield Finding(f"{where} answers: {found} broker(s)")


def _issued(settings: Configuration) -> Iterator[Finding]:
    """The certificate that the key service issues, where it does."""
    if not settings.identity_renew:
        return
    known = identity.shared(settings)
    known.renew()
    if known.failure is not None:
        failed = f"certificate from the key service: {known.failure}"
        yield Finding(failed, advice.for_certificate(known.failure.code, token=bool(settings.identity_token)))
        return
    issued = known.held().issued
    assert issued is not None  # what a renewal brings
    yield Finding(f"the key service issues a {_until(issued.leaf)}")


def _certificate(what: str, file: str) -> Iterator[Finding]:
    """The key and the certificate belong together: the client could be made."""
    found = load_certificate(file)
    now = dt.datetime.now(dt.timezone.utc)
    until = f"{found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    name = f"{what} of {_name(found)}"
    if now < found.not_valid_before_utc:
        yield Finding(f"{name} is not valid yet", "the clock of this machine is slow, or the issuer's is fast")
    elif now >= found.not_valid_after_utc:
        yield Finding(f"{name} ended {until}", "renew it; a running client reads the new file by itself")
    elif found.not_valid_after_utc - now < SOON:
        yield Finding(f"{name} ends {until}, in less than {SOON.seconds // 60} minutes", "see that it is renewed")
    else:
        yield Finding(_until(found, what))


def _until(certificate: x509.Certificate, what: str = "certificate") -> str:
    return f"{what} of {_name(certificate)} until {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"


def _name(certificate: x509.Certificate) -> str:
    """The principal, as the key service takes it from a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        spiffe = [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith("spiffe:")]
    except x509.ExtensionNotFound:
        spiffe = []
    return spiffe[0] if spiffe else certificate.subject.rfc4514_string()


def _reach(settings: Configuration, url: str) -> tuple[Finding, bool]:
    """What one address does, and whether it answers at all."""
    try:
        alone = dataclasses.replace(settings, urls=(url,))
        transport = Transport(alone, Proof(client_context(settings), None))
        date = transport.post("/v1/", {}).date
        transport.close()
    except CipherlaneError as error:
        return Finding(f"{error.code}: {error.detail}", advice.for_connection(error.detail)), False
    return _clock(url, date), True


def _clock(url: str, date: Optional[str]) -> Finding:
    skew = _skew(date)
    if skew is None:
        return Finding(f"{url} answers, without saying the time", "is the address really the key service?")
    if abs(skew) > MAX_SKEW:
        side = "ahead of" if skew > 0 else "behind"
        return Finding(f"{url} answers; this clock is {abs(skew):.0f} s {side} its clock", "set the clocks (NTP)")
    return Finding(f"{url} answers; clocks differ by {abs(skew):.0f} s")


def _skew(date: Optional[str]) -> Optional[float]:
    try:
        return (dt.datetime.now(dt.timezone.utc) - parsedate_to_datetime(date or "")).total_seconds()
    except (TypeError, ValueError):
        return None


def _rights(client: KeyServiceClient, topic: str, side: str) -> Iterator[Finding]:
    if side != "consumer":
        yield _right(topic, "producing", lambda: _encrypting(client, topic))
    if side != "producer":
        yield _right(topic, "consuming", lambda: _decrypting(client, topic))


def _right(topic: str, doing: str, ask: Callable[[], Finding]) -> Finding:
    try:
        check_topic(topic)
        found = ask()
    except CipherlaneError as error:
        return Finding(f"{doing}, topic {topic}: {error.code}: {error.detail}", advice.for_code(error.code))
    return Finding(f"{doing}, topic {topic}: {found.what}", found.fix)


def _encrypting(client: KeyServiceClient, topic: str) -> Finding:
    grant = client.encryption_key(topic, None).grant
    if isinstance(grant, EncryptionGrant):
        grant.wipe()
        return Finding(f"encrypted under scope {grant.scope}, kid {grant.key.kid.hex()}")
    if grant is UnencryptedMode.FORBID:
        return Finding("the policy forbids it", advice.for_code("topic-forbidden"))
    return Finding("sent in the clear: the policy lists the topic so")


def _decrypting(client: KeyServiceClient, topic: str) -> Finding:
    return Finding(
        f"allowed; records that are not encrypted: {client.decryption_keys(topic, ()).plaintext.grant.value}"
    )
