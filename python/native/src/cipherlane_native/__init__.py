"""The cipher of cipherlane in C, used where it is installed; ``cipherlane.backend`` says what the names mean."""

from cipherlane_native._core import INTERFACE, OPENSSL, derive, open_all, open_one, raw

__all__ = ["INTERFACE", "OPENSSL", "derive", "open_all", "open_one", "raw"]
