"""What holds keys is closed when it is done with, and stays in its process."""

from __future__ import annotations

import abc
from typing import TypeVar

H = TypeVar("H", bound="KeyHolder")


class KeyHolder(abc.ABC):
    """Something to be closed, also by the ``with`` statement, that cannot be copied or pickled."""

    @abc.abstractmethod
    def close(self) -> None:
        """Wipes the keys. May be called again."""

    def __enter__(self: H) -> H:
        """Returns itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Closes."""
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Refuses: keys and nonces stay in their process [CL-KEY-015]."""
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled; make one in each process")
