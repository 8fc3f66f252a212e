"""Gets a certificate, and the next one ahead of time, in one daemon thread for each identity of a process."""

from __future__ import annotations

import logging
import ssl
import threading
import time
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional

from cipherlane import forking
from cipherlane.clock import Clock, lease_clock
from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keyservice import answers
from cipherlane.keyservice.identity import tls
from cipherlane.keyservice.identity.issued import Issued, checked, new_request, principal_of
from cipherlane.keyservice.identity.proof import Proof, Proofs
from cipherlane.keyservice.tls import client_context, load_certificate, seconds_left
from cipherlane.keyservice.transport import Transport
from cipherlane.spread import spread

if TYPE_CHECKING:
    from cipherlane.configuration import Configuration

_LONGEST_PAUSE = 60.0
_NAP = 60.0
"""Seconds after which the thread looks at the clock again: waiting does not count the time of a suspended machine."""

_log = logging.getLogger(__name__)


class Held(NamedTuple):
    """A certificate that is in use.

    Attributes:
        context: for the key service
        issued: None for that of the PEM files, until the key service has issued one
        until: a moment of the clock
    """

    context: ssl.SSLContext
    issued: Optional[Issued]
    until: float


class Identity:
    """See the module. Safe for use by threads; a forked child keeps the certificate and renews it by itself.

    Args:
        configuration: addresses, CA, and the files of the first proof
        clock: of leases

    Raises:
        ConfigurationError: a file cannot be used, or this system is not fit for it
    """

    def __init__(self, configuration: Configuration, *, clock: Clock = lease_clock) -> None:
        tls.check_system()
        self._configuration = configuration
        self._clock = clock
        self._proofs = Proofs(configuration)
        self._principal: Optional[str] = None
        self._held: Optional[Held] = None
        self._failure: Optional[CipherlaneError] = None
        self._backoff = configuration.keys.retry_backoff
        self._due = clock()
        self._take_files()
        self._start_afresh()
        forking.reset_in_child(self)

    def held(self, *, wait: bool = True) -> Held:
        """The certificate in use; waits for the first, at most ``cipherlane.keys.deadline.ms``.

        Args:
            wait: False: it must be there already

        Raises:
            CipherlaneError: ``key-service-unavailable``: there is none, or the last one ended [CL-IDN-036]
        """
        until = time.monotonic() + (self._configuration.keys.deadline if wait else 0)
        with self._changed:
            self._start()
            while (held := self._current()) is None and self._failure is None:
                if not self._changed.wait(until - time.monotonic()):
                    break
            if held is not None:
                return held
            reason = "no answer in time" if self._failure is None else str(self._failure)
        detail = f"no certificate of this client holds: {reason}; {self._proofs.advice()}"
        raise CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, detail)

    def files(self) -> ssl.SSLContext:
        """A context of the PEM files, for whom there is no certificate of the key service yet."""
        return client_context(self._configuration)

    def follow(self, take: Callable[[Held], None]) -> None:
        """Has a function called with what holds now, if anything does, and with each certificate that comes after it.

        Args:
            take: must not wait; a forked child does not call it
        """
        with self._changed:
            self._start()
            self._followers.append(take)
            if (held := self._current()) is not None:
                take(held)

    @property
    def failure(self) -> Optional[CipherlaneError]:
        """Why the last renewal failed, if it did."""
        return self._failure

    def after_fork_in_child(self) -> None:
        """Lets go of the thread, which did not come along, and of a lock that it may have held."""
        self._start_afresh()

    def __repr__(self) -> str:
        """The principal."""
        return f"Identity({self._principal})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses: the key stays in its process."""
        raise TypeError("an identity cannot be copied or pickled")

    def _start_afresh(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._thread: Optional[threading.Thread] = None
        self._followers: list[Callable[[Held], None]] = []

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="cipherlane-identity", daemon=True)
            self._thread.start()

    def _current(self) -> Optional[Held]:
        """What holds; what ended is dropped."""
        if self._held is not None and self._clock() >= self._held.until:
            self._held = None
        return self._held

    def _work(self) -> None:
        changed = self._changed
        while True:
            with changed:
                while (pause := self._due - self._clock()) > 0:
                    changed.wait(min(pause, _NAP))
            self.renew()

    def renew(self) -> None:
        """Asks for the next certificate, and sets when to ask again; called by the thread."""
        try:
            held, refresh_in = self._next()
        except CipherlaneError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, trying goes on [CL-IDN-036]
            self._fail(CipherlaneError(ErrorCode.INTERNAL, f"renewing failed: {type(error).__name__}"))
        else:
            with self._changed:
                self._held, self._failure = held, None
                for take in self._followers:
                    _tell(take, held)
                self._backoff = self._configuration.keys.retry_backoff
                # Up to a tenth earlier, so that clients that started together do not ask together [CL-IDN-031].
                self._due = self._clock() + spread(refresh_in, 0.9, 1.0)
                self._changed.notify_all()

    def _fail(self, error: CipherlaneError) -> None:
        """Keeps what holds, and waits longer each time [CL-IDN-032]."""
        _log.warning("the certificate was not renewed: %s", error)
        with self._changed:
            self._failure = error.with_traceback(None)
            self._due = self._clock() + spread(self._backoff, 0.8, 1.2)
            self._backoff = min(2 * self._backoff, _LONGEST_PAUSE)
            self._changed.notify_all()

    def _next(self) -> tuple[Held, float]:
        with self._changed:
            held = self._current()
        proof = self._proofs.first() if held is None else self._proofs.next(held.context, held.issued)
        key, request = new_request()
        sent_at = self._clock()
        answer = self._ask(proof, request)
        issued = checked(key, answer, self._principal)
        context = tls.show(client_context(self._configuration, with_certificate=False), issued)
        self._principal = issued.principal
        lifetime = min(answer.expires_in, seconds_left(issued.leaf))
        return Held(context, issued, sent_at + lifetime), answer.refresh_in

    def _ask(self, proof: Proof, request: str) -> answers.CertificateAnswer:
        transport = Transport(self._configuration, proof)
        try:
            answer = transport.post("/v1/certificate", {"csr": request}, proof.bearer)
        finally:
            transport.close()
        if not answer.try_next:
            self._proofs.answered(proof)
        return answers.certificate(*answer.content)

    def _take_files(self) -> None:
        """The certificate of the PEM files is the first one, where these are the first proof."""
        settings = self._configuration
        if settings.identity_token or settings.identity_jwt:
            return
        certificate = load_certificate(settings.tls_certificate)
        self._principal = principal_of(certificate)
        until = self._clock() + seconds_left(certificate)
        self._held = Held(self._proofs.first().current, None, until)


def _tell(take: Callable[[Held], None], held: Held) -> None:
    try:
        take(held)
    except Exception as error:  # noqa: BLE001 - renewing goes on, whatever becomes of it there
        _log.error("a renewed certificate was not taken: %s", type(error).__name__)


class IdentityContext:
    """The context of the certificate in use, as :class:`cipherlane.keyservice.tls.ReloadingContext` is of the files.

    Attributes:
        current: of the certificate that :meth:`renew` found
    """

    current: ssl.SSLContext

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def renew(self) -> bool:
        """Whether there is a new certificate; raises ``key-service-unavailable`` when none holds."""
        before, self.current = getattr(self, "current", None), self._identity.held().context
        return before is not self.current


class _Identities:
    """Those of this process, by what they are made of."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Identity] = {}
        self.after_fork_in_child()
        forking.reset_in_child(self)

    def of(self, configuration: Configuration) -> Identity:
        """The one of these settings, or a new one."""
        name = (
            configuration.urls, configuration.tls_ca, configuration.tls_certificate, configuration.tls_key,
            configuration.identity_token, configuration.identity_jwt,
        )  # fmt: skip
        with self._lock:
            if name not in self._known:
                self._known[name] = Identity(configuration)
            return self._known[name]

    def after_fork_in_child(self) -> None:
        """Another thread of the parent may have held the lock."""
        self._lock = threading.Lock()


_identities = _Identities()


def shared(configuration: Configuration) -> Identity:
    """The identity of these settings, one for all clients of the process [CL-IDN-031].

    Raises:
        ConfigurationError: a file cannot be used, or this system is not fit for it
    """
    return _identities.of(configuration)
