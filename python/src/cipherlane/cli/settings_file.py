"""Reads a client's settings from a file: a JSON object, or lines of ``name=value`` as the other languages have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cipherlane.errors import ConfigurationError

_LONGEST = 1024 * 1024


def read(path: str) -> dict[str, Any]:
    """The settings.

    Raises:
        ConfigurationError: the file cannot be read, or is neither form
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_LONGEST)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    return _from_json(path, text) if text.lstrip().startswith("{") else _from_lines(path, text)


def _from_json(path: str, text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except ValueError:
        raise ConfigurationError(f"{path}: starts like JSON and is none") from None


def _from_lines(path: str, text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ConfigurationError(f"{path}: line {number} is not name=value")
            settings[name.strip()] = value.strip()
    return settings
