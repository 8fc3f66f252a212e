from typing import Callable, Optional, Union

from cipherlane.backend import Opener, Openers, Plaintexts, Session

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
    topics: list[Optional[str]],
    values: list[Optional[bytes]],
    longest: int,
    clock: Optional[Callable[[], float]],
    /,
) -> Plaintexts: ...
