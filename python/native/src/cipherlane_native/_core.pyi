from typing import Any, Callable, Optional, Union

from cipherlane.backend import Opener, Openers, Session
from cipherlane.pure import Fields

INTERFACE: int
OPENSSL: str

class Aead:
    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes, /) -> bytes: ...
    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes, /) -> bytes: ...
    def session(
        self,
        key: object,
        prefix: bytes,
        counter: int,
        alive: object,
        clock: Optional[Callable[[], float]],
        until: float,
        /,
    ) -> Session: ...
    def opener(self, additional_data: bytes, until: float, /) -> Opener: ...

def derive(key: Union[bytes, bytearray], salt: bytes, /) -> Aead: ...
def raw(key: bytes, /) -> Aead: ...
def open_one(
    openings: Openers,
    topic: Optional[str],
    value: Optional[bytes],
    longest: int,
    clock: Optional[Callable[[], float]],
    /,
) -> Optional[bytes]: ...
def open_all(
    openings: Openers,
    records: list[Any],
    fields: Fields,
    longest: int,
    clock: Optional[Callable[[], float]],
    /,
) -> list[int]: ...
