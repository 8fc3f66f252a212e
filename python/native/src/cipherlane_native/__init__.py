"""The cipher of cipherlane in C, used where it is installed; ``cipherlane.backend`` says what the names mean."""

from cipherlane_native._core import INTERFACE, derive, open_all, open_one, raw

__all__ = ["INTERFACE", "derive", "open_all", "open_one", "raw"]
